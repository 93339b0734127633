import type { ApiResponse } from "../shared/api-client.js";
import type { TransferStatusResponse } from "../shared/api-types.js";
import { formatChainName } from "../shared/chain-names.js";
import { createElement } from "../shared/dom.js";
import { formatHash } from "../shared/location-hash.js";
import { formatTime } from "../shared/time.js";
import {
  createAge,
  createAmount,
  createDescription,
  createNote,
  createTime,
  createTokenAmount,
} from "../shared/value-elements.js";

const STATE_TEXTS: Readonly<
  Record<TransferStatusResponse["state"], { readonly label: string; readonly meaning: string }>
> = {
  PENDING: { label: "Pending", meaning: "Sent, and not yet received." },
  BONDED: { label: "Received", meaning: "It has arrived at its destination." },
  UNBONDABLE: { label: "Unbondable", meaning: "No bonder can deliver it. It can be withdrawn once it is settled." },
};

const SOURCE_LABELS: Readonly<Record<string, string>> = {
  chain: "the chains",
  index: "the index",
  explorer: "the explorer API",
};

/** What is known of a transfer. Hashes and ids lead to what this page says of them. */
export function renderTransfer(
  { body, headers }: ApiResponse<TransferStatusResponse>,
  decimals: number | undefined,
  network: string,
): readonly HTMLElement[] {
  const { state, timestamp, deadline, bondTransactionHash: receipt } = body;
  const amount = (raw: string): HTMLElement => createAmount(raw, body.token, decimals);
  const link = (name: "of" | "id", value: string): HTMLElement => {
    const parameters = new Map(Object.entries({ [name]: value, network }));
    return createElement("a", { class: "hash", href: formatHash({ view: "transfer", parameters }) }, value);
  };
  const noReceipt = createElement("span", {}, state === "BONDED" ? "Not found yet" : "None yet");
  const others = body.otherTransferIds.map((id) => link("id", id));
  const facts = [
    createDescription("Sent", "timestamp", createTime(timestamp), createNote(createAge(timestamp * 1000), " ago")),
    createDescription("Sent by transaction", "transactionHash", link("of", body.transactionHash)),
    createDescription(
      "Received by transaction",
      "bondTransactionHash",
      receipt === "" ? noReceipt : link("of", receipt),
    ),
    createDescription("Transfer id", "transferId", link("id", body.transferId)),
    others.length === 0 ? [] : createDescription("Others of that transaction", "otherTransferIds", ...others),
    createDescription("Amount", "amount", amount(body.amount), renderUsd(body.amountUsd)),
    createDescription("Bonder fee", "bonderFee", amount(body.bonderFee), renderUsd(body.bonderFeeUsd)),
    createDescription("Least after the swap", "amountOutMin", amount(body.amountOutMin)),
    createDescription(
      "Deadline of the swap",
      "deadline",
      deadline === 0 ? createElement("span", {}, "None") : createTime(deadline),
    ),
    renderAccount("Sender", "accountAddress", body.accountAddress),
    renderAccount("Recipient", "recipientAddress", body.recipientAddress),
    renderAccount("Bonder", "bonderAddress", body.bonderAddress),
  ];
  return [
    renderHeadline(body, decimals),
    createElement("dl", { class: "facts" }, ...facts.flat()),
    renderSource(headers),
  ];
}

/** The state in one sentence, for those who hear the page. */
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
  return address === "" ? [] : createDescription(label, field, createElement("span", { class: "hash" }, address));
}

function renderUsd(value: number): HTMLElement | undefined {
  if (value === 0) return undefined;
  return createNote(`about ${value.toLocaleString("en", { style: "currency", currency: "USD" })}`);
}

function renderSource(headers: Headers): HTMLElement {
  const source = SOURCE_LABELS[headers.get("source") ?? ""] ?? "the gateway";
  const seenAt = Date.parse(headers.get("observed-at") ?? "");
  const when = Number.isNaN(seenAt) ? "" : `, as seen ${formatTime(seenAt / 1000)}`;
  return createElement("p", { class: "age" }, `From ${source}${when}.`);
}
