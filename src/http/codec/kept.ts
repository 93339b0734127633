import type { Message } from "@bufbuild/protobuf";

/** Makes something of a message; of a frozen one only once, and keeps it for as long as the message is kept. */
export function keptForFrozen<T>(make: (message: Message) => T): (message: Message) => T {
  const kept = new WeakMap<Message, T>();
  return (message) => {
    if (!Object.isFrozen(message)) return make(message);
    const known = kept.get(message);
    if (known !== undefined) return known;
    const made = make(message);
    kept.set(message, made);
    return made;
  };
}
