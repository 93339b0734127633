import { createHash } from "node:crypto";
import { word } from "../../../../../src/chain/abi/abi-encoding.js";
import { cctpDomainOf } from "../../../../../src/hop/cctp/cctp.js";
import { createBridgeBook } from "../../../../../src/hop/contract-registry.js";
import { type Chain, networkOf } from "../../../../../src/hop/networks.js";
import { topicOf, topics } from "../../../../../src/hop/transfer-events.js";
import type { StubEvent } from "../../../../support/stubs/chain-stub.js";

// The events of Hop's contracts on mainnet, as nodes give them.

export const mainnet = networkOf("mainnet");
const book = createBridgeBook(mainnet);

export function chainOf(slug: string): Chain {
  const chain = mainnet.chains.get(slug);
  if (chain === undefined) throw new Error(`no chain ${slug}`);
  return chain;
}

/** 32 bytes that nothing else has. */
export function hashOf(name: string): string {
  return `0x${createHash("sha256").update(name).digest("hex")}`;
}

export function addressOf(name: string): string {
  return hashOf(name).slice(0, 42);
}

/** A transaction by somebody. */
const transaction = (name: string) => ({
  transactionHash: hashOf(`transaction ${name}`),
  from: addressOf(`by ${name}`),
});
const words = (...values: readonly (bigint | string)[]): string => `0x${values.map(word).join("")}`;

function bridge(token: string, slug: string): string {
  const address = book.bridge(token, chainOf(slug));
  if (address === undefined) throw new Error(`no bridge for ${token} on ${slug}`);
  return address;
}

interface Leg {
  readonly from: string;
  readonly to: string;
  readonly token?: string;
  /** Of the transaction; several events may have one. */
  readonly transaction?: string;
}

/** TransferSent; `id` names the transfer and its values. */
export function transferSent(id: string, { from, to, token = "ETH", transaction: of = `send ${id}` }: Leg): StubEvent {
  return {
    ...transaction(of),
    address: bridge(token, from),
    topics: [topics.transferSent, hashOf(id), topicOf(BigInt(chainOf(to).chainId)), topicOf(addressOf(`to ${id}`))],
    // amount, transferNonce, bonderFee, index, amountOutMin, deadline
    data: words(1_000n, hashOf(`nonce ${id}`), 10n, 0n, 900n, 1_800_000_000n),
  };
}

export function withdrawalBonded(id: string, { to, token = "ETH", transaction: of = `bond ${id}` }: Omit<Leg, "from">) {
  return {
    ...transaction(of),
    address: bridge(token, to),
    topics: [topics.withdrawalBonded, hashOf(id)],
    data: words(1_000n),
  } satisfies StubEvent;
}

export function withdrew(id: string, { to, token = "ETH" }: Omit<Leg, "from">) {
  return {
    ...transaction(`withdraw ${id}`),
    address: bridge(token, to),
    topics: [topics.withdrew, hashOf(id), topicOf(addressOf(`to ${id}`))],
    data: words(1_000n, hashOf(`nonce ${id}`)),
  } satisfies StubEvent;
}

/** The values of a transfer from L1; its deadline is a week after most tests begin. */
interface Values extends Omit<Leg, "from"> {
  readonly deadline?: bigint;
}
const inAWeek = 1_700_600_000n;

/** TransferSentToL2; `values` names what a completion has as well, `of` the one transfer. */
export function sentToL2(values: string, of: string, { to, token = "ETH", deadline = inAWeek }: Values) {
  return {
    ...transaction(of),
    address: bridge(token, "ethereum"),
    topics: [
      topics.transferSentToL2,
      topicOf(BigInt(chainOf(to).chainId)),
      topicOf(addressOf(`to ${values}`)),
      topicOf(addressOf("relayer")),
    ],
    data: words(2_000n, 1_900n, deadline, 5n),
  } satisfies StubEvent;
}

export function completed(values: string, of: string, { to, token = "ETH", deadline = inAWeek }: Values) {
  return {
    ...transaction(of),
    address: bridge(token, to),
    topics: [topics.transferFromL1Completed, topicOf(addressOf(`to ${values}`)), topicOf(addressOf("relayer"))],
    data: words(2_000n, 1_900n, deadline, 5n),
  } satisfies StubEvent;
}

function cctpBridge(slug: string): string {
  const [address] = [...book.senders(chainOf(slug))].find(([, { kind }]) => kind === "cctp") ?? [];
  if (address === undefined) throw new Error(`no CCTP on ${slug}`);
  return address;
}

export function cctpSent(nonce: bigint, { from, to }: Leg): StubEvent {
  return {
    ...transaction(`burn ${from} ${nonce}`),
    address: cctpBridge(from),
    topics: [
      topics.cctpTransferSent,
      topicOf(nonce),
      topicOf(BigInt(chainOf(to).chainId)),
      topicOf(addressOf(`to ${from} ${nonce}`)),
    ],
    data: words(5_000n, 30n),
  };
}

/** @param burner who burnt it on the source; default: Hop's own contract there */
export function messageReceived(nonce: bigint, { from, to }: Leg, burner: string = cctpBridge(from)): StubEvent {
  const body = `00000000${[hashOf("USDC"), hashOf("recipient"), 4_970n, burner].map(word).join("")}`;
  const domain = BigInt(cctpDomainOf(chainOf(from)) ?? 99);
  const head = words(domain, hashOf("messenger"), 96n, BigInt(body.length / 2));
  return {
    ...transaction(`mint ${from} ${nonce}`),
    address: book.messageTransmitter(chainOf(to)) ?? "",
    topics: [topics.messageReceived, topicOf(addressOf("caller")), topicOf(nonce)],
    data: `${head}${body.padEnd(Math.ceil(body.length / 64) * 64, "0")}`,
  };
}
