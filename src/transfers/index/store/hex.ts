// Hex as the rest of the service writes it, and bytes as the index keeps it: half the size.

export function hexToBytes(hex: string): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

export function bytesToHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
