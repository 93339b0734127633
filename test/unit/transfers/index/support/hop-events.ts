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

/** Returns the transaction with a name. */
const transaction = (name: string) => ({
  transactionHash: hashFromName(`transaction ${name}`),
  from: addressFromName(`by ${name}`),
});
const words = (...values: readonly (bigint | string)[]): string => `0x${values.map(encodeWord).join("")}`;

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

/**
 * Builds a TransferSent event; `id` names the transfer and its values.
 * @param index place among the transfers that the bridge has collected for the destination
 */
export function transferSentEvent(
  id: string,
  { from, to, token = "ETH", transaction: transactionName = `send ${id}` }: Leg,
  index = 0,
): StubEvent {
  return {
    ...transaction(transactionName),
    address: bridge(token, from),
    topics: [
      EVENT_TOPICS.transferSent,
      hashFromName(id),
      encodeTopic(BigInt(getChain(to).chainId)),
      encodeTopic(addressFromName(`to ${id}`)),
    ],
    // amount, transferNonce, bonderFee, index, amountOutMin, deadline
    data: words(1_000n, hashFromName(`nonce ${id}`), 10n, BigInt(index), 900n, 1_800_000_000n),
  };
}

/** Builds a TransfersCommitted event; `root` names the root. */
export function transfersCommittedEvent(
  root: string,
  { from, to, token = "ETH", transaction: transactionName = `commit ${root}` }: Leg,
): StubEvent {
  return {
    ...transaction(transactionName),
    address: bridge(token, from),
    topics: [TRANSFERS_COMMITTED_TOPIC, encodeTopic(BigInt(getChain(to).chainId)), hashFromName(root)],
    data: words(2_000n, 1_700_000_000n),
  };
}

export function withdrawalBondedEvent(
  id: string,
  { to, token = "ETH", transaction: transactionName = `bond ${id}` }: Omit<Leg, "from">,
) {
  return {
    ...transaction(transactionName),
    address: bridge(token, to),
    topics: [EVENT_TOPICS.withdrawalBonded, hashFromName(id)],
    data: words(1_000n),
  } satisfies StubEvent;
}

export function withdrewEvent(id: string, { to, token = "ETH" }: Omit<Leg, "from">) {
  return {
    ...transaction(`withdraw ${id}`),
    address: bridge(token, to),
    topics: [EVENT_TOPICS.withdrew, hashFromName(id), encodeTopic(addressFromName(`to ${id}`))],
    data: words(1_000n, hashFromName(`nonce ${id}`)),
  } satisfies StubEvent;
}

/** The values of a transfer from L1; the default deadline is a week after most tests begin. */
interface Values extends Omit<Leg, "from"> {
  readonly deadline?: bigint;
}
const IN_A_WEEK = 1_700_600_000n;

/** Builds a TransferSentToL2 event; `values` names what it has in common with its completion. */
export function transferSentToL2Event(
  values: string,
  transactionName: string,
  { to, token = "ETH", deadline = IN_A_WEEK }: Values,
) {
  return {
    ...transaction(transactionName),
    address: bridge(token, "ethereum"),
    topics: [
      EVENT_TOPICS.transferSentToL2,
      encodeTopic(BigInt(getChain(to).chainId)),
      encodeTopic(addressFromName(`to ${values}`)),
      encodeTopic(addressFromName("relayer")),
    ],
    data: words(2_000n, 1_900n, deadline, 5n),
  } satisfies StubEvent;
}

export function transferFromL1CompletedEvent(
  values: string,
  transactionName: string,
  { to, token = "ETH", deadline = IN_A_WEEK }: Values,
) {
  return {
    ...transaction(transactionName),
    address: bridge(token, to),
    topics: [
      EVENT_TOPICS.transferFromL1Completed,
      encodeTopic(addressFromName(`to ${values}`)),
      encodeTopic(addressFromName("relayer")),
    ],
    data: words(2_000n, 1_900n, deadline, 5n),
  } satisfies StubEvent;
}

function cctpBridge(slug: string): string {
  const [address] = [...contracts.getSendingContracts(getChain(slug))].find(([, { kind }]) => kind === "cctp") ?? [];
  if (address === undefined) throw new Error(`no CCTP on ${slug}`);
  return address;
}

export function cctpTransferSentEvent(nonce: bigint, { from, to }: Leg): StubEvent {
  return {
    ...transaction(`burn ${from} ${nonce}`),
    address: cctpBridge(from),
    topics: [
      EVENT_TOPICS.cctpTransferSent,
      encodeTopic(nonce),
      encodeTopic(BigInt(getChain(to).chainId)),
      encodeTopic(addressFromName(`to ${from} ${nonce}`)),
    ],
    data: words(5_000n, 30n),
  };
}

/** @param burner address that burned the USDC on the source; Hop's contract by default */
export function messageReceivedEvent(nonce: bigint, { from, to }: Leg, burner: string = cctpBridge(from)): StubEvent {
  const body = `00000000${[hashFromName("USDC"), hashFromName("recipient"), 4_970n, burner].map(encodeWord).join("")}`;
  const domain = BigInt(getCctpDomain(getChain(from)) ?? 99);
  const head = words(domain, hashFromName("messenger"), 96n, BigInt(body.length / 2));
  return {
    ...transaction(`mint ${from} ${nonce}`),
    address: contracts.findMessageTransmitter(getChain(to)) ?? "",
    topics: [EVENT_TOPICS.messageReceived, encodeTopic(addressFromName("caller")), encodeTopic(nonce)],
    data: `${head}${body.padEnd(Math.ceil(body.length / 64) * 64, "0")}`,
  };
}
