export const VIEW_NAMES = ["quote", "compare", "transfer", "account", "chains", "routes"] as const;
export type ViewName = (typeof VIEW_NAMES)[number];

/** Parameters of a view by name. Empty values count as absent. */
export type ViewParameters = ReadonlyMap<string, string>;

/** A view with its parameters: the part of the URL after `#`, so that it can be shared and has a history entry. */
export interface ViewLocation {
  readonly view: ViewName;
  readonly parameters: ViewParameters;
}

/**
 * Parses a URL hash. An unknown view becomes the quote view.
 * @param hash with or without the leading `#`
 */
export function parseHash(hash: string): ViewLocation {
  const [name = "", ...query] = hash.replace(/^#/, "").split("?");
  const view = VIEW_NAMES.find((viewName) => viewName === name) ?? "quote";
  const entries = [...new URLSearchParams(query.join("?"))].filter(([, value]) => value !== "");
  return { view, parameters: new Map(entries) };
}

/** Formats a view's location as a URL hash that begins with `#`. */
export function formatHash({ view, parameters }: ViewLocation): string {
  const entries = [...parameters].filter(([, value]) => value !== "");
  const query = new URLSearchParams(entries).toString();
  return `#${view}${query === "" ? "" : `?${query}`}`;
}
