import { createHash } from "node:crypto";
import { encodeWord } from "../../../../../src/chain/abi/abi-encoding.js";
import { getCctpDomain } from "../../../../../src/hop/cctp.js";
import { ContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { type Chain, getNetwork } from "../../../../../src/hop/networks.js";
import { TRANSFERS_COMMITTED_TOPIC } from "../../../../../src/hop/settlement.js";
import { EVENT_TOPICS, encodeTopic } from "../../../../../src/hop/transfer-events.js";
import type { StubEvent } from "../../../../support/stubs/chain-stub.js";

// Builds the events of Hop's contracts on mainnet as nodes return them.

export const mainnetNetwork = getNetwork("mainnet");
const contracts = new ContractRegistry(mainnetNetwork);

export function getChain(slug: string): Chain {
  const chain = mainnetNetwork.chains.get(slug);
  if (chain === undefined) throw new Error(`no chain ${slug}`);
  return chain;
}

/** Returns a hash that is unique to a name. */
export function hashFromName(name: string): string {
  return `0x${createHash("sha256").update(name).digest("hex")}`;
}

export function addressFromName(name: string): string {
  return hashFromName(name).slice(0, 42);
}

const words = (...values: readonly (bigint | string)[]): string => `0x${values.map(encodeWord).join("")}`;

/** Builds an event of a contract in the transaction with a name. */
function build(transaction: string, address: string, topics: string[], data: string) {
  const transactionHash = hashFromName(`transaction ${transaction}`);
  return { transactionHash, from: addressFromName(`by ${transaction}`), address, topics, data } satisfies StubEvent;
}

function bridge(token: string, slug: string): string {
  const address = contracts.findBridge(token, getChain(slug));
  if (address === undefined) throw new Error(`no bridge for ${token} on ${slug}`);
  return address;
}

interface Leg {
  readonly from: string;
  readonly to: string;
  readonly token?: string;
  /** Name of the transaction; several events may share one. */
  readonly transaction?: string;
}

const chainIdTopic = (slug: string): string => encodeTopic(BigInt(getChain(slug).chainId));
const recipientTopic = (name: string): string => encodeTopic(addressFromName(`to ${name}`));

/**
 * Builds a TransferSent event; `id` names the transfer and its values.
 * @param index place among the transfers that the bridge has collected for the destination
 */
export function transferSentEvent(id: string, { from, to, token = "ETH", transaction = `send ${id}` }: Leg, index = 0) {
  const topics = [EVENT_TOPICS.transferSent, hashFromName(id), chainIdTopic(to), recipientTopic(id)];
  // amount, transferNonce, bonderFee, index, amountOutMin, deadline
  const data = words(1_000n, hashFromName(`nonce ${id}`), 10n, BigInt(index), 900n, 1_800_000_000n);
  return build(transaction, bridge(token, from), topics, data);
}

/** Builds a TransfersCommitted event; `root` names the root. */
export function transfersCommittedEvent(root: string, leg: Leg) {
  const { from, to, token = "ETH", transaction = `commit ${root}` } = leg;
  const topics = [TRANSFERS_COMMITTED_TOPIC, chainIdTopic(to), hashFromName(root)];
  return build(transaction, bridge(token, from), topics, words(2_000n, 1_700_000_000n));
}

export function withdrawalBondedEvent(id: string, leg: Omit<Leg, "from">) {
  const { to, token = "ETH", transaction = `bond ${id}` } = leg;
  const topics = [EVENT_TOPICS.withdrawalBonded, hashFromName(id)];
  return build(transaction, bridge(token, to), topics, words(1_000n));
}

export function withdrewEvent(id: string, { to, token = "ETH" }: Omit<Leg, "from">) {
  const topics = [EVENT_TOPICS.withdrew, hashFromName(id), recipientTopic(id)];
  return build(`withdraw ${id}`, bridge(token, to), topics, words(1_000n, hashFromName(`nonce ${id}`)));
}

/** The values of a transfer from L1; the default deadline is a week after most tests begin. */
interface Values extends Omit<Leg, "from"> {
  readonly deadline?: bigint;
}
const IN_A_WEEK = 1_700_600_000n;

/** Builds a TransferSentToL2 event; `values` names what it has in common with its completion. */
export function transferSentToL2Event(values: string, transaction: string, leg: Values) {
  const { to, token = "ETH", deadline = IN_A_WEEK } = leg;
  const relayer = encodeTopic(addressFromName("relayer"));
  const topics = [EVENT_TOPICS.transferSentToL2, chainIdTopic(to), recipientTopic(values), relayer];
  return build(transaction, bridge(token, "ethereum"), topics, words(2_000n, 1_900n, deadline, 5n));
}

export function transferFromL1CompletedEvent(values: string, transaction: string, leg: Values) {
  const { to, token = "ETH", deadline = IN_A_WEEK } = leg;
  const relayer = encodeTopic(addressFromName("relayer"));
  const topics = [EVENT_TOPICS.transferFromL1Completed, recipientTopic(values), relayer];
  return build(transaction, bridge(token, to), topics, words(2_000n, 1_900n, deadline, 5n));
}

function cctpBridge(slug: string): string {
  const [address] = [...contracts.getSendingContracts(getChain(slug))].find(([, { kind }]) => kind === "cctp") ?? [];
  if (address === undefined) throw new Error(`no CCTP on ${slug}`);
  return address;
}

export function cctpTransferSentEvent(nonce: bigint, { from, to }: Leg) {
  const recipient = recipientTopic(`${from} ${nonce}`);
  const topics = [EVENT_TOPICS.cctpTransferSent, encodeTopic(nonce), chainIdTopic(to), recipient];
  return build(`burn ${from} ${nonce}`, cctpBridge(from), topics, words(5_000n, 30n));
}

/** @param burner address that burned the USDC on the source; Hop's contract by default */
export function messageReceivedEvent(nonce: bigint, { from, to }: Leg, burner: string = cctpBridge(from)) {
  const body = `00000000${[hashFromName("USDC"), hashFromName("recipient"), 4_970n, burner].map(encodeWord).join("")}`;
  const domain = BigInt(getCctpDomain(getChain(from)) ?? 99);
  const head = words(domain, hashFromName("messenger"), 96n, BigInt(body.length / 2));
  const topics = [EVENT_TOPICS.messageReceived, encodeTopic(addressFromName("caller")), encodeTopic(nonce)];
  const data = `${head}${body.padEnd(Math.ceil(body.length / 64) * 64, "0")}`;
  return build(`mint ${from} ${nonce}`, contracts.findMessageTransmitter(getChain(to)) ?? "", topics, data);
}
