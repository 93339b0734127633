import type { TransferState, TransferStatusResponse } from "../api/api-types.js";
import { formatChainName } from "../format/chain-names.js";
import { createElement } from "./dom.js";

export const STATE_TEXTS: Readonly<Record<TransferState, { readonly label: string; readonly meaning: string }>> = {
  PENDING: { label: "Pending", meaning: "Sent but not received yet." },
  BONDED: { label: "Received", meaning: "The transfer has arrived at its destination." },
  UNBONDABLE: { label: "Unbondable", meaning: "No bonder can deliver it. It can be withdrawn after settlement." },
};

/** Creates a state as its label on a colour. */
export function createTransferState(state: TransferState): HTMLElement {
  return createElement("span", { class: "state", "data-state": state }, STATE_TEXTS[state].label);
}

/** Describes the state, token and chains of a transfer for screen readers. */
export function describeTransfer({
  state,
  token,
  sourceChainSlug,
  destinationChainSlug,
}: TransferStatusResponse): string {
  const chains = `from ${formatChainName(sourceChainSlug)} to ${formatChainName(destinationChainSlug)}`;
  return `${STATE_TEXTS[state].label}: ${token} ${chains}`;
}
