export const VIEW_NAMES = ["quote", "transfer", "chains", "routes"] as const;
export type ViewName = (typeof VIEW_NAMES)[number];

/** What a view shows, by name; nothing is ever empty. */
export type ViewParameters = ReadonlyMap<string, string>;

/** A view and what it shows: what stands in the address after `#`, so that it can be shared and gone back to. */
export interface ViewLocation {
  readonly view: ViewName;
  readonly parameters: ViewParameters;
}

/** @param hash with or without its `#`. What names no view is the quote. */
export function parseHash(hash: string): ViewLocation {
  const [name = "", ...rest] = hash.replace(/^#/, "").split("?");
  const view = VIEW_NAMES.find((known) => known === name) ?? "quote";
  const values = [...new URLSearchParams(rest.join("?"))].filter(([, value]) => value !== "");
  return { view, parameters: new Map(values) };
}

/** Begins with `#`. */
export function formatHash({ view, parameters }: ViewLocation): string {
  const filled = [...parameters].filter(([, value]) => value !== "");
  const query = new URLSearchParams(filled).toString();
  return `#${view}${query === "" ? "" : `?${query}`}`;
}
