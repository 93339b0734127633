import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex } from "@noble/hashes/utils.js";

// The parts of the contract ABI that this service needs. All values are hex. A word is 32 bytes without 0x.

const ADDRESS_PATTERN = /^0x[0-9a-fA-F]{40}$/;

/** Returns topic 0 of an event: the hash of its signature, with 0x. */
export function toEventTopic(signature: string): string {
  return `0x${bytesToHex(keccak_256(new TextEncoder().encode(signature)))}`;
}

/** Returns a function's selector: the first four bytes of the hash of its signature, with 0x. */
export function toFunctionSelector(signature: string): string {
  return toEventTopic(signature).slice(0, 10);
}

/** Encodes a number, or an address or 32 bytes given as 0x-prefixed hex, as one word. */
export function encodeWord(value: bigint | string): string {
  return (typeof value === "bigint" ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, "0");
}

/** Encodes 0x-prefixed bytes: their length, then the bytes, padded to whole words. */
export function encodeBytes(hex: string): string {
  const body = hex.slice(2);
  return encodeWord(BigInt(body.length / 2)) + body.padEnd(Math.ceil(body.length / 64) * 64, "0");
}

/** Encodes dynamic values: the offset of each, counted from the start of `heads` words, then the values. */
export function encodeWithOffsets(values: readonly string[], heads = values.length): string {
  let offset = heads * 32;
  let offsets = "";
  for (const value of values) {
    offsets += encodeWord(BigInt(offset));
    offset += value.length / 2;
  }
  return offsets + values.join("");
}

/** Decodes the n-th word of a result as an unsigned integer; undefined past the end. */
export function decodeUintAt(hex: string, index: number): bigint | undefined {
  const start = 2 + index * 64;
  return hex.length < start + 64 ? undefined : BigInt(`0x${hex.slice(start, start + 64)}`);
}

/**
 * Returns whether ethers accepts a text as an address: 0x and 40 hex digits of one case, or of mixed case with a valid
 * EIP-55 checksum.
 */
export function isAddress(text: string): boolean {
  if (!ADDRESS_PATTERN.test(text)) return false;
  const digits = text.slice(2);
  const lower = digits.toLowerCase();
  if (digits === lower || digits === digits.toUpperCase()) return true;
  const hash = bytesToHex(keccak_256(new TextEncoder().encode(lower)));
  return [...lower].every((digit, index) => {
    const isUpper = Number.parseInt(hash[index] ?? "0", 16) >= 8;
    return digits[index] === (isUpper ? digit.toUpperCase() : digit);
  });
}
