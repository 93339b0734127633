import type { ApiResponse } from "../shared/api/api-client.js";
import type { QuoteResponse } from "../shared/api/api-types.js";
import { createElement } from "../shared/elements/dom.js";
import {
  createAge,
  createAmount,
  createDescription,
  createNote,
  createRawValue,
  createTime,
  createTokenAmount,
} from "../shared/elements/value-elements.js";
import { toRatio } from "../shared/format/amounts.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { formatPercent } from "./price-impact.js";
import type { QuoteInput } from "./quote-input.js";

/** The element that shows the price impact once the curve is known. */
export const PRICE_IMPACT_ID = "quote-impact";

/** Renders a quote: what arrives, what it costs, which values to send with the transfer, and the age of the data. */
export function renderQuote(
  { body, headers, receivedAtMs }: ApiResponse<QuoteResponse>,
  { token, from, to }: QuoteInput,
  decimals: number | undefined,
): readonly HTMLElement[] {
  const { amountIn, bonderFee, estimatedReceived } = body;
  const amount = (raw: string): HTMLElement => createAmount(raw, token, decimals);
  const feeShare = toRatio(BigInt(bonderFee), BigInt(amountIn));
  const rate = toRatio(BigInt(estimatedReceived), BigInt(amountIn));
  const headline = createElement(
    "div",
    { class: "headline" },
    createElement("p", { class: "label" }, `Arrives on ${formatChainName(to)}`),
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
      createElement("p", { class: "warning" }, "Nothing arrives: the fee is higher than the amount. Send more."),
    );
  }
  const descriptions = [
    createDescription("You send", ["amountIn"], amount(amountIn)),
    createDescription(
      "Bonder fee",
      ["bonderFee"],
      amount(bonderFee),
      createNote(feeShare > 1 ? "more than the amount" : `${formatPercent(feeShare)} of the amount`),
    ),
    createDescription("Rate", [], createElement("span", {}, `${rate.toFixed(6)} ${token} per ${token} sent`)),
    createDescription("Price impact", [], createElement("span", { id: PRICE_IMPACT_ID }, "…")),
    ...renderSwapLimits(body, { from, to }, amount),
  ];
  return [
    headline,
    createElement("dl", { class: "details" }, ...descriptions.flat()),
    renderAge(headers, receivedAtMs),
  ];
}

/** Renders minimum amounts and deadlines of the two swaps. Equal values share a row. */
function renderSwapLimits(
  { amountOutMin, destinationAmountOutMin, deadline, destinationDeadline }: QuoteResponse,
  { from, to }: { readonly from: string; readonly to: string },
  amount: (raw: string) => HTMLElement,
): readonly (readonly HTMLElement[])[] {
  const destination = formatChainName(to);
  // A transfer from Ethereum has one swap, at its destination: both fields describe it.
  const source = from === "ethereum" ? destination : formatChainName(from);
  const hasDestinationSwap = destinationDeadline !== 0;
  const minimums =
    hasDestinationSwap && destinationAmountOutMin === amountOutMin
      ? [
          createDescription(
            source === destination ? `Minimum on ${destination}` : "Minimum on both chains",
            ["amountOutMin", "destinationAmountOutMin"],
            amount(amountOutMin),
          ),
        ]
      : [
          createDescription(`Minimum on ${source}`, ["amountOutMin"], amount(amountOutMin)),
          hasDestinationSwap
            ? createDescription(
                `Minimum on ${destination}`,
                ["destinationAmountOutMin"],
                amount(destinationAmountOutMin),
              )
            : [],
        ];
  const deadlines =
    deadline === destinationDeadline
      ? [createDescription("Deadline", ["deadline", "destinationDeadline"], createTime(deadline))]
      : [
          createDescription(`Deadline on ${source}`, ["deadline"], createTime(deadline)),
          hasDestinationSwap
            ? createDescription(`Deadline on ${destination}`, ["destinationDeadline"], createTime(destinationDeadline))
            : [],
        ];
  const noSwap = createDescription(
    `Swap on ${destination}`,
    ["destinationAmountOutMin", "destinationDeadline"],
    createElement("span", {}, "None ", createRawValue("0")),
  );
  return [...minimums, ...deadlines, hasDestinationSwap ? [] : noSwap];
}

/** Describes a quote in two sentences for screen readers. */
export function describeQuote(
  body: QuoteResponse,
  { token, from, to }: QuoteInput,
  decimals: number | undefined,
): string {
  const formatToken = (raw: string): string => createTokenAmount(raw, token, decimals).textContent ?? "";
  const { estimatedReceived, amountIn, bonderFee } = body;
  const route = `from ${formatChainName(from)} arrive on ${formatChainName(to)}`;
  return `${formatToken(estimatedReceived)} of ${formatToken(amountIn)} ${route}. The fee is ${formatToken(bonderFee)}.`;
}

function renderAge(headers: Headers, receivedAtMs: number): HTMLElement {
  const age = headers.get("age");
  if (age === null) return createElement("p", { class: "age" }, "Computed for this request only.");
  const since = createAge(receivedAtMs - Number(age) * 1000);
  return createElement("p", { class: "age" }, "Chain data was read ", since, " ago.");
}
