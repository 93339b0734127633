import type { TransferStatusResponse } from "../shared/api/api-types.js";
import { createElement } from "../shared/elements/dom.js";
import { createTransferState } from "../shared/elements/transfer-state.js";
import {
  createAge,
  createFieldName,
  createNote,
  createRawValue,
  createTokenAmount,
} from "../shared/elements/value-elements.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { formatTime } from "../shared/format/time.js";
import { formatHash } from "../shared/navigation/location-hash.js";
import type { AccountQuery } from "./account-query.js";
import { getTransferKey } from "./transfer-list.js";

interface Row {
  readonly element: HTMLElement;
  readonly state: HTMLElement;
  shown: TransferStatusResponse;
}

/** Returns a function that shows transfers in a list. It keeps the rows that stay, and with them the focus. */
export function createTransferRows(
  root: HTMLElement,
  query: AccountQuery,
  getDecimals: (token: string) => number | undefined,
): (transfers: readonly TransferStatusResponse[]) => void {
  const rows = new Map<string, Row>();

  function getRow(transfer: TransferStatusResponse): Row {
    const known = rows.get(getTransferKey(transfer));
    const row = known ?? createRow(transfer, query, getDecimals(transfer.token));
    rows.set(getTransferKey(transfer), row);
    if (row.shown.state !== transfer.state) row.state.replaceChildren(createTransferState(transfer.state));
    row.shown = transfer;
    return row;
  }

  return (transfers) => {
    for (const [index, transfer] of transfers.entries()) {
      const { element } = getRow(transfer);
      const present = root.children[index] ?? null;
      // Moving an element would take its focus.
      if (present !== element) root.insertBefore(element, present);
    }
  };
}

function createRow(transfer: TransferStatusResponse, query: AccountQuery, decimals: number | undefined): Row {
  const { transferId, token, amount, timestamp, sourceChainSlug, destinationChainSlug, state } = transfer;
  const parameters = new Map(Object.entries({ id: transferId, network: query.network }));
  const link = createElement(
    "a",
    { href: formatHash({ view: "transfer", parameters }) },
    createTokenAmount(amount, token, decimals),
  );
  const stateCell = createElement("span", { class: "row-state" }, createTransferState(state));
  const chains = `${formatChainName(sourceChainSlug)} to ${formatChainName(destinationChainSlug)}`;
  const sent = createElement("time", { datetime: new Date(timestamp * 1000).toISOString() }, formatTime(timestamp));
  const element = createElement(
    "li",
    {},
    link,
    createElement("span", { class: "row-chains" }, chains),
    createElement("span", { class: "row-time" }, sent, " ", createNote(createAge(timestamp * 1000), " ago")),
    createElement("span", { class: "row-account" }, ...renderOtherAccount(transfer, query.account)),
    createElement("span", { class: "row-account developer" }, ...renderFields({ transferId, amount, timestamp })),
    stateCell,
  );
  return { element, state: stateCell, shown: transfer };
}

/** Renders fields as the API returns them. */
function renderFields(fields: Readonly<Record<string, string | number>>): readonly (Node | string)[] {
  return Object.entries(fields).flatMap(([name, value]) => [
    createFieldName(name),
    " ",
    createRawValue(`${value}`),
    " ",
  ]);
}

/** Renders the other side of a transfer. The sender of a transfer is mostly its recipient too. */
function renderOtherAccount(
  { accountAddress, recipientAddress }: TransferStatusResponse,
  account: string,
): readonly (Node | string)[] {
  const own = account.toLowerCase();
  if (accountAddress === recipientAddress) return ["to itself"];
  const [preposition, other] = accountAddress === own ? ["to", recipientAddress] : ["from", accountAddress];
  return other === "" ? [] : [`${preposition} `, createElement("span", { class: "hash" }, other)];
}
