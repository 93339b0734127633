import type { ApiResponse } from "../shared/api/api-client.js";
import type { TransferStatusResponse } from "../shared/api/api-types.js";
import { createElement } from "../shared/elements/dom.js";
import {
  createAge,
  createAmount,
  createDescription,
  createNote,
  createTime,
  createTokenAmount,
} from "../shared/elements/value-elements.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { formatTime } from "../shared/format/time.js";
import { formatHash } from "../shared/navigation/location-hash.js";

const STATE_TEXTS: Readonly<
  Record<TransferStatusResponse["state"], { readonly label: string; readonly meaning: string }>
> = {
  PENDING: { label: "Pending", meaning: "Sent but not received yet." },
  BONDED: { label: "Received", meaning: "The transfer has arrived at its destination." },
  UNBONDABLE: { label: "Unbondable", meaning: "No bonder can deliver it. It can be withdrawn after settlement." },
};

const SOURCE_LABELS: Readonly<Record<string, string>> = {
  chain: "the chains",
  index: "the index",
  explorer: "the explorer API",
};

/** Renders the status of a transfer. Hashes and ids link to their own status. */
export function renderTransfer(
  { body, headers }: ApiResponse<TransferStatusResponse>,
  decimals: number | undefined,
  network: string,
): readonly HTMLElement[] {
  const { state, timestamp, deadline, bondTransactionHash } = body;
  const amount = (raw: string): HTMLElement => createAmount(raw, body.token, decimals);
  const createLink = (name: "of" | "id", value: string): HTMLElement => {
    const parameters = new Map(Object.entries({ [name]: value, network }));
    return createElement("a", { class: "hash", href: formatHash({ view: "transfer", parameters }) }, value);
  };
  const noReceipt = createElement("span", {}, state === "BONDED" ? "Not found yet" : "None yet");
  const otherLinks = body.otherTransferIds.map((id) => createLink("id", id));
  const descriptions = [
    createDescription("Sent", ["timestamp"], createTime(timestamp), createNote(createAge(timestamp * 1000), " ago")),
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
    createDescription("Bonder fee", ["bonderFee"], amount(body.bonderFee), renderUsd(body.bonderFeeUsd)),
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
  return [
    renderHeadline(body, decimals),
    createElement("dl", { class: "details" }, ...descriptions.flat()),
    renderSource(headers),
  ];
}

/** Describes the state in one or two sentences for screen readers. */
export function describeTransferState({
  state,
  sourceChainSlug,
  destinationChainSlug,
  token,
}: TransferStatusResponse): string {
  const { label, meaning } = STATE_TEXTS[state];
  return `${label}: ${token} from ${formatChainName(sourceChainSlug)} to ${formatChainName(destinationChainSlug)}. ${meaning}`;
}

function renderHeadline(body: TransferStatusResponse, decimals: number | undefined): HTMLElement {
  const { state, sourceChainSlug, destinationChainSlug } = body;
  const { label, meaning } = STATE_TEXTS[state];
  return createElement(
    "div",
    { class: "headline" },
    createElement(
      "p",
      { class: "label" },
      `${formatChainName(sourceChainSlug)} to ${formatChainName(destinationChainSlug)}`,
    ),
    createElement("p", { class: "received" }, createTokenAmount(body.amount, body.token, decimals)),
    createElement(
      "p",
      { class: "meaning" },
      createElement("span", { class: "state", "data-state": state }, label),
      " ",
      meaning,
    ),
  );
}

function renderAccount(label: string, field: string, address: string): readonly HTMLElement[] {
  return address === "" ? [] : createDescription(label, [field], createElement("span", { class: "hash" }, address));
}

function renderUsd(value: number): HTMLElement | undefined {
  if (value === 0) return undefined;
  return createNote(`about ${value.toLocaleString("en", { style: "currency", currency: "USD" })}`);
}

function renderSource(headers: Headers): HTMLElement {
  const source = SOURCE_LABELS[headers.get("source") ?? ""] ?? "the gateway";
  const observedAt = Date.parse(headers.get("observed-at") ?? "");
  const when = Number.isNaN(observedAt) ? "" : `, observed ${formatTime(observedAt / 1000)}`;
  return createElement("p", { class: "age" }, `Source: ${source}${when}.`);
}
