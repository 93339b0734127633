import { fetchApiWithRetry } from "../shared/api/api-client.js";
import type { BatchQuotesResponse, DetailedQuoteResponse } from "../shared/api/api-types.js";
import { buildPath } from "../shared/api/build-path.js";
import { getElement } from "../shared/elements/dom.js";
import { formatAmount, groupThousands } from "../shared/format/amounts.js";
import { sleep } from "../shared/format/time.js";
import { type CurvePoint, describeCurve, sampleAmounts, selectQuotedPoints, toCurvePoints } from "./rate-curve.js";
import { drawRateCurve, type RateCurveChart } from "./rate-curve-chart.js";
import { renderRateCurveTable } from "./rate-curve-table.js";

export interface RateCurvePanel {
  /** Dims the curve until it is drawn again. */
  markOutdated(): void;
  /**
   * Fetches quotes for amounts around a quote and draws them.
   * @param query parameters of the quote
   */
  show(
    quote: DetailedQuoteResponse,
    query: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<void>;
  hide(): void;
}

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
    quote: DetailedQuoteResponse,
    query: Readonly<Record<string, string>>,
    decimals: number,
    signal: AbortSignal,
  ): Promise<void> {
    root.hidden = false;
    await sleep(DEBOUNCE_MS, signal);
    const quotedAmount = BigInt(quote.amountIn);
    const token = query.token ?? "";
    const points = await fetchCurvePoints(sampleAmounts(quotedAmount), query, signal);
    const quotedPoints = selectQuotedPoints(points);
    const formatToken = (raw: bigint): string => `${groupThousands(formatAmount(raw, decimals))} ${token}`;
    table.replaceChildren(renderRateCurveTable(points, { token, decimals, quotedAmount }));
    summary.textContent = describeCurve(quotedPoints, formatToken);
    chart?.destroy();
    chart = undefined;
    readout.textContent = POINTER_HINT;
    if (quotedPoints.length > 1) {
      const newChart = await drawRateCurve(figure, {
        token,
        toNumber: (raw) => Number(formatAmount(raw, decimals)),
        points: quotedPoints,
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
    const path = buildPath("/v1/quotes", { ...query, receiveAmount: "", amount: amounts.map(String), view: "FULL" });
    const { body } = await fetchApiWithRetry<BatchQuotesResponse<DetailedQuoteResponse>>(path, signal);
    return toCurvePoints(amounts, body.results);
  } catch (error) {
    signal.throwIfAborted();
    return amounts.map((sent) => ({ sent, error: (error as Error).message }));
  }
}
