import { type DescEnum, ScalarType } from "@bufbuild/protobuf";

/** Parses the values of one type in a query. */
export interface QueryValueParser {
  /** Returns the value, or undefined if the text is not valid. */
  parse(text: string): unknown;
  /** Completes the sentence "the parameter must be ...". */
  readonly expected: string;
}

const INTEGER_PATTERN = /^(?:0|-?[1-9][0-9]*)$/;
const DECIMAL_PATTERN = /^-?[0-9]+(?:\.[0-9]+)?$/;
const BASE64URL_PATTERN = /^[A-Za-z0-9_-]*={0,2}$/;

const INT32_RANGE = { from: -(2n ** 31n), to: 2n ** 31n - 1n };
const UINT32_RANGE = { from: 0n, to: 2n ** 32n - 1n };
const INT64_RANGE = { from: -(2n ** 63n), to: 2n ** 63n - 1n };
const UINT64_RANGE = { from: 0n, to: 2n ** 64n - 1n };

const stringParser: QueryValueParser = { parse: (text) => text, expected: "a string" };

const boolParser: QueryValueParser = {
  parse: (text) => (text === "true" ? true : text === "false" ? false : undefined),
  expected: "true or false",
};

const bytesParser: QueryValueParser = {
  parse(text) {
    const digits = text.replace(/=+$/, "");
    if (!BASE64URL_PATTERN.test(text) || digits.length % 4 === 1) return undefined;
    return new Uint8Array(Buffer.from(digits, "base64url"));
  },
  expected: "base64url",
};

const doubleParser = createDecimalParser((value) => value);
const floatParser = createDecimalParser(Math.fround);

/** Returns the parser of a scalar type. 64-bit integers are bigint, or strings if the descriptor says so. */
export function getScalarParser(scalar: ScalarType, longAsString = false): QueryValueParser {
  switch (scalar) {
    case ScalarType.STRING:
      return stringParser;
    case ScalarType.BOOL:
      return boolParser;
    case ScalarType.BYTES:
      return bytesParser;
    case ScalarType.DOUBLE:
      return doubleParser;
    case ScalarType.FLOAT:
      return floatParser;
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return createIntegerParser(INT32_RANGE, Number);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return createIntegerParser(UINT32_RANGE, Number);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return createIntegerParser(INT64_RANGE, longAsString ? String : BigInt);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return createIntegerParser(UINT64_RANGE, longAsString ? String : BigInt);
  }
}

/** Creates the parser of an enum. Values are given by name or by number. */
export function createEnumParser({ values }: DescEnum): QueryValueParser {
  const numbers = new Map(values.flatMap(({ name, number }) => [[name, number] as const, [String(number), number]]));
  return { parse: (text) => numbers.get(text), expected: `one of ${values.map(({ name }) => name).join(", ")}` };
}

function createIntegerParser(
  { from, to }: { from: bigint; to: bigint },
  convert: (value: bigint) => unknown,
): QueryValueParser {
  // Longer texts are out of range; BigInt would take long to parse them.
  const maxLength = Math.max(String(from).length, String(to).length);
  return {
    parse(text) {
      if (text.length > maxLength || !INTEGER_PATTERN.test(text)) return undefined;
      const value = BigInt(text);
      return value < from || value > to ? undefined : convert(value);
    },
    expected: `a whole number from ${from} to ${to}`,
  };
}

function createDecimalParser(convert: (value: number) => number): QueryValueParser {
  return {
    parse(text) {
      const value = DECIMAL_PATTERN.test(text) ? convert(Number(text)) : Number.NaN;
      return Number.isFinite(value) ? value : undefined;
    },
    expected: "a plain decimal number",
  };
}
