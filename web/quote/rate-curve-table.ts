import { createElement } from "../shared/elements/dom.js";
import { formatAmount, groupThousands } from "../shared/format/amounts.js";
import { effectiveRate, formatPercent, priceImpact, type QuotePoint } from "./price-impact.js";
import type { CurvePoint } from "./rate-curve.js";

/** Renders the curve as a table with one row per amount. */
export function renderRateCurveTable(
  points: readonly CurvePoint[],
  reference: QuotePoint | undefined,
  {
    token,
    decimals,
    quotedAmount,
  }: { readonly token: string; readonly decimals: number; readonly quotedAmount: bigint },
): HTMLTableElement {
  const formatRaw = (raw: bigint): string => groupThousands(formatAmount(raw, decimals));
  const heads = ["Sent", "Received", "Fee", "Received per unit sent", "Price impact"];
  const body = points.map((point) => {
    const { sent } = point;
    const head = createElement("th", { scope: "row" }, formatRaw(sent));
    const attributes = sent === quotedAmount ? { "aria-current": "true" } : {};
    if ("error" in point)
      return createElement("tr", attributes, head, createElement("td", { colspan: "4" }, point.error));
    const { quote } = point;
    const impact = reference && priceImpact(quote, reference);
    const cells = [
      formatRaw(quote.received),
      formatRaw(quote.fee),
      effectiveRate(quote).toFixed(6),
      impact === undefined ? "unknown" : formatPercent(impact),
    ];
    return createElement("tr", attributes, head, ...cells.map((cell) => createElement("td", {}, cell)));
  });
  return createElement(
    "table",
    {},
    createElement("caption", {}, `Received ${token} by amount sent, in whole tokens`),
    createElement(
      "thead",
      {},
      createElement("tr", {}, ...heads.map((head) => createElement("th", { scope: "col" }, head))),
    ),
    createElement("tbody", {}, ...body),
  );
}
