import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";

// What readers and writers share about messages in memory.

/** The largest integer that a double holds exactly. */
export const MAX_SAFE_BIGINT = BigInt(Number.MAX_SAFE_INTEGER);

export function isUint32(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32;
}

/** The fields of a message by name. */
export type MessageFields = Readonly<Record<string, unknown>>;

/** Stands for a value that only the library writes or rejects. */
const NOT_PLAIN = Symbol("not plain");

/** Returns the value of a field; undefined if it belongs to a oneof that holds another member or none. */
export function readMember(
  fields: MessageFields,
  { name, oneof }: { readonly name: string; readonly oneof: string | undefined },
): unknown {
  if (oneof === undefined) return fields[name];
  const choice = fields[oneof];
  if (typeof choice !== "object" || choice === null) return NOT_PLAIN;
  const { case: chosen, value } = choice as { readonly case?: unknown; readonly value?: unknown };
  if (chosen !== name) return undefined;
  return value === undefined ? NOT_PLAIN : value;
}

/** Returns the value with which a field with implicit presence is not written. */
export function getZero({ scalar }: DescField): unknown {
  if (scalar === ScalarType.STRING) return "";
  if (scalar === ScalarType.BOOL) return false;
  return scalar === ScalarType.INT64 || scalar === ScalarType.UINT64 ? 0n : 0;
}

/**
 * Creates empty messages of one type, equal to those of `create`. They are faster to create and to read: all have the
 * same properties in the same order, with undefined for optional fields that are not set.
 */
export function createMessageFactory(schema: DescMessage): () => Message {
  const empty = create(schema) as Message & Record<string, unknown>;
  // Proto2 types keep their defaults in a prototype.
  if (Object.getPrototypeOf(empty) !== Object.prototype) return () => create(schema);
  for (const { localName, oneof } of schema.fields) {
    if (oneof === undefined && !(localName in empty)) empty[localName] = undefined;
  }
  // Lists, maps and oneofs are mutable. Empty bytes are not, so that all messages may share them.
  const isContainer = (value: unknown) => typeof value === "object" && !(value instanceof Uint8Array);
  const containers = Object.entries<unknown>(empty).filter(([, value]) => isContainer(value)) as [string, object][];
  return () => {
    const message = { ...empty };
    for (const [name, value] of containers) message[name] = Array.isArray(value) ? [] : { ...value };
    return message;
  };
}

/**
 * Memoizes a function of a message for frozen messages, for as long as the message lives. The function gets to know
 * whether its result is memoized.
 */
export function memoizeFrozen<T>(compute: (message: Message, isMemoized: boolean) => T): (message: Message) => T {
  const results = new WeakMap<Message, T>();
  return (message) => {
    if (!Object.isFrozen(message)) return compute(message, false);
    const cached = results.get(message);
    if (cached !== undefined) return cached;
    const result = compute(message, true);
    results.set(message, result);
    return result;
  };
}
