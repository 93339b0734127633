import { ratioOf } from "../shared/amounts.js";
import type { Answer } from "../shared/api-client.js";
import type { Quote } from "../shared/api-types.js";
import { chainName } from "../shared/chain-names.js";
import { make } from "../shared/dom.js";
import { ageText, amountText, fact, note, rawText, timeText, wholeTokens } from "../shared/value-elements.js";
import { formatShare } from "./price-impact.js";
import type { QuoteWish } from "./quote-input.js";

/** Where the price impact is told once the curve is known. */
export const impactId = "quote-impact";

/** What a quote says: what arrives, what it costs, what to send with the transfer, and how old its facts are. */
export function quoteAnswer(
  { body, headers, at }: Answer<Quote>,
  { token, from, to }: QuoteWish,
  decimals: number | undefined,
): readonly HTMLElement[] {
  const { amountIn, bonderFee, estimatedReceived, deadline, destinationDeadline } = body;
  const amount = (raw: string): HTMLElement => amountText(raw, token, decimals);
  const destination = chainName(to);
  const fromL1 = from === "ethereum";
  /** Where the first of the two swaps is. */
  const first = fromL1 ? destination : chainName(from);
  /** Of one swap both are told the same. */
  const second = fromL1 ? `${destination}, again` : destination;
  const share = ratioOf(BigInt(bonderFee), BigInt(amountIn));
  const rate = ratioOf(BigInt(estimatedReceived), BigInt(amountIn));
  const nothing = make("span", {}, "No swap there ", rawText("0"));
  const headline = make(
    "div",
    { class: "headline" },
    make("p", { class: "label" }, `Arrives on ${destination}`),
    make("p", { class: "received" }, wholeTokens(estimatedReceived, token, decimals)),
    make("p", {}, rawText(estimatedReceived), " ", make("code", { class: "field" }, "estimatedReceived")),
  );
  if (estimatedReceived === "0") {
    headline.append(make("p", { class: "warning" }, "Nothing arrives: the fee is above the amount. Send more."));
  }
  const facts = [
    fact("You send", "amountIn", amount(amountIn)),
    fact(
      "Bonder fee",
      "bonderFee",
      amount(bonderFee),
      note(share > 1 ? "more than the amount" : `${formatShare(share)} of the amount`),
    ),
    fact("Rate, all in", undefined, make("span", {}, `1 ${token} sent gives ${rate.toFixed(6)} ${token}`)),
    fact("Price impact", undefined, make("span", { id: impactId }, "…")),
    fact(`Minimum on ${first}`, "amountOutMin", amount(body.amountOutMin)),
    fact(
      `Minimum on ${second}`,
      "destinationAmountOutMin",
      destinationDeadline === 0 ? nothing : amount(body.destinationAmountOutMin),
    ),
    fact(`Deadline on ${first}`, "deadline", timeText(deadline)),
    fact(
      `Deadline on ${second}`,
      "destinationDeadline",
      destinationDeadline === 0 ? (nothing.cloneNode(true) as HTMLElement) : timeText(destinationDeadline),
    ),
  ];
  return [headline, make("dl", { class: "facts" }, ...facts.flat()), ageLine(headers, at)];
}

/** The same in one sentence, for those who hear the page. */
export function quoteSaid(body: Quote, { token, from, to }: QuoteWish, decimals: number | undefined): string {
  const text = (raw: string): string => wholeTokens(raw, token, decimals).textContent ?? "";
  const { estimatedReceived, amountIn, bonderFee } = body;
  const route = `from ${chainName(from)} arrive on ${chainName(to)}`;
  return `${text(estimatedReceived)} of ${text(amountIn)} ${route}. The fee is ${text(bonderFee)}.`;
}

function ageLine(headers: Headers, at: number): HTMLElement {
  const age = headers.get("age");
  if (age === null) return make("p", { class: "age" }, "Computed for this request alone.");
  return make("p", { class: "age" }, "The chains were read ", ageText(at - Number(age) * 1000), " ago.");
}
