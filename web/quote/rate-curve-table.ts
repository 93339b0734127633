import { formatAmount, groupThousands } from "../shared/amounts.js";
import { createElement } from "../shared/dom.js";
import { effectiveRate, formatPercent, priceImpact, type QuotePoint } from "./price-impact.js";
import type { CurvePoint } from "./rate-curve.js";

/** The curve for those who read it: a row for each amount. */
export function renderRateCurveTable(
  points: readonly CurvePoint[],
  small: QuotePoint | undefined,
  { token, decimals, asked }: { readonly token: string; readonly decimals: number; readonly asked: bigint },
): HTMLTableElement {
  const amount = (raw: bigint): string => groupThousands(formatAmount(raw, decimals));
  const heads = ["Sent", "Received", "Fee", "Per unit sent", "Price impact"];
  const body = points.map((point) => {
    const { sent } = point;
    const head = createElement("th", { scope: "row" }, amount(sent));
    const current = sent === asked ? { "aria-current": "true" } : {};
    if ("problem" in point)
      return createElement("tr", current, head, createElement("td", { colspan: "4" }, point.problem));
    const { quote } = point;
    const impact = small && priceImpact(quote, small);
    const cells = [
      amount(quote.received),
      amount(quote.fee),
      effectiveRate(quote).toFixed(6),
      impact === undefined ? "not known" : formatPercent(impact),
    ];
    return createElement("tr", current, head, ...cells.map((cell) => createElement("td", {}, cell)));
  });
  return createElement(
    "table",
    {},
    createElement("caption", {}, `What arrives of ${token}, by amount, in whole tokens`),
    createElement(
      "thead",
      {},
      createElement("tr", {}, ...heads.map((head) => createElement("th", { scope: "col" }, head))),
    ),
    createElement("tbody", {}, ...body),
  );
}
