import type { Message } from "@bufbuild/protobuf";

/**
 * Makes something of a message; of a frozen one only once, and keeps it for as long as the message is kept. What makes it
 * is told whether it will be kept.
 */
export function memoizeFrozen<T>(make: (message: Message, isKept: boolean) => T): (message: Message) => T {
  const kept = new WeakMap<Message, T>();
  return (message) => {
    if (!Object.isFrozen(message)) return make(message, false);
    const known = kept.get(message);
    if (known !== undefined) return known;
    const made = make(message, true);
    kept.set(message, made);
    return made;
  };
}
