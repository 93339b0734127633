export const viewNames = ["quote", "transfer", "chains", "routes"] as const;
export type ViewName = (typeof viewNames)[number];

/** What a view shows, by name; nothing is ever empty. */
export type Values = ReadonlyMap<string, string>;

/** A view and what it shows: what stands in the address after `#`, so that it can be shared and gone back to. */
export interface Place {
  readonly view: ViewName;
  readonly values: Values;
}

/** @param hash with or without its `#`. What names no view is the quote. */
export function parsePlace(hash: string): Place {
  const [name = "", ...rest] = hash.replace(/^#/, "").split("?");
  const view = viewNames.find((known) => known === name) ?? "quote";
  const values = [...new URLSearchParams(rest.join("?"))].filter(([, value]) => value !== "");
  return { view, values: new Map(values) };
}

/** Begins with `#`. */
export function printPlace({ view, values }: Place): string {
  const filled = [...values].filter(([, value]) => value !== "");
  const query = new URLSearchParams(filled).toString();
  return `#${view}${query === "" ? "" : `?${query}`}`;
}
