import { formatAmount, groupThousands } from "../shared/amounts.js";
import { askPatiently, pathOf } from "../shared/api-client.js";
import type { Quote } from "../shared/api-types.js";
import { find } from "../shared/dom.js";
import { pause } from "../shared/time.js";
import {
  firstAbove,
  formatShare,
  priceImpact,
  type QuotePoint,
  receivedPerSent,
  smallAmountOf,
} from "./price-impact.js";
import { amountsAround, type CurvePoint, quotedPoints, quoteEach } from "./rate-curve.js";
import { type CurveChart, drawCurve } from "./rate-curve-chart.js";
import { curveTable } from "./rate-curve-table.js";

export interface CurvePanel {
  /** What is drawn is of another quote from now on. */
  outdate(): void;
  /**
   * Asks for the quotes around one and draws what they say.
   * @param parameters of the quote
   * @returns the price impact at that amount, in words
   */
  show(
    quote: Quote,
    parameters: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<string>;
  hide(): void;
}

/** From here on it is told: one percent. */
const steepImpact = 0.01;
/** Nobody wants the curve of an amount that is still being typed. */
const settledMs = 250;

export function createCurvePanel(): CurvePanel {
  const root = find("curve", HTMLElement);
  const figure = find("curve-chart", HTMLElement);
  const readout = find("curve-point", HTMLElement);
  const summary = find("curve-summary", HTMLElement);
  const table = find("curve-table", HTMLElement);
  let chart: CurveChart | undefined;

  document.addEventListener("themechange", () => chart?.recolour());

  async function show(
    quote: Quote,
    parameters: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<string> {
    root.hidden = false;
    await pause(settledMs, signal);
    const asked = BigInt(quote.amountIn);
    const token = parameters.token ?? "";
    const points = await quoteEach(
      amountsAround(asked),
      async (sent) => (sent === asked ? { sent, quote: toPoint(quote) } : quoteOf(sent, parameters, signal)),
      signal,
    );
    const quoted = quotedPoints(points);
    const small = smallAmountOf(quoted);
    const amount = (raw: bigint): string => `${groupThousands(formatAmount(raw, decimals))} ${token}`;
    const impact = impactText(toPoint(quote), small, amount);
    table.replaceChildren(curveTable(points, small, { token, decimals, asked }));
    summary.textContent = summaryText(quoted, small, amount);
    chart?.destroy();
    chart = undefined;
    const hint = "Point at the curve, or open the table below, for single amounts.";
    readout.textContent = hint;
    if (quoted.length > 1) {
      const drawn = await drawCurve(figure, {
        token,
        toNumber: (raw) => Number(formatAmount(raw, decimals)),
        points: quoted,
        small,
        asked,
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
    outdate: () => root.setAttribute("aria-busy", "true"),
    show,
    hide() {
      root.hidden = true;
    },
  };
}

async function quoteOf(
  sent: bigint,
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<CurvePoint> {
  try {
    const { body } = await askPatiently<Quote>(pathOf("/v1/quote", { ...parameters, amount: String(sent) }), signal);
    return { sent, quote: toPoint(body) };
  } catch (error) {
    signal.throwIfAborted();
    return { sent, problem: (error as Error).message };
  }
}

function toPoint({ amountIn, estimatedReceived, bonderFee }: Quote): QuotePoint {
  return { sent: BigInt(amountIn), received: BigInt(estimatedReceived), fee: BigInt(bonderFee) };
}

function impactText(point: QuotePoint, small: QuotePoint | undefined, amount: (raw: bigint) => string): string {
  const impact = small && priceImpact(point, small);
  if (point.received === 0n) return "Not known: nothing arrives";
  if (small === undefined || impact === undefined) return "Not known: the amount is too small to tell";
  return `${formatShare(impact)}, held against the rate for ${amount(small.sent)}`;
}

/** What the curve shows, in words. */
function summaryText(
  points: readonly QuotePoint[],
  small: QuotePoint | undefined,
  amount: (raw: bigint) => string,
): string {
  const last = points.at(-1);
  if (points.every(({ received }) => received === 0n)) return "Nothing arrives of any amount around this one.";
  if (small === undefined || last === undefined) return "These amounts are too small to tell a price impact.";
  const best = points.reduce((a, b) => (receivedPerSent(b) > receivedPerSent(a) ? b : a), small);
  const steep = firstAbove(steepImpact, points, small);
  const share = formatShare(steepImpact);
  const impact =
    steep === undefined
      ? `The price impact stays below ${share} up to ${amount(last.sent)}.`
      : `The price impact passes ${share} before ${amount(steep.sent)}.`;
  return `${impact} Most arrives per unit sent at ${amount(best.sent)}: ${receivedPerSent(best).toFixed(6)}.`;
}
