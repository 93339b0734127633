import type { ViewLocation, ViewParameters } from "./location-hash.js";

/** A section of the page with its own URL hash. */
export interface View {
  /** Shows the view. Called again whenever the parameters change. */
  show(parameters: ViewParameters): void;
  /** Stops all requests of the view: another view is shown. */
  hide(): void;
}

/**
 * Navigates to a view: `push` adds a history entry, `replace` replaces the current one, `correct` only rewrites the URL
 * of what is already shown.
 */
export type Navigate = (target: ViewLocation, mode: "push" | "replace" | "correct") => void;
