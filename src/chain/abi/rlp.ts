/**
 * Encodes a list of byte strings in RLP (recursive length prefix), the encoding of Ethereum transactions. Input and output
 * are hex with 0x. A number is encoded without leading zeros, and zero as the empty string.
 */
export function encodeRlpList(items: readonly (string | bigint)[]): string {
  const body = items
    .map((item) => encodeRlpString(typeof item === "bigint" ? toMinimalHex(item) : item.slice(2)))
    .join("");
  return `0x${encodeLengthPrefix(body.length / 2, 0xc0)}${body}`;
}

/** @param hex without 0x */
function encodeRlpString(hex: string): string {
  const isSingleSmallByte = hex.length === 2 && Number.parseInt(hex, 16) < 0x80;
  return isSingleSmallByte ? hex : encodeLengthPrefix(hex.length / 2, 0x80) + hex;
}

/** Up to 55 bytes the first byte contains the length. Above, it contains the number of bytes of the length. */
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
