import { create, type DescMessage, type Message } from "@bufbuild/protobuf";

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
