/** Stands for a value that only the library writes or rejects. */
const NOT_PLAIN = Symbol("not plain");

/** Returns the value of a field; undefined if it belongs to a oneof that holds another member or none. */
export function readMember(
  fields: Readonly<Record<string, unknown>>,
  { name, oneof }: { readonly name: string; readonly oneof: string | undefined },
): unknown {
  if (oneof === undefined) return fields[name];
  const choice = fields[oneof];
  if (typeof choice !== "object" || choice === null) return NOT_PLAIN;
  const { case: chosen, value } = choice as { readonly case?: unknown; readonly value?: unknown };
  if (chosen !== name) return undefined;
  return value === undefined ? NOT_PLAIN : value;
}
