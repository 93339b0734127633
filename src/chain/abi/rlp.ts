/**
 * Recursive length prefix of a list of byte strings: how Ethereum writes transactions. Hex in and out, with 0x; a number
 * is written without leading zeros, zero as the empty string.
 */
export function encodeRlpList(items: readonly (string | bigint)[]): string {
  const body = items
    .map((item) => encodeRlpString(typeof item === "bigint" ? toMinimalHex(item) : item.slice(2)))
    .join("");
  return `0x${encodeLengthPrefix(body.length / 2, 0xc0)}${body}`;
}

/** @param hex without 0x */
function encodeRlpString(hex: string): string {
  const isOneSmallByte = hex.length === 2 && Number.parseInt(hex, 16) < 0x80;
  return isOneSmallByte ? hex : encodeLengthPrefix(hex.length / 2, 0x80) + hex;
}

/** Up to 55 bytes the length is added to the first byte; above, that byte tells how long the length itself is. */
function encodeLengthPrefix(bytes: number, offset: number): string {
  if (bytes <= 55) return toEvenHex(offset + bytes);
  const length = toEvenHex(bytes);
  return toEvenHex(offset + 55 + length.length / 2) + length;
}

function toMinimalHex(value: bigint): string {
  return value === 0n ? "" : toEvenHex(value);
}

function toEvenHex(value: bigint | number): string {
  const hex = value.toString(16);
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}
