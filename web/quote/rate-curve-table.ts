import { formatAmount, groupThousands } from "../shared/amounts.js";
import { make } from "../shared/dom.js";
import { formatShare, priceImpact, type QuotePoint, receivedPerSent } from "./price-impact.js";
import type { CurvePoint } from "./rate-curve.js";

/** The curve for those who read it: a row for each amount. */
export function curveTable(
  points: readonly CurvePoint[],
  small: QuotePoint | undefined,
  { token, decimals, asked }: { readonly token: string; readonly decimals: number; readonly asked: bigint },
): HTMLTableElement {
  const amount = (raw: bigint): string => groupThousands(formatAmount(raw, decimals));
  const heads = ["Sent", "Received", "Fee", "Per unit sent", "Price impact"];
  const body = points.map((point) => {
    const { sent } = point;
    const head = make("th", { scope: "row" }, amount(sent));
    const current = sent === asked ? { "aria-current": "true" } : {};
    if ("problem" in point) return make("tr", current, head, make("td", { colspan: "4" }, point.problem));
    const { quote } = point;
    const impact = small && priceImpact(quote, small);
    const cells = [
      amount(quote.received),
      amount(quote.fee),
      receivedPerSent(quote).toFixed(6),
      impact === undefined ? "not known" : formatShare(impact),
    ];
    return make("tr", current, head, ...cells.map((cell) => make("td", {}, cell)));
  });
  return make(
    "table",
    {},
    make("caption", {}, `What arrives of ${token}, by amount, in whole tokens`),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...body),
  );
}
