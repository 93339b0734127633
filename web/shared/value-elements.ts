import { formatAmount, groupThousands } from "./amounts.js";
import { make } from "./dom.js";
import { formatDuration, formatTime } from "./time.js";

/** A term and what it is, for a list of descriptions. The field is its name in the interface. */
export function fact(
  label: string,
  field: string | undefined,
  ...values: readonly (HTMLElement | undefined)[]
): readonly HTMLElement[] {
  const name = field === undefined ? undefined : make("code", { class: "field" }, field);
  return [make("dt", {}, make("span", {}, label), name), make("dd", {}, ...values)];
}

/** Something less important beside a value. */
export function note(...content: readonly (Node | string)[]): HTMLElement {
  return make("span", { class: "note" }, ...content);
}

/** Decimals that are read; more are there, smaller. */
const readDecimals = 6;

/** An amount in whole tokens, exact, with its symbol, and beside it the same in the smallest unit. */
export function amountText(raw: string, token: string, decimals: number | undefined): HTMLElement {
  return make("span", { class: "amount" }, wholeTokens(raw, token, decimals), " ", rawText(raw));
}

/** An amount in whole tokens, exact, with its symbol. Without decimals to go by: in the smallest unit. */
export function wholeTokens(raw: string, token: string, decimals: number | undefined): HTMLElement {
  if (decimals === undefined)
    return make("span", { class: "whole" }, `${groupThousands(raw)} × smallest unit of ${token}`);
  const number = groupThousands(formatAmount(BigInt(raw), decimals));
  const end = number.indexOf(".") + 1 + readDecimals;
  const isLong = number.includes(".") && number.length > end;
  const rest = isLong ? make("span", { class: "rest" }, number.slice(end)) : undefined;
  return make("span", { class: "whole" }, isLong ? number.slice(0, end) : number, rest, ` ${token}`);
}

/** An amount in the smallest unit, as the interface has it. */
export function rawText(raw: string): HTMLElement {
  return make("span", { class: "raw" }, raw);
}

/** The last of which there is a date, in seconds of the Unix epoch. A deadline may be any number of 256 bits. */
const lastDate = 8.64e12;

/** A time in the reader's time zone, and beside it as the interface has it. */
export function timeText(unixSeconds: number): HTMLElement {
  if (unixSeconds > lastDate) return make("span", { class: "amount" }, "Never ", rawText(String(unixSeconds)));
  const machine = new Date(unixSeconds * 1000).toISOString();
  const time = make("time", { datetime: machine }, formatTime(unixSeconds));
  return make("span", { class: "amount" }, time, " ", rawText(String(unixSeconds)));
}

/** How long ago something was, which {@link keepAges} keeps true. */
export function ageText(sinceMs: number): HTMLElement {
  return make("span", { "data-since": String(sinceMs) }, formatDuration((Date.now() - sinceMs) / 1000));
}

/** Lets every age on the page grow, once a second. */
export function keepAges(): void {
  setInterval(() => {
    for (const element of document.querySelectorAll<HTMLElement>("[data-since]")) {
      element.textContent = formatDuration((Date.now() - Number(element.dataset.since)) / 1000);
    }
  }, 1000);
}
