import { type DescEnum, ScalarType } from "@bufbuild/protobuf";

/** How a value of one type is written in a query. */
export interface ValueText {
  /** The value, or undefined where the text is none. */
  parse(text: string): unknown;
  /** Completes "the parameter must be ...". */
  readonly expected: string;
}

const WHOLE = /^(?:0|-?[1-9][0-9]*)$/;
const DECIMAL = /^-?[0-9]+(?:\.[0-9]+)?$/;
const BASE64URL = /^[A-Za-z0-9_-]*={0,2}$/;

const INT32 = { from: -(2n ** 31n), to: 2n ** 31n - 1n };
const UINT32 = { from: 0n, to: 2n ** 32n - 1n };
const INT64 = { from: -(2n ** 63n), to: 2n ** 63n - 1n };
const UINT64 = { from: 0n, to: 2n ** 64n - 1n };

const STRING: ValueText = { parse: (text) => text, expected: "a string" };

const BOOL: ValueText = {
  parse: (text) => (text === "true" ? true : text === "false" ? false : undefined),
  expected: "true or false",
};

const BYTES: ValueText = {
  parse(text) {
    const digits = text.replace(/=+$/, "");
    if (!BASE64URL.test(text) || digits.length % 4 === 1) return undefined;
    return new Uint8Array(Buffer.from(digits, "base64url"));
  },
  expected: "base64url",
};

const DOUBLE = decimal((value) => value);
const FLOAT = decimal(Math.fround);

/** How a scalar is written. 64-bit integers come as bigint, or as strings where the descriptor says so. */
export function scalarText(scalar: ScalarType, longAsString = false): ValueText {
  switch (scalar) {
    case ScalarType.STRING:
      return STRING;
    case ScalarType.BOOL:
      return BOOL;
    case ScalarType.BYTES:
      return BYTES;
    case ScalarType.DOUBLE:
      return DOUBLE;
    case ScalarType.FLOAT:
      return FLOAT;
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return whole(INT32, Number);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return whole(UINT32, Number);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return whole(INT64, longAsString ? String : BigInt);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return whole(UINT64, longAsString ? String : BigInt);
  }
}

/** How an enum is written: by the name of a value, or its number. */
export function enumText({ values }: DescEnum): ValueText {
  const numbers = new Map(values.flatMap(({ name, number }) => [[name, number] as const, [String(number), number]]));
  return { parse: (text) => numbers.get(text), expected: `one of ${values.map(({ name }) => name).join(", ")}` };
}

function whole({ from, to }: { from: bigint; to: bigint }, convert: (value: bigint) => unknown): ValueText {
  // Longer texts are out of range, and would only cost time to read.
  const longest = Math.max(String(from).length, String(to).length);
  return {
    parse(text) {
      if (text.length > longest || !WHOLE.test(text)) return undefined;
      const value = BigInt(text);
      return value < from || value > to ? undefined : convert(value);
    },
    expected: `a whole number from ${from} to ${to}`,
  };
}

function decimal(convert: (value: number) => number): ValueText {
  return {
    parse(text) {
      const value = DECIMAL.test(text) ? convert(Number(text)) : Number.NaN;
      return Number.isFinite(value) ? value : undefined;
    },
    expected: "a plain decimal number",
  };
}
