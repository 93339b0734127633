import type { Message } from "@bufbuild/protobuf";

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
