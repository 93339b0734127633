import { create, type DescMessage, type Message } from "@bufbuild/protobuf";

/**
 * Makes empty messages of one type. They are equal to what `create` makes and come faster, also for who reads them: all
 * have the same properties in the same order, those of optional fields that are not set being undefined.
 */
export function createMessageFactory(schema: DescMessage): () => Message {
  const empty = create(schema) as Message & Record<string, unknown>;
  // Types of proto2 keep their defaults in a prototype of their own.
  if (Object.getPrototypeOf(empty) !== Object.prototype) return () => create(schema);
  for (const { localName, oneof } of schema.fields) {
    if (oneof === undefined && !(localName in empty)) empty[localName] = undefined;
  }
  // Lists, maps and oneofs; empty bytes have nothing that could change, so that all messages may share them.
  const isContainer = (value: unknown) => typeof value === "object" && !(value instanceof Uint8Array);
  const containers = Object.entries<unknown>(empty).filter(([, value]) => isContainer(value)) as [string, object][];
  return () => {
    const message = { ...empty };
    for (const [name, value] of containers) message[name] = Array.isArray(value) ? [] : { ...value };
    return message;
  };
}
