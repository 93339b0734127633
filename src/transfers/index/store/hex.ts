// Converts between hex, as the service uses it, and bytes, which the index stores in half the size.

export function hexToBytes(hex: string): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

export function bytesToHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
