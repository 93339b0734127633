/** Stands for a value that only the library writes or rejects. */
const NOT_PLAIN = Symbol("not plain");

/** Returns the value of a member of a oneof; undefined if the oneof holds another member or none. */
export function readChoice(choice: unknown, member: string): unknown {
  if (typeof choice !== "object" || choice === null) return NOT_PLAIN;
  const { case: chosen, value } = choice as { readonly case?: unknown; readonly value?: unknown };
  if (chosen !== member) return undefined;
  return value === undefined ? NOT_PLAIN : value;
}
