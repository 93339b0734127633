import { createElement } from "../shared/elements/dom.js";
import { formatAmount, formatPercent, groupThousands } from "../shared/format/amounts.js";
import { type CurvePoint, effectiveRate } from "./rate-curve.js";

/** Renders the curve as a table with one row per amount. */
export function renderRateCurveTable(
  points: readonly CurvePoint[],
  {
    token,
    decimals,
    quotedAmount,
  }: { readonly token: string; readonly decimals: number; readonly quotedAmount: bigint },
): HTMLTableElement {
  const formatRaw = (raw: bigint): string => groupThousands(formatAmount(raw, decimals));
  const heads = ["Sent", "Received", "Fee", "Received per unit sent", "Price impact", "Can be delivered"];
  const body = points.map((point) => {
    const { sent } = point;
    const head = createElement("th", { scope: "row" }, formatRaw(sent));
    const attributes = sent === quotedAmount ? { "aria-current": "true" } : {};
    if ("error" in point)
      return createElement("tr", attributes, head, createElement("td", { colspan: "5" }, point.error));
    const { quote } = point;
    const { priceImpact } = quote;
    const cells = [
      formatRaw(quote.received),
      formatRaw(quote.fee),
      effectiveRate(quote).toFixed(6),
      priceImpact === undefined ? "unknown" : formatPercent(priceImpact / 100),
      quote.canBeDelivered ? "yes" : "no",
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
