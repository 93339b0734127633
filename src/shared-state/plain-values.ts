// Reads what other processes send: JSON, with integers as decimal text. Each function throws TypeError for anything else.

const INTEGER_PATTERN = /^-?[0-9]{1,80}$/;

export function parseInteger(value: unknown): bigint {
  if (typeof value === "string" && INTEGER_PATTERN.test(value)) return BigInt(value);
  throw new TypeError("not an integer");
}

export function parseNumber(value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new TypeError("not a number");
}

export function parseText(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError("not a text");
}

export function parseList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("not a list");
}

export function parseRecord(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new TypeError("not an object");
}

/** Reads a list of pairs as a map. */
export function parseEntries<Key, Value>(
  pairs: unknown,
  parseKey: (key: unknown) => Key,
  parseValue: (value: unknown) => Value,
): ReadonlyMap<Key, Value> {
  return new Map(
    parseList(pairs).map((pair) => {
      const [key, value] = parseList(pair);
      return [parseKey(key), parseValue(value)] as const;
    }),
  );
}

/** Prints a map as a list of pairs. */
export function printEntries<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  print: (value: Value) => unknown,
): readonly (readonly [Key, unknown])[] {
  return [...map].map(([key, value]) => [key, print(value)] as const);
}
