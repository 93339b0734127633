import { formatAmount, groupThousands } from "./amounts.js";
import { createElement } from "./dom.js";
import { formatDuration, formatTime } from "./time.js";

/** A term and what it is, for a list of descriptions. The field is its name in the interface. */
export function createDescription(
  label: string,
  field: string | undefined,
  ...values: readonly (HTMLElement | undefined)[]
): readonly HTMLElement[] {
  const name = field === undefined ? undefined : createElement("code", { class: "field" }, field);
  return [createElement("dt", {}, createElement("span", {}, label), name), createElement("dd", {}, ...values)];
}

/** Something less important beside a value. */
export function createNote(...content: readonly (Node | string)[]): HTMLElement {
  return createElement("span", { class: "note" }, ...content);
}

/** Decimals that are read; more are there, smaller. */
const PROMINENT_DECIMALS = 6;

/** An amount in whole tokens, exact, with its symbol, and beside it the same in the smallest unit. */
export function createAmount(raw: string, token: string, decimals: number | undefined): HTMLElement {
  return createElement("span", { class: "amount" }, createTokenAmount(raw, token, decimals), " ", createRawValue(raw));
}

/** An amount in whole tokens, exact, with its symbol. Without decimals to go by: in the smallest unit. */
export function createTokenAmount(raw: string, token: string, decimals: number | undefined): HTMLElement {
  if (decimals === undefined)
    return createElement("span", { class: "whole" }, `${groupThousands(raw)} × smallest unit of ${token}`);
  const number = groupThousands(formatAmount(BigInt(raw), decimals));
  const end = number.indexOf(".") + 1 + PROMINENT_DECIMALS;
  const isLong = number.includes(".") && number.length > end;
  const rest = isLong ? createElement("span", { class: "rest" }, number.slice(end)) : undefined;
  return createElement("span", { class: "whole" }, isLong ? number.slice(0, end) : number, rest, ` ${token}`);
}

/** An amount in the smallest unit, as the interface has it. */
export function createRawValue(raw: string): HTMLElement {
  return createElement("span", { class: "raw" }, raw);
}

/** The last of which there is a date, in seconds of the Unix epoch. A deadline may be any number of 256 bits. */
const MAX_DATE_SECONDS = 8.64e12;

/** A time in the reader's time zone, and beside it as the interface has it. */
export function createTime(unixSeconds: number): HTMLElement {
  if (unixSeconds > MAX_DATE_SECONDS)
    return createElement("span", { class: "amount" }, "Never ", createRawValue(String(unixSeconds)));
  const machine = new Date(unixSeconds * 1000).toISOString();
  const time = createElement("time", { datetime: machine }, formatTime(unixSeconds));
  return createElement("span", { class: "amount" }, time, " ", createRawValue(String(unixSeconds)));
}

/** How long ago something was, which {@link startAgeUpdates} keeps true. */
export function createAge(sinceMs: number): HTMLElement {
  return createElement("span", { "data-since": String(sinceMs) }, formatDuration((Date.now() - sinceMs) / 1000));
}

/** Lets every age on the page grow, once a second. */
export function startAgeUpdates(): void {
  setInterval(() => {
    for (const element of document.querySelectorAll<HTMLElement>("[data-since]")) {
      element.textContent = formatDuration((Date.now() - Number(element.dataset.since)) / 1000);
    }
  }, 1000);
}
