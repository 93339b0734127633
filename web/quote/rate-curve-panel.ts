import { buildPath, fetchApiWithRetry } from "../shared/api/api-client.js";
import type { BatchQuotesResponse, QuoteResponse } from "../shared/api/api-types.js";
import { getElement } from "../shared/elements/dom.js";
import { formatAmount, groupThousands } from "../shared/format/amounts.js";
import { sleep } from "../shared/format/time.js";
import {
  effectiveRate,
  findFirstAboveImpact,
  findReferencePoint,
  formatPercent,
  priceImpact,
  type QuotePoint,
} from "./price-impact.js";
import { type CurvePoint, sampleAmounts, selectQuotedPoints, toCurvePoints, toQuotePoint } from "./rate-curve.js";
import { drawRateCurve, type RateCurveChart } from "./rate-curve-chart.js";
import { renderRateCurveTable } from "./rate-curve-table.js";

export interface RateCurvePanel {
  /** Dims the curve until it is drawn again. */
  markOutdated(): void;
  /**
   * Fetches quotes for amounts around a quote and draws them.
   * @param query parameters of the quote
   * @returns a description of the price impact at the quoted amount
   */
  show(
    quote: QuoteResponse,
    query: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<string>;
  hide(): void;
}

/** The summary names the amount at which the price impact exceeds this share. */
const NOTABLE_PRICE_IMPACT = 0.01;
/** Avoids fetching a whole curve for an amount that is still being typed. */
const DEBOUNCE_MS = 250;
const POINTER_HINT = "Point at the curve or open the table to see single amounts.";

export function createRateCurvePanel(): RateCurvePanel {
  const root = getElement("curve", HTMLElement);
  const figure = getElement("curve-chart", HTMLElement);
  const readout = getElement("curve-point", HTMLElement);
  const summary = getElement("curve-summary", HTMLElement);
  const table = getElement("curve-table", HTMLElement);
  let chart: RateCurveChart | undefined;

  document.addEventListener("themechange", () => chart?.redraw());

  async function show(
    quote: QuoteResponse,
    query: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<string> {
    root.hidden = false;
    await sleep(DEBOUNCE_MS, signal);
    const quotedAmount = BigInt(quote.amountIn);
    const token = query.token ?? "";
    const points = await fetchCurvePoints(sampleAmounts(quotedAmount), query, signal);
    const quotedPoints = selectQuotedPoints(points);
    const reference = findReferencePoint(quotedPoints);
    const formatToken = (raw: bigint): string => `${groupThousands(formatAmount(raw, decimals))} ${token}`;
    const impact = describeImpact(toQuotePoint(quote), reference, formatToken);
    table.replaceChildren(renderRateCurveTable(points, reference, { token, decimals, quotedAmount }));
    summary.textContent = describeCurve(quotedPoints, reference, formatToken);
    chart?.destroy();
    chart = undefined;
    readout.textContent = POINTER_HINT;
    if (quotedPoints.length > 1) {
      const newChart = await drawRateCurve(figure, {
        token,
        toNumber: (raw) => Number(formatAmount(raw, decimals)),
        points: quotedPoints,
        reference,
        quotedAmount,
        onPoint: (text) => {
          readout.textContent = text ?? POINTER_HINT;
        },
      });
      if (signal.aborted) newChart.destroy();
      else chart = newChart;
    }
    signal.throwIfAborted();
    root.setAttribute("aria-busy", "false");
    return impact;
  }

  return {
    markOutdated: () => root.setAttribute("aria-busy", "true"),
    show,
    hide() {
      root.hidden = true;
    },
  };
}

/** Fetches the quotes of all amounts in one call, so that they are of the same state of the chains. */
async function fetchCurvePoints(
  amounts: readonly bigint[],
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly CurvePoint[]> {
  try {
    const path = buildPath("/v1/quotes", { ...query, amount: amounts.map(String) });
    const { body } = await fetchApiWithRetry<BatchQuotesResponse>(path, signal);
    return toCurvePoints(amounts, body.results);
  } catch (error) {
    signal.throwIfAborted();
    return amounts.map((sent) => ({ sent, error: (error as Error).message }));
  }
}

function describeImpact(
  point: QuotePoint,
  reference: QuotePoint | undefined,
  formatToken: (raw: bigint) => string,
): string {
  const impact = reference && priceImpact(point, reference);
  if (point.received === 0n) return "Unknown: nothing arrives";
  if (reference === undefined || impact === undefined) return "Unknown: the amount is too small";
  return `${formatPercent(impact)} compared with the rate for ${formatToken(reference.sent)}`;
}

/** Summarizes the curve: where the price impact becomes notable, and the best rate. */
function describeCurve(
  points: readonly QuotePoint[],
  reference: QuotePoint | undefined,
  formatToken: (raw: bigint) => string,
): string {
  const last = points.at(-1);
  if (points.every(({ received }) => received === 0n)) return "Nothing arrives for any of these amounts.";
  if (reference === undefined || last === undefined) return "These amounts are too small to compute a price impact.";
  const best = points.reduce((a, b) => (effectiveRate(b) > effectiveRate(a) ? b : a), reference);
  const steep = findFirstAboveImpact(NOTABLE_PRICE_IMPACT, points, reference);
  const threshold = formatPercent(NOTABLE_PRICE_IMPACT);
  const impact =
    steep === undefined
      ? `The price impact stays below ${threshold} up to ${formatToken(last.sent)}.`
      : `The price impact exceeds ${threshold} at ${formatToken(steep.sent)}.`;
  return `${impact} The best rate is ${effectiveRate(best).toFixed(6)}, at ${formatToken(best.sent)}.`;
}
