/** A JSON object; its members are printed in insertion order. */
export type JsonObject = { readonly [name: string]: unknown };

/** Returns the object without members that are undefined, an empty string or an empty array. */
export function omitEmpty(members: JsonObject): JsonObject {
  const isPresent = (value: unknown) =>
    value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isPresent(value)));
}

export function componentRef(section: "schemas" | "responses" | "headers" | "parameters", name: string): JsonObject {
  return { $ref: `#/components/${section}/${name}` };
}
