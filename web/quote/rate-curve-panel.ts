import { formatAmount, groupThousands } from "../shared/amounts.js";
import { buildPath, fetchApiWithRetry } from "../shared/api-client.js";
import type { QuoteResponse } from "../shared/api-types.js";
import { getElement } from "../shared/dom.js";
import { sleep } from "../shared/time.js";
import {
  effectiveRate,
  findFirstAboveImpact,
  findReferencePoint,
  formatPercent,
  priceImpact,
  type QuotePoint,
} from "./price-impact.js";
import { type CurvePoint, quoteAmounts, sampleAmounts, selectQuotedPoints } from "./rate-curve.js";
import { drawRateCurve, type RateCurveChart } from "./rate-curve-chart.js";
import { renderRateCurveTable } from "./rate-curve-table.js";

export interface RateCurvePanel {
  /** What is drawn is of another quote from now on. */
  markOutdated(): void;
  /**
   * Asks for the quotes around one and draws what they say.
   * @param parameters of the quote
   * @returns the price impact at that amount, in words
   */
  show(
    quote: QuoteResponse,
    parameters: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<string>;
  hide(): void;
}

/** From here on it is told: one percent. */
const NOTABLE_PRICE_IMPACT = 0.01;
/** Nobody wants the curve of an amount that is still being typed. */
const DEBOUNCE_MS = 250;

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
    parameters: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<string> {
    root.hidden = false;
    await sleep(DEBOUNCE_MS, signal);
    const quotedAmount = BigInt(quote.amountIn);
    const token = parameters.token ?? "";
    const points = await quoteAmounts(
      sampleAmounts(quotedAmount),
      async (sent) =>
        sent === quotedAmount ? { sent, quote: toPoint(quote) } : fetchCurvePoint(sent, parameters, signal),
      signal,
    );
    const quoted = selectQuotedPoints(points);
    const reference = findReferencePoint(quoted);
    const amount = (raw: bigint): string => `${groupThousands(formatAmount(raw, decimals))} ${token}`;
    const impact = describeImpact(toPoint(quote), reference, amount);
    table.replaceChildren(renderRateCurveTable(points, reference, { token, decimals, asked: quotedAmount }));
    summary.textContent = describeCurve(quoted, reference, amount);
    chart?.destroy();
    chart = undefined;
    const hint = "Point at the curve, or open the table below, for single amounts.";
    readout.textContent = hint;
    if (quoted.length > 1) {
      const drawn = await drawRateCurve(figure, {
        token,
        toNumber: (raw) => Number(formatAmount(raw, decimals)),
        points: quoted,
        reference,
        quotedAmount,
        onPoint: (text) => {
          readout.textContent = text ?? hint;
        },
      });
      if (signal.aborted) drawn.destroy();
      else chart = drawn;
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

async function fetchCurvePoint(
  sent: bigint,
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<CurvePoint> {
  try {
    const { body } = await fetchApiWithRetry<QuoteResponse>(
      buildPath("/v1/quote", { ...parameters, amount: String(sent) }),
      signal,
    );
    return { sent, quote: toPoint(body) };
  } catch (error) {
    signal.throwIfAborted();
    return { sent, problem: (error as Error).message };
  }
}

function toPoint({ amountIn, estimatedReceived, bonderFee }: QuoteResponse): QuotePoint {
  return { sent: BigInt(amountIn), received: BigInt(estimatedReceived), fee: BigInt(bonderFee) };
}

function describeImpact(point: QuotePoint, small: QuotePoint | undefined, amount: (raw: bigint) => string): string {
  const impact = small && priceImpact(point, small);
  if (point.received === 0n) return "Not known: nothing arrives";
  if (small === undefined || impact === undefined) return "Not known: the amount is too small to tell";
  return `${formatPercent(impact)}, held against the rate for ${amount(small.sent)}`;
}

/** What the curve shows, in words. */
function describeCurve(
  points: readonly QuotePoint[],
  small: QuotePoint | undefined,
  amount: (raw: bigint) => string,
): string {
  const last = points.at(-1);
  if (points.every(({ received }) => received === 0n)) return "Nothing arrives of any amount around this one.";
  if (small === undefined || last === undefined) return "These amounts are too small to tell a price impact.";
  const best = points.reduce((a, b) => (effectiveRate(b) > effectiveRate(a) ? b : a), small);
  const steep = findFirstAboveImpact(NOTABLE_PRICE_IMPACT, points, small);
  const share = formatPercent(NOTABLE_PRICE_IMPACT);
  const impact =
    steep === undefined
      ? `The price impact stays below ${share} up to ${amount(last.sent)}.`
      : `The price impact passes ${share} before ${amount(steep.sent)}.`;
  return `${impact} Most arrives per unit sent at ${amount(best.sent)}: ${effectiveRate(best).toFixed(6)}.`;
}
