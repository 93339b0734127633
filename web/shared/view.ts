import type { ViewLocation, ViewParameters } from "./location-hash.js";

/** A part of the page that has an address of its own. */
export interface View {
  /** Shows what these values say; called again whenever the address changes. */
  show(values: ViewParameters): void;
  /** Another view is shown: nothing more is asked for. */
  hide(): void;
}

/**
 * Goes somewhere: to a new entry of the history (`push`), or in place of the one that is there (`replace`); `correct`
 * only writes the address that what is shown already has.
 */
export type Navigate = (place: ViewLocation, how: "push" | "replace" | "correct") => void;
