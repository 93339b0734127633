/** A JSON object; its members come in the order in which they are put in. */
export type JsonObject = { readonly [name: string]: unknown };

/** Without what is undefined, empty text, or an empty list. */
export function omitEmpty(members: JsonObject): JsonObject {
  const isGiven = (value: unknown) =>
    value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isGiven(value)));
}

export function componentRef(place: "schemas" | "responses" | "headers" | "parameters", name: string): JsonObject {
  return { $ref: `#/components/${place}/${name}` };
}
