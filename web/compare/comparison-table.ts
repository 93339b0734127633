import { toNetworkParameter } from "../shared/api/network.js";
import { createElement } from "../shared/elements/dom.js";
import { createNote, createRawValue } from "../shared/elements/value-elements.js";
import { formatAmount, formatPercent, formatUsd, groupThousands } from "../shared/format/amounts.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { formatDuration } from "../shared/format/time.js";
import { formatHash } from "../shared/navigation/location-hash.js";
import type { ComparedRoute } from "./comparison.js";

interface ComparedTransfer {
  readonly token: string;
  readonly from: string;
  readonly network: string;
  readonly decimals: number;
  /** What is sent, in the token's smallest unit. */
  readonly amount: bigint;
  /** The same in dollars. */
  readonly sum: number;
}

/** Renders the destinations as a table. Each links to its quote. */
export function renderComparison(routes: readonly ComparedRoute[], transfer: ComparedTransfer): HTMLTableElement {
  const heads = ["To", "Arrives", "Cost", "Delivery"];
  return createElement(
    "table",
    { class: "comparison" },
    createElement(
      "caption",
      { class: "visually-hidden" },
      `What ${formatUsd(transfer.sum)} of ${transfer.token} from ${formatChainName(transfer.from)} bring, best first`,
    ),
    createElement(
      "thead",
      {},
      createElement("tr", {}, ...heads.map((head) => createElement("th", { scope: "col" }, head))),
    ),
    createElement("tbody", {}, ...routes.map((route) => renderRow(route, transfer))),
  );
}

function renderRow(route: ComparedRoute, transfer: ComparedTransfer): HTMLElement {
  const { token, from, network, decimals, amount, sum } = transfer;
  const { toChain } = route;
  const parameters = { token, from, to: toChain, amount: formatAmount(amount, decimals) };
  const href = formatHash({
    view: "quote",
    parameters: new Map(Object.entries({ ...parameters, network: toNetworkParameter(network) })),
  });
  const head = createElement("th", { scope: "row" }, createElement("a", { href }, formatChainName(toChain)));
  if ("error" in route)
    return createElement("tr", { "data-outcome": "error" }, head, createElement("td", { colspan: "3" }, route.error));
  const { received, receivedUsd, arrivalSeconds, canBeDelivered } = route;
  const tokens = `${groupThousands(formatAmount(received, decimals))} ${token}`;
  const cost = sum - receivedUsd;
  const cells = [
    [createElement("strong", {}, formatUsd(receivedUsd)), createNote(tokens), createRawValue(String(received))],
    [`${cost < 0 ? "−" : ""}${formatUsd(Math.abs(cost))}`, createNote(formatPercent(cost / sum))],
    [
      canBeDelivered
        ? describeArrival(arrivalSeconds)
        : createElement("span", { class: "impossible" }, "Not possible now"),
    ],
  ];
  return createElement("tr", {}, head, ...cells.map((cell) => createElement("td", {}, ...cell)));
}

function describeArrival(seconds: number | undefined): string {
  return seconds === undefined ? "Time unknown" : `After about ${formatDuration(seconds)}`;
}
