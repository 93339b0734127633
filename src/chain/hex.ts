// Hex strings of JSON-RPC: "0x" and digits, all of either case.

const DATA_PATTERN = /^0x[0-9a-f]*$/i;
const QUANTITY_PATTERN = /^0x[0-9a-f]{1,32}$/i;
const ADDRESS_PATTERN = /^0x[0-9a-f]{40}$/i;
const BYTES32_PATTERN = /^0x[0-9a-f]{64}$/i;

/** Encodes a number as a JSON-RPC quantity. */
export function toQuantity(value: number): string {
  return `0x${value.toString(16)}`;
}

/** Returns whether a value is a JSON-RPC quantity of at most 32 digits. */
export function isQuantity(value: unknown): value is string {
  return typeof value === "string" && QUANTITY_PATTERN.test(value);
}

/** Returns whether a value is hex-encoded bytes. No bytes at all are `0x`. */
export function isHexData(value: unknown): value is string {
  return typeof value === "string" && DATA_PATTERN.test(value);
}

/** Returns whether a value has the form of an address. Does not verify an EIP-55 checksum. */
export function isAddressHex(value: unknown): value is string {
  return typeof value === "string" && ADDRESS_PATTERN.test(value);
}

/** Returns whether a value is 32 bytes: a hash, a topic or one ABI word. */
export function isBytes32(value: unknown): value is string {
  return typeof value === "string" && BYTES32_PATTERN.test(value);
}

/** Decodes hex with 0x. */
export function hexToBytes(hex: string): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

/** Encodes bytes as lower-case hex with 0x. */
export function bytesToHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
