import type { ApiResponse } from "../shared/api/api-client.js";
import type { DetailedQuoteResponse, QuoteDetails, QuoteResponse } from "../shared/api/api-types.js";
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
import { formatAmount, formatPercent, formatUsd, toRatio } from "../shared/format/amounts.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { getFeeLabel, isCctpToken } from "../shared/format/fee-label.js";
import { formatDuration } from "../shared/format/time.js";
import type { QuoteInput } from "./quote-input.js";
import { findWarnings } from "./quote-warnings.js";

/** Renders a quote: what arrives and when, what it costs, which values to send with the transfer, and the age of the data. */
export function renderQuote(
  { body, headers, receivedAtMs }: ApiResponse<DetailedQuoteResponse>,
  { token, from, to, amountKind }: QuoteInput,
  decimals: number | undefined,
): readonly HTMLElement[] {
  const { amountIn, bonderFee, estimatedReceived, details } = body;
  const amount = (raw: string): HTMLElement => createAmount(raw, token, decimals);
  const worth = (raw: string): HTMLElement | undefined => createWorth(raw, details.prices.tokenUsd, decimals);
  const feeShare = toRatio(BigInt(bonderFee), BigInt(amountIn));
  const rate = toRatio(BigInt(estimatedReceived), BigInt(amountIn));
  const warnings = findWarnings(body, { token, to, decimals });
  const verb = details.limits.isLiquidityAvailable ? "Arrives" : "Would arrive";
  const sent = { label: "You send", field: "amountIn", raw: amountIn };
  const received = { label: `${verb} on ${formatChainName(to)}`, field: "estimatedReceived", raw: estimatedReceived };
  // What was asked for is large.
  const [answer, given] = amountKind === "send" ? [received, sent] : [sent, received];
  const headline = createElement(
    "div",
    { class: "headline" },
    ...warnings.map((text) => createElement("p", { class: "alarm", role: "alert" }, text)),
    createElement("p", { class: "label" }, answer.label),
    createElement("p", { class: "received" }, createTokenAmount(answer.raw, token, decimals)),
    createElement(
      "p",
      {},
      worth(answer.raw),
      " ",
      createRawValue(answer.raw),
      " ",
      createElement("code", { class: "field" }, answer.field),
    ),
  );
  const descriptions = [
    createDescription(given.label, [given.field], amount(given.raw), worth(given.raw)),
    createDescription(
      getFeeLabel(isCctpToken(token), from),
      ["bonderFee"],
      amount(bonderFee),
      worth(bonderFee),
      createNote(feeShare > 1 ? "more than the amount" : `${formatPercent(feeShare)} of the amount`),
    ),
    createDescription("Rate", [], createElement("span", {}, `${rate.toFixed(6)} ${token} received per ${token} sent`)),
    ...renderSwapLimits(body, { from, to }, amount),
  ];
  return [
    headline,
    renderFacts(details, to, amount),
    createElement("dl", { class: "details" }, ...descriptions.flat()),
    renderAge(headers, receivedAtMs),
  ];
}

/** Creates what an amount is worth. Undefined if the price or the decimals are not known. */
function createWorth(raw: string, tokenUsd: number, decimals: number | undefined): HTMLElement | undefined {
  if (tokenUsd === 0 || decimals === undefined) return undefined;
  return createNote(`≈ ${formatUsd(Number(formatAmount(BigInt(raw), decimals)) * tokenUsd)}`);
}

/** Renders when a transfer arrives, what it does to the pools, and which amounts the route can carry. */
function renderFacts(
  { deliveryTime, priceImpact, limits }: QuoteDetails,
  to: string,
  amount: (raw: string) => HTMLElement,
): HTMLElement {
  const text = (...content: readonly string[]): HTMLElement => createElement("span", {}, ...content);
  const arrival =
    deliveryTime === undefined
      ? [text("Unknown"), createNote("no measured transfers")]
      : [
          text(`About ${formatDuration(deliveryTime.p50Seconds)}`),
          createNote(`9 of 10 within ${formatDuration(deliveryTime.p90Seconds)}`),
        ];
  const impact = priceImpact === undefined ? [text("Unknown")] : [text(formatPercent(priceImpact / 100))];
  const facts = [
    createDescription("Arrival", ["deliveryTime"], ...arrival),
    createDescription("Price impact", ["priceImpact"], ...impact),
    createDescription(
      "Smallest amount",
      ["limits.minAmount"],
      limits.minAmount === "" ? text("None") : amount(limits.minAmount),
    ),
    createDescription(
      limits.liquidityBasis === "CCTP_BURN_LIMIT" ? "Largest amount" : `Available on ${formatChainName(to)}`,
      ["limits.availableLiquidity"],
      describeLiquidity(limits, amount),
    ),
  ];
  return createElement("dl", { class: "facts" }, ...facts.map((fact) => createElement("div", {}, ...fact)));
}

function describeLiquidity(
  { liquidityBasis, availableLiquidity }: QuoteDetails["limits"],
  amount: (raw: string) => HTMLElement,
): HTMLElement {
  if (liquidityBasis === "UNLIMITED") return createElement("span", {}, "No limit");
  if (liquidityBasis === "UNKNOWN") return createElement("span", {}, "Unknown");
  return amount(availableLiquidity);
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
  body: DetailedQuoteResponse,
  { token, from, to }: QuoteInput,
  decimals: number | undefined,
): string {
  const formatToken = (raw: string): string => createTokenAmount(raw, token, decimals).textContent ?? "";
  const { estimatedReceived, amountIn, bonderFee, details } = body;
  const verb = details.limits.isLiquidityAvailable ? "arrive" : "would arrive";
  const route = `from ${formatChainName(from)} ${verb} on ${formatChainName(to)}`;
  return `${formatToken(estimatedReceived)} of ${formatToken(amountIn)} ${route}. The fee is ${formatToken(bonderFee)}.`;
}

function renderAge(headers: Headers, receivedAtMs: number): HTMLElement {
  const age = headers.get("age");
  if (age === null) return createElement("p", { class: "age" }, "Computed for this request only.");
  const since = createAge(receivedAtMs - Number(age) * 1000);
  return createElement("p", { class: "age" }, "Chain data was read ", since, " ago.");
}
