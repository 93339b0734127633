/** A JSON object; its members come in the order in which they are put in. */
export type Json = { readonly [name: string]: unknown };

/** Without what is undefined, empty text, or an empty list. */
export function given(members: Json): Json {
  const isGiven = (value: unknown) =>
    value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isGiven(value)));
}

export function ref(place: "schemas" | "responses" | "headers" | "parameters", name: string): Json {
  return { $ref: `#/components/${place}/${name}` };
}
