import { toRatio } from "../shared/amounts.js";
import type { ApiResponse } from "../shared/api-client.js";
import type { QuoteResponse } from "../shared/api-types.js";
import { formatChainName } from "../shared/chain-names.js";
import { createElement } from "../shared/dom.js";
import {
  createAge,
  createAmount,
  createDescription,
  createNote,
  createRawValue,
  createTime,
  createTokenAmount,
} from "../shared/value-elements.js";
import { formatPercent } from "./price-impact.js";
import type { QuoteInput } from "./quote-input.js";

/** Where the price impact is told once the curve is known. */
export const PRICE_IMPACT_ID = "quote-impact";

/** What a quote says: what arrives, what it costs, what to send with the transfer, and how old its facts are. */
export function renderQuote(
  { body, headers, receivedAtMs }: ApiResponse<QuoteResponse>,
  { token, from, to }: QuoteInput,
  decimals: number | undefined,
): readonly HTMLElement[] {
  const { amountIn, bonderFee, estimatedReceived, deadline, destinationDeadline } = body;
  const amount = (raw: string): HTMLElement => createAmount(raw, token, decimals);
  const destination = formatChainName(to);
  const fromL1 = from === "ethereum";
  /** Where the first of the two swaps is. */
  const first = fromL1 ? destination : formatChainName(from);
  /** Of one swap both are told the same. */
  const second = fromL1 ? `${destination}, again` : destination;
  const share = toRatio(BigInt(bonderFee), BigInt(amountIn));
  const rate = toRatio(BigInt(estimatedReceived), BigInt(amountIn));
  const nothing = createElement("span", {}, "No swap there ", createRawValue("0"));
  const headline = createElement(
    "div",
    { class: "headline" },
    createElement("p", { class: "label" }, `Arrives on ${destination}`),
    createElement("p", { class: "received" }, createTokenAmount(estimatedReceived, token, decimals)),
    createElement(
      "p",
      {},
      createRawValue(estimatedReceived),
      " ",
      createElement("code", { class: "field" }, "estimatedReceived"),
    ),
  );
  if (estimatedReceived === "0") {
    headline.append(
      createElement("p", { class: "warning" }, "Nothing arrives: the fee is above the amount. Send more."),
    );
  }
  const facts = [
    createDescription("You send", "amountIn", amount(amountIn)),
    createDescription(
      "Bonder fee",
      "bonderFee",
      amount(bonderFee),
      createNote(share > 1 ? "more than the amount" : `${formatPercent(share)} of the amount`),
    ),
    createDescription(
      "Rate, all in",
      undefined,
      createElement("span", {}, `1 ${token} sent gives ${rate.toFixed(6)} ${token}`),
    ),
    createDescription("Price impact", undefined, createElement("span", { id: PRICE_IMPACT_ID }, "…")),
    createDescription(`Minimum on ${first}`, "amountOutMin", amount(body.amountOutMin)),
    createDescription(
      `Minimum on ${second}`,
      "destinationAmountOutMin",
      destinationDeadline === 0 ? nothing : amount(body.destinationAmountOutMin),
    ),
    createDescription(`Deadline on ${first}`, "deadline", createTime(deadline)),
    createDescription(
      `Deadline on ${second}`,
      "destinationDeadline",
      destinationDeadline === 0 ? (nothing.cloneNode(true) as HTMLElement) : createTime(destinationDeadline),
    ),
  ];
  return [headline, createElement("dl", { class: "facts" }, ...facts.flat()), renderAge(headers, receivedAtMs)];
}

/** The same in one sentence, for those who hear the page. */
export function describeQuote(
  body: QuoteResponse,
  { token, from, to }: QuoteInput,
  decimals: number | undefined,
): string {
  const text = (raw: string): string => createTokenAmount(raw, token, decimals).textContent ?? "";
  const { estimatedReceived, amountIn, bonderFee } = body;
  const route = `from ${formatChainName(from)} arrive on ${formatChainName(to)}`;
  return `${text(estimatedReceived)} of ${text(amountIn)} ${route}. The fee is ${text(bonderFee)}.`;
}

function renderAge(headers: Headers, at: number): HTMLElement {
  const age = headers.get("age");
  if (age === null) return createElement("p", { class: "age" }, "Computed for this request alone.");
  return createElement("p", { class: "age" }, "The chains were read ", createAge(at - Number(age) * 1000), " ago.");
}
