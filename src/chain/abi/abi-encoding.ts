import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex } from "@noble/hashes/utils.js";

// The few forms of the contract ABI that are needed here. Hex everywhere; a word is 32 bytes, without 0x.

/** First four bytes of a function's hash, with 0x. */
export function toFunctionSelector(signature: string): string {
  return `0x${bytesToHex(keccak_256(new TextEncoder().encode(signature))).slice(0, 8)}`;
}

/** A number, or an address or 32 bytes as 0x-prefixed hex. */
export function encodeWord(value: bigint | string): string {
  return (typeof value === "bigint" ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, "0");
}

/** Bytes as 0x-prefixed hex: their length, then themselves, filled up to whole words. */
export function encodeBytes(hex: string): string {
  const body = hex.slice(2);
  return encodeWord(BigInt(body.length / 2)) + body.padEnd(Math.ceil(body.length / 64) * 64, "0");
}

/** Places of dynamic values: the offset of each behind `heads` words, then the values. */
export function encodeWithOffsets(values: readonly string[], heads = values.length): string {
  let offset = heads * 32;
  let places = "";
  for (const value of values) {
    places += encodeWord(BigInt(offset));
    offset += value.length / 2;
  }
  return places + values.join("");
}

/** The n-th word of an answer as an unsigned integer; undefined past its end. */
export function decodeUintAt(hex: string, index: number): bigint | undefined {
  const start = 2 + index * 64;
  return hex.length < start + 64 ? undefined : BigInt(`0x${hex.slice(start, start + 64)}`);
}

/**
 * Whether ethers takes a text for an address: 0x and 40 hex digits of one case, or of both where their case is the
 * checksum that EIP-55 describes.
 */
export function isAddress(text: string): boolean {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) return false;
  const digits = text.slice(2);
  const lower = digits.toLowerCase();
  if (digits === lower || digits === digits.toUpperCase()) return true;
  const hash = bytesToHex(keccak_256(new TextEncoder().encode(lower)));
  return [...lower].every((digit, place) => {
    const isUpper = Number.parseInt(hash[place] ?? "0", 16) >= 8;
    return digits[place] === (isUpper ? digit.toUpperCase() : digit);
  });
}
