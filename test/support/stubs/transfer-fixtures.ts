import type { BlockRange, ChainClient } from "../../../src/chain/chain-client.js";
import type { ChainAccess } from "../../../src/chain/chains.js";
import type { Log } from "../../../src/chain/read/chain-reads.js";
import { ServiceError } from "../../../src/errors.js";
import { type Chain, type Network, networkOf } from "../../../src/hop/networks.js";
import { type StatusFacts, status, type TransferStatus } from "../../../src/transfers/status.js";
import type { Delivery, SentTransfer } from "../../../src/transfers/transfer.js";
import type { LookUpContext } from "../../../src/transfers/sources/transfer-source.js";

// Transfers, and chains without a node that hold their events.

export const hash = (byte: string): string => `0x${byte.repeat(32)}`;
export const address = (byte: string): string => `0x${byte.repeat(20)}`;

export function chainOf(slug: string, network: Network = networkOf("mainnet")): Chain {
  const chain = network.chains.get(slug);
  if (chain === undefined) throw new Error(`no chain ${slug}`);
  return chain;
}

/** Over the L2 bridges of ETH, from Optimism to Arbitrum, unless it says otherwise. */
export function sentTransfer(more: Partial<SentTransfer> = {}): SentTransfer {
  return {
    kind: "l2",
    id: hash("1a"),
    token: "ETH",
    source: chainOf("optimism"),
    destination: chainOf("arbitrum"),
    transactionHash: hash("2b"),
    blockNumber: 1_000,
    timestamp: 1_700_000_000,
    logIndex: 3,
    account: address("c1"),
    event: {
      transferId: hash("1a"),
      destinationChainId: 42161,
      recipient: address("d2"),
      amount: 2_500_000_000_000_000_000n,
      amountOutMin: 2_490_000_000_000_000_000n,
      deadline: 1_700_600_000n,
      bonderFee: 250_000_000_000_000_000n,
      relayer: undefined,
    },
    ...more,
  };
}

export const delivered: Delivery = { transactionHash: hash("3c"), blockNumber: 2_000, bonder: address("e3") };

export interface StatusParts extends Partial<StatusFacts> {
  readonly sent?: Partial<SentTransfer>;
  readonly delivery?: Delivery | undefined;
}

/** Bonded and final, as the chain says, unless it says otherwise. */
export function statusOf({ sent, ...more }: StatusParts = {}): TransferStatus {
  const delivery = "delivery" in more ? more.delivery : delivered;
  return status(sentTransfer(sent), delivery, {
    otherTransferIds: [],
    source: "chain",
    observedAt: 1_700_000_100_000,
    isFinal: true,
    priceUsd: undefined,
    ...more,
  });
}

export const unavailable = (who: string): ServiceError => new ServiceError("UPSTREAM_UNAVAILABLE", `${who} is down`);

/** An event and who sent its transaction, as a chain's contracts would make it. */
export interface FakeEvent {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly transactionHash: string;
  readonly from?: string | undefined;
}

/** An event in a block, as nodes give it. */
export function logOf({ address, topics, data, transactionHash }: FakeEvent, block: number, index = 0): Log {
  return {
    address,
    topics,
    data,
    transactionHash,
    blockNumber: `0x${block.toString(16)}`,
    blockHash: blockHashOf(block),
    logIndex: `0x${index.toString(16)}`,
  };
}

const blockHashOf = (block: number): string => `0x${(block + 1).toString(16).padStart(64, "0")}`;

/** What a node says, to be changed while it runs. */
export interface FakeChain {
  readonly client: ChainClient;
  /** The node's events by their place. */
  events: { readonly event: FakeEvent; readonly block: number; readonly index?: number }[];
  head: number;
  /** The last block that stays; undefined: it does not tell. */
  finalized: number | undefined;
  /** Blocks that are searched at once at most. */
  most: number;
  /** What contracts answer to any call. */
  answer: (to: string, data: string) => bigint;
  /** Held up until it resolves, and fails as it does. */
  before: (method: string) => Promise<void> | void;
  /** What has been searched for logs. */
  readonly searched: BlockRange[];
  /** Methods in the order of asking. */
  readonly asked: string[];
  /** Time of a block, Unix seconds: one a second. */
  timeOf(block: number): number;
}

const firstBlockAt = 1_600_000_000;

export function fakeChain(slug: string, { most = Number.POSITIVE_INFINITY, head = 100_000 } = {}): FakeChain {
  const timeOf = (block: number): number => firstBlockAt + block;

  async function isAsked(method: string, signal: AbortSignal): Promise<void> {
    chain.asked.push(method);
    signal.throwIfAborted();
    let leave = (): void => {};
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(unavailable(slug));
      signal.addEventListener("abort", leave);
    });
    try {
      await Promise.race([chain.before(method), left]);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  function header(block: number | undefined) {
    if (block === undefined || block > chain.head) return null;
    return {
      number: `0x${block.toString(16)}`,
      hash: blockHashOf(block),
      timestamp: `0x${timeOf(block).toString(16)}`,
    };
  }

  function answerOf(method: string, params: readonly unknown[]): unknown {
    const [first] = params as [string & { to: string; data: string }];
    const ofTransaction = chain.events.filter(({ event }) => event.transactionHash === first);
    const from = ofTransaction[0]?.event.from ?? address("f0");
    switch (method) {
      case "eth_getBlockByNumber":
        if (first === "finalized") return header(chain.finalized);
        return header(first === "latest" ? chain.head : Number(first));
      case "eth_getBlockByHash":
        return header(Number(first) - 1);
      case "eth_call":
        return `0x${chain.answer(first.to, first.data).toString(16).padStart(64, "0")}`;
      case "eth_getTransactionByHash":
        return ofTransaction.length === 0 ? null : { from };
      case "eth_getTransactionReceipt": {
        const logs = ofTransaction.map(({ event, block, index }) => logOf(event, block, index));
        return logs[0] === undefined ? null : { transactionHash: first, blockHash: logs[0].blockHash, from, logs };
      }
      default:
        throw new Error(`unexpected ${method}`);
    }
  }

  const chain: FakeChain = {
    events: [],
    head,
    finalized: undefined,
    most,
    answer: () => 0n,
    before: () => {},
    searched: [],
    asked: [],
    timeOf,
    client: {
      slug,
      async send(method, params, signal) {
        await isAsked(method, signal);
        return answerOf(method, params);
      },
      batch: () => Promise.reject(new Error("transfers make no batches")),
      async logs(_, { from, to }, newestFirst, signal) {
        await isAsked("eth_getLogs", signal);
        const isWide = to - from + 1 > chain.most;
        if (isWide && to === Number.POSITIVE_INFINITY) return undefined;
        const cut = newestFirst ? { from: to - chain.most + 1, to } : { from, to: from + chain.most - 1 };
        const range = isWide ? cut : { from, to };
        chain.searched.push(range);
        // Whatever the filter: who asks has to look at what it is given.
        return { result: chain.events.map(({ event, block, index }) => logOf(event, block, index)), range };
      },
    },
  };
  return chain;
}

/** The chains of mainnet; one that is not given has no events. */
export function accessTo(chains: readonly FakeChain[], custom: readonly string[] = []): ChainAccess {
  const clients = new Map(chains.map(({ client }) => [client.slug, client]));
  return {
    isCustom: (slug) => custom.includes(slug),
    client(slug) {
      const client = clients.get(slug) ?? fakeChain(slug).client;
      clients.set(slug, client);
      return client;
    },
  };
}

export function contextOf(more: Partial<LookUpContext> = {}): LookUpContext {
  return {
    network: networkOf("mainnet"),
    chains: accessTo([]),
    leftMs: () => 10_000,
    signal: new AbortController().signal,
    ...more,
  };
}

/** A promise that is settled from outside. */
export function pending<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    [resolve, reject] = [yes, no];
  });
  return { promise, resolve, reject };
}

/** Lets everything happen that waits for nothing outside. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
