import type { Answer } from "../shared/api-client.js";
import type { TransferStatus } from "../shared/api-types.js";
import { chainName } from "../shared/chain-names.js";
import { make } from "../shared/dom.js";
import { printPlace } from "../shared/location-hash.js";
import { formatTime } from "../shared/time.js";
import { ageText, amountText, fact, note, timeText, wholeTokens } from "../shared/value-elements.js";

const states: Readonly<Record<TransferStatus["state"], { readonly label: string; readonly meaning: string }>> = {
  PENDING: { label: "Pending", meaning: "Sent, and not yet received." },
  BONDED: { label: "Received", meaning: "It has arrived at its destination." },
  UNBONDABLE: { label: "Unbondable", meaning: "No bonder can deliver it. It can be withdrawn once it is settled." },
};

const sources: Readonly<Record<string, string>> = {
  chain: "the chains",
  index: "the index",
  explorer: "the explorer API",
};

/** What is known of a transfer. Hashes and ids lead to what this page says of them. */
export function transferDetails(
  { body, headers }: Answer<TransferStatus>,
  decimals: number | undefined,
  network: string,
): readonly HTMLElement[] {
  const { state, timestamp, deadline, bondTransactionHash: receipt } = body;
  const amount = (raw: string): HTMLElement => amountText(raw, body.token, decimals);
  const link = (name: "of" | "id", value: string): HTMLElement => {
    const values = new Map(Object.entries({ [name]: value, network }));
    return make("a", { class: "hash", href: printPlace({ view: "transfer", values }) }, value);
  };
  const noReceipt = make("span", {}, state === "BONDED" ? "Not found yet" : "None yet");
  const others = body.otherTransferIds.map((id) => link("id", id));
  const facts = [
    fact("Sent", "timestamp", timeText(timestamp), note(ageText(timestamp * 1000), " ago")),
    fact("Sent by transaction", "transactionHash", link("of", body.transactionHash)),
    fact("Received by transaction", "bondTransactionHash", receipt === "" ? noReceipt : link("of", receipt)),
    fact("Transfer id", "transferId", link("id", body.transferId)),
    others.length === 0 ? [] : fact("Others of that transaction", "otherTransferIds", ...others),
    fact("Amount", "amount", amount(body.amount), usd(body.amountUsd)),
    fact("Bonder fee", "bonderFee", amount(body.bonderFee), usd(body.bonderFeeUsd)),
    fact("Least after the swap", "amountOutMin", amount(body.amountOutMin)),
    fact("Deadline of the swap", "deadline", deadline === 0 ? make("span", {}, "None") : timeText(deadline)),
    account("Sender", "accountAddress", body.accountAddress),
    account("Recipient", "recipientAddress", body.recipientAddress),
    account("Bonder", "bonderAddress", body.bonderAddress),
  ];
  return [headline(body, decimals), make("dl", { class: "facts" }, ...facts.flat()), sourceLine(headers)];
}

/** The state in one sentence, for those who hear the page. */
export function stateSaid({ state, sourceChainSlug, destinationChainSlug, token }: TransferStatus): string {
  const { label, meaning } = states[state];
  return `${label}: ${token} from ${chainName(sourceChainSlug)} to ${chainName(destinationChainSlug)}. ${meaning}`;
}

function headline(body: TransferStatus, decimals: number | undefined): HTMLElement {
  const { state, sourceChainSlug, destinationChainSlug } = body;
  const { label, meaning } = states[state];
  return make(
    "div",
    { class: "headline" },
    make("p", { class: "label" }, `${chainName(sourceChainSlug)} to ${chainName(destinationChainSlug)}`),
    make("p", { class: "received" }, wholeTokens(body.amount, body.token, decimals)),
    make("p", { class: "meaning" }, make("span", { class: "state", "data-state": state }, label), " ", meaning),
  );
}

function account(label: string, field: string, address: string): readonly HTMLElement[] {
  return address === "" ? [] : fact(label, field, make("span", { class: "hash" }, address));
}

function usd(value: number): HTMLElement | undefined {
  if (value === 0) return undefined;
  return note(`about ${value.toLocaleString("en", { style: "currency", currency: "USD" })}`);
}

function sourceLine(headers: Headers): HTMLElement {
  const source = sources[headers.get("source") ?? ""] ?? "the gateway";
  const seenAt = Date.parse(headers.get("observed-at") ?? "");
  const when = Number.isNaN(seenAt) ? "" : `, as seen ${formatTime(seenAt / 1000)}`;
  return make("p", { class: "age" }, `From ${source}${when}.`);
}
