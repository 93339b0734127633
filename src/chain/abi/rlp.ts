/**
 * Recursive length prefix of a list of byte strings: how Ethereum writes transactions. Hex in and out, with 0x; a number
 * is written without leading zeros, zero as the empty string.
 */
export function rlpList(items: readonly (string | bigint)[]): string {
  const body = items.map((item) => rlpString(typeof item === "bigint" ? minimalHex(item) : item.slice(2))).join("");
  return `0x${lengthPrefix(body.length / 2, 0xc0)}${body}`;
}

/** @param hex without 0x */
function rlpString(hex: string): string {
  const isOneSmallByte = hex.length === 2 && Number.parseInt(hex, 16) < 0x80;
  return isOneSmallByte ? hex : lengthPrefix(hex.length / 2, 0x80) + hex;
}

/** Up to 55 bytes the length is added to the first byte; above, that byte tells how long the length itself is. */
function lengthPrefix(bytes: number, offset: number): string {
  if (bytes <= 55) return evenHex(offset + bytes);
  const length = evenHex(bytes);
  return evenHex(offset + 55 + length.length / 2) + length;
}

function minimalHex(value: bigint): string {
  return value === 0n ? "" : evenHex(value);
}

function evenHex(value: bigint | number): string {
  const hex = value.toString(16);
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}
