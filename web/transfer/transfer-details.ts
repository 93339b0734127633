import type { TransferStatusResponse, TransferSubstate } from "../shared/api/api-types.js";
import { createElement } from "../shared/elements/dom.js";
import { createTransferState, describeTransfer, STATE_TEXTS } from "../shared/elements/transfer-state.js";
import {
  createAmount,
  createDescription,
  createNote,
  createTime,
  createTokenAmount,
} from "../shared/elements/value-elements.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { getFeeLabel, isCctpTransfer } from "../shared/format/fee-label.js";
import { formatHash } from "../shared/navigation/location-hash.js";
import { renderTimeline } from "./transfer-timeline.js";

const SUBSTATE_TEXTS: Readonly<Record<TransferSubstate, string>> = {
  WAITING_FOR_BONDER: "Sent. It waits for a bonder to pay it out.",
  WAITING_FOR_ATTESTATION: "Sent by CCTP. It waits for the attestation, or for the attested message to be received.",
  WAITING_FOR_MESSAGE: "Sent from Ethereum. It waits for the message to its destination chain.",
  WAITING_FOR_SETTLEMENT: "No bonder pays it out. It waits for its settlement and can be withdrawn then.",
  WITHDRAWABLE: "Settled. Anybody can withdraw it for the recipient.",
  RECEIVED: "The transfer has arrived at its destination.",
  RECEIVED_HTOKEN: "The transfer has arrived as hTokens: no swap was made on the destination chain.",
};

/** Renders the status of a transfer as a timeline and in detail. Hashes and ids link to their own status. */
export function renderTransfer(
  body: TransferStatusResponse,
  decimals: number | undefined,
  network: string,
): readonly HTMLElement[] {
  const { state, deadline, bondTransactionHash } = body;
  const amount = (raw: string): HTMLElement => createAmount(raw, body.token, decimals);
  const createLink = (name: "of" | "id", value: string): HTMLElement => {
    const parameters = new Map(Object.entries({ [name]: value, network }));
    return createElement("a", { class: "hash", href: formatHash({ view: "transfer", parameters }) }, value);
  };
  const noReceipt = createElement("span", {}, state === "BONDED" ? "Not found yet" : "None yet");
  const otherLinks = body.otherTransferIds.map((id) => createLink("id", id));
  const descriptions = [
    createDescription("Sent by transaction", ["transactionHash"], createLink("of", body.transactionHash)),
    createDescription(
      "Received by transaction",
      ["bondTransactionHash"],
      bondTransactionHash === "" ? noReceipt : createLink("of", bondTransactionHash),
    ),
    createDescription("Transfer id", ["transferId"], createLink("id", body.transferId)),
    otherLinks.length === 0
      ? []
      : createDescription("Other transfers of the transaction", ["otherTransferIds"], ...otherLinks),
    createDescription("Amount", ["amount"], amount(body.amount), renderUsd(body.amountUsd)),
    createDescription(
      getFeeLabel(isCctpTransfer(body), body.sourceChainSlug),
      ["bonderFee"],
      amount(body.bonderFee),
      renderUsd(body.bonderFeeUsd),
    ),
    createDescription("Minimum after the swap", ["amountOutMin"], amount(body.amountOutMin)),
    createDescription(
      "Deadline of the swap",
      ["deadline"],
      deadline === 0 ? createElement("span", {}, "None") : createTime(deadline),
    ),
    renderAccount("Sender", "accountAddress", body.accountAddress),
    renderAccount("Recipient", "recipientAddress", body.recipientAddress),
    renderAccount("Bonder", "bonderAddress", body.bonderAddress),
  ];
  const hasExplorers = document.documentElement.dataset.demo === undefined;
  return [
    renderHeadline(body, decimals),
    renderTimeline(body, { decimals, nowMs: Date.now(), hasExplorers }),
    createElement("dl", { class: "details" }, ...descriptions.flat()),
  ];
}

/** Describes the state in one or two sentences for screen readers. */
export function describeTransferState(transfer: TransferStatusResponse): string {
  return `${describeTransfer(transfer)}. ${getMeaning(transfer)}`;
}

/** Returns what a transfer waits for, or how it ended. */
function getMeaning({ state, details }: TransferStatusResponse): string {
  return details === undefined ? STATE_TEXTS[state].meaning : SUBSTATE_TEXTS[details.substate];
}

function renderHeadline(body: TransferStatusResponse, decimals: number | undefined): HTMLElement {
  const { state, sourceChainSlug, destinationChainSlug, amount, token, details } = body;
  const { receivedAmount = "", receivedToken = "" } = details ?? {};
  const shown = receivedAmount === "" ? { amount, token } : { amount: receivedAmount, token: receivedToken || token };
  return createElement(
    "div",
    { class: "headline" },
    createElement(
      "p",
      { class: "label" },
      `${formatChainName(sourceChainSlug)} to ${formatChainName(destinationChainSlug)}`,
    ),
    createElement("p", { class: "received" }, createTokenAmount(shown.amount, shown.token, decimals)),
    createElement("p", { class: "meaning" }, createTransferState(state), " ", getMeaning(body)),
  );
}

function renderAccount(label: string, field: string, address: string): readonly HTMLElement[] {
  return address === "" ? [] : createDescription(label, [field], createElement("span", { class: "hash" }, address));
}

function renderUsd(value: number): HTMLElement | undefined {
  if (value === 0) return undefined;
  return createNote(`about ${value.toLocaleString("en", { style: "currency", currency: "USD" })}`);
}
