import { formatAmount, groupThousands } from "../format/amounts.js";
import { formatDuration, formatTime } from "../format/time.js";
import { createElement } from "./dom.js";

/**
 * Creates a term and its description for a `dl`.
 * @param fields names of the API fields that the description shows
 */
export function createDescription(
  label: string,
  fields: readonly string[],
  ...values: readonly (HTMLElement | undefined)[]
): readonly HTMLElement[] {
  const names = fields.map(createFieldName);
  return [createElement("dt", {}, createElement("span", {}, label), ...names), createElement("dd", {}, ...values)];
}

/** Creates the name of an API field, which only the developer view shows. */
export function createFieldName(field: string): HTMLElement {
  return createElement("code", { class: "field" }, field);
}

/** Creates secondary text beside a value. */
export function createNote(...content: readonly (Node | string)[]): HTMLElement {
  return createElement("span", { class: "note" }, ...content);
}

/** Further decimals are shown smaller. */
const PROMINENT_DECIMALS = 6;

/** Creates an exact amount in whole tokens with its symbol, followed by the same amount in the smallest unit. */
export function createAmount(raw: string, token: string, decimals: number | undefined): HTMLElement {
  return createElement("span", { class: "amount" }, createTokenAmount(raw, token, decimals), " ", createRawValue(raw));
}

/** Creates an exact amount in whole tokens with its symbol; in the smallest unit if the decimals are unknown. */
export function createTokenAmount(raw: string, token: string, decimals: number | undefined): HTMLElement {
  if (decimals === undefined)
    return createElement("span", { class: "whole" }, `${groupThousands(raw)} × smallest unit of ${token}`);
  const number = groupThousands(formatAmount(BigInt(raw), decimals));
  const end = number.indexOf(".") + 1 + PROMINENT_DECIMALS;
  const isLong = number.includes(".") && number.length > end;
  const minorDigits = isLong ? createElement("span", { class: "minor-digits" }, number.slice(end)) : undefined;
  return createElement("span", { class: "whole" }, isLong ? number.slice(0, end) : number, minorDigits, ` ${token}`);
}

/** Creates a value exactly as the API returns it, which only the developer view shows. */
export function createRawValue(raw: string): HTMLElement {
  return createElement("span", { class: "raw" }, raw);
}

/** The latest time that a Date can hold, in seconds since the Unix epoch. A deadline can be any 256-bit number. */
const MAX_DATE_SECONDS = 8.64e12;

/** Creates a time in the user's time zone, followed by the Unix timestamp. */
export function createTime(unixSeconds: number): HTMLElement {
  if (unixSeconds > MAX_DATE_SECONDS)
    return createElement("span", { class: "amount" }, "Never ", createRawValue(String(unixSeconds)));
  const isoTime = new Date(unixSeconds * 1000).toISOString();
  const time = createElement("time", { datetime: isoTime }, formatTime(unixSeconds));
  return createElement("span", { class: "amount" }, time, " ", createRawValue(String(unixSeconds)));
}

/** Creates the time elapsed since a moment. {@link startAgeUpdates} keeps it up to date. */
export function createAge(sinceMs: number): HTMLElement {
  return createElement("span", { "data-since": String(sinceMs) }, formatDuration((Date.now() - sinceMs) / 1000));
}

/** Updates every age on the page once a second. */
export function startAgeUpdates(): void {
  setInterval(() => {
    for (const element of document.querySelectorAll<HTMLElement>("[data-since]")) {
      element.textContent = formatDuration((Date.now() - Number(element.dataset.since)) / 1000);
    }
  }, 1000);
}
