import type { BlockRange, ChainClient } from "../../../src/chain/chain-client.js";
import { type NetworkChainClients, usesCustomEndpoints } from "../../../src/chain/chains.js";
import { type Log, parseLogs, type RpcLog } from "../../../src/chain/json-rpc/parse-results.js";
import { ServiceError } from "../../../src/errors.js";
import { type Chain, getNetwork, type Network } from "../../../src/hop/networks.js";
import { Waiters } from "../../../src/resilience/waiters.js";
import type { LookupContext } from "../../../src/transfers/sources/transfer-source.js";
import {
  buildTransferStatus,
  type SentTransfer,
  type StatusDetails,
  type TransferDelivery,
  type TransferStatus,
} from "../../../src/transfers/status.js";

// Transfers, and simulated chains with their events.

export const repeatedByteHash = (byte: string): string => `0x${byte.repeat(32)}`;
export const repeatedByteAddress = (byte: string): string => `0x${byte.repeat(20)}`;

export function getChain(slug: string, network: Network = getNetwork("mainnet")): Chain {
  const chain = network.chains.get(slug);
  if (chain === undefined) throw new Error(`no chain ${slug}`);
  return chain;
}

/** Creates a transfer of ETH over the L2 bridges from Optimism to Arbitrum; `more` replaces fields. */
export function createSentTransfer(more: Partial<SentTransfer> = {}): SentTransfer {
  return {
    kind: "l2",
    id: repeatedByteHash("1a"),
    token: "ETH",
    source: getChain("optimism"),
    destination: getChain("arbitrum"),
    transactionHash: repeatedByteHash("2b"),
    blockNumber: 1_000,
    timestamp: 1_700_000_000,
    logIndex: 3,
    account: repeatedByteAddress("c1"),
    event: {
      transferId: repeatedByteHash("1a"),
      destinationChainId: 42161,
      recipient: repeatedByteAddress("d2"),
      amount: 2_500_000_000_000_000_000n,
      amountOutMin: 2_490_000_000_000_000_000n,
      deadline: 1_700_600_000n,
      bonderFee: 250_000_000_000_000_000n,
      relayer: undefined,
    },
    ...more,
  };
}

export const defaultDelivery: TransferDelivery = {
  transactionHash: repeatedByteHash("3c"),
  blockNumber: 2_000,
  bonder: repeatedByteAddress("e3"),
};

export interface StatusOverrides extends Partial<StatusDetails> {
  readonly sent?: Partial<SentTransfer>;
  readonly delivery?: TransferDelivery | undefined;
}

/** Creates a bonded, final status from the chain; the argument replaces fields. */
export function createStatus({ sent, ...more }: StatusOverrides = {}): TransferStatus {
  const delivery = "delivery" in more ? more.delivery : defaultDelivery;
  return buildTransferStatus(createSentTransfer(sent), delivery, {
    otherTransferIds: [],
    source: "chain",
    observedAtMs: 1_700_000_100_000,
    isFinal: true,
    priceUsd: undefined,
    ...more,
  });
}

export const unavailableError = (name: string): ServiceError =>
  new ServiceError("UPSTREAM_UNAVAILABLE", `${name} is down`);

/** An event of a contract and the sender of its transaction. */
export interface ChainEvent {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly transactionHash: string;
  readonly from?: string | undefined;
}

/** Converts an event to a log as nodes return it. */
function toRpcLog({ address, topics, data, transactionHash }: ChainEvent, block: number, index = 0): RpcLog {
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

/** Converts an event to a parsed log. */
export function toLog(event: ChainEvent, block: number, index = 0): Log {
  const [log] = parseLogs({ slug: "fixture" } as ChainClient, [toRpcLog(event, block, index)]);
  if (log === undefined) throw new Error("no log");
  return log;
}

const blockHashOf = (block: number): string => `0x${(block + 1).toString(16).padStart(64, "0")}`;

/** A simulated node whose state can be changed at any time. */
export interface TransferChainStub {
  readonly client: ChainClient;
  /** All events with block and log index. */
  events: { readonly event: ChainEvent; readonly block: number; readonly index?: number }[];
  head: number;
  /** The finalized block; undefined: the node does not report one. */
  finalized: number | undefined;
  /** Maximum blocks of one search. */
  maxLogBlocks: number;
  /** Returns the result of a contract call: a number, or hex. */
  contractResult: (to: string, data: string) => bigint | string;
  /** Each response waits for this promise and fails if it rejects. */
  beforeResponse: (method: string) => Promise<void> | void;
  /** Block ranges of all log searches so far. */
  readonly searchedRanges: BlockRange[];
  /** Methods of all requests so far, in order. A batch has its methods in one entry. */
  readonly methods: string[];
  /** Time of a block, Unix seconds: one a second, unless the options say otherwise. */
  timestampOf(block: number): number;
  /** Returns the result of one call as a node would, at once. Logs are not filtered. */
  call(method: string, params: readonly unknown[]): unknown;
}

const FIRST_BLOCK_SECONDS = 1_600_000_000;

export function createTransferChainStub(
  slug: string,
  { maxLogBlocks = Number.POSITIVE_INFINITY, head = 100_000, blockSeconds = 1 } = {},
): TransferChainStub {
  const timestampOf = (block: number): number => FIRST_BLOCK_SECONDS + block * blockSeconds;

  async function beginRequest(method: string, signal: AbortSignal): Promise<void> {
    chain.methods.push(method);
    signal.throwIfAborted();
    let leave = (): void => {};
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(unavailableError(slug));
      signal.addEventListener("abort", leave);
    });
    try {
      await Promise.race([chain.beforeResponse(method), left]);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  function header(block: number | undefined) {
    if (block === undefined || block > chain.head) return null;
    return {
      number: `0x${block.toString(16)}`,
      hash: blockHashOf(block),
      timestamp: `0x${timestampOf(block).toString(16)}`,
    };
  }

  function respondTo(method: string, params: readonly unknown[]): unknown {
    const [first] = params as [string & { to: string; data: string }];
    const ofTransaction = chain.events.filter(({ event }) => event.transactionHash === first);
    const from = ofTransaction[0]?.event.from ?? repeatedByteAddress("f0");
    switch (method) {
      case "eth_getBlockByNumber":
        if (first === "finalized") return header(chain.finalized);
        return header(first === "latest" ? chain.head : Number(first));
      case "eth_getBlockByHash":
        return header(Number(first) - 1);
      case "eth_call": {
        const result = chain.contractResult(first.to, first.data);
        return typeof result === "string" ? result : `0x${result.toString(16).padStart(64, "0")}`;
      }
      case "eth_getTransactionByHash":
        return ofTransaction.length === 0 ? null : { from };
      case "eth_getTransactionReceipt": {
        const logs = ofTransaction.map(({ event, block, index }) => toRpcLog(event, block, index));
        return logs[0] === undefined ? null : { transactionHash: first, blockHash: logs[0].blockHash, from, logs };
      }
      case "eth_getLogs":
        return chain.events.map(({ event, block, index }) => toRpcLog(event, block, index));
      default:
        throw new Error(`unexpected ${method}`);
    }
  }

  const chain: TransferChainStub = {
    events: [],
    head,
    finalized: undefined,
    maxLogBlocks,
    contractResult: () => 0n,
    beforeResponse: () => {},
    searchedRanges: [],
    methods: [],
    timestampOf,
    call: respondTo,
    client: {
      slug,
      async send(method, params, signal, options) {
        options?.onRequest?.();
        await beginRequest(method, signal);
        return respondTo(method, params);
      },
      async sendBatch(calls, signal) {
        calls[0]?.onRequest?.();
        await beginRequest(calls.map(({ method }) => method).join(" "), signal);
        return calls.map(({ method, params }) => ({ result: respondTo(method, params) }));
      },
      async getLogs({ range: { from, to }, newestFirst, onRequest }, signal) {
        onRequest?.();
        await beginRequest("eth_getLogs", signal);
        const isWide = to - from + 1 > chain.maxLogBlocks;
        if (isWide && to === Number.POSITIVE_INFINITY) return undefined;
        const cut = newestFirst
          ? { from: to - chain.maxLogBlocks + 1, to }
          : { from, to: from + chain.maxLogBlocks - 1 };
        const range = isWide ? cut : { from, to };
        chain.searchedRanges.push(range);
        // Ignores the filter: callers must check the logs that they receive.
        return { result: respondTo("eth_getLogs", []), range };
      },
    },
  };
  return chain;
}

/** Creates access to the chains of mainnet; chains that are not listed have no events. */
export function createChainAccess(
  chains: readonly TransferChainStub[],
  custom: readonly string[] = [],
): NetworkChainClients {
  const clients = new Map(chains.map(({ client }) => [client.slug, client]));
  return {
    hasCustomEndpoint: (slug) => custom.includes(slug),
    getClient(slug) {
      const client = clients.get(slug) ?? createTransferChainStub(slug).client;
      clients.set(slug, client);
      return client;
    },
  };
}

export function createLookupContext(more: Partial<LookupContext> = {}): LookupContext {
  const { network = getNetwork("mainnet"), chains = createChainAccess([]) } = more;
  return {
    network,
    chains,
    isPrivate: usesCustomEndpoints(chains, network.chains.keys()),
    caller: "a",
    remainingMs: () => 10_000,
    signal: new AbortController().signal,
    ...more,
  };
}

export function createWaiters(...callers: readonly string[]): Waiters {
  const waiters = new Waiters();
  for (const caller of callers) waiters.add(caller);
  return waiters;
}

/** Creates a promise with its resolvers. */
export function createDeferred<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onResolve, onReject) => {
    [resolve, reject] = [onResolve, onReject];
  });
  return { promise, resolve, reject };
}

/** Runs all pending callbacks that do not wait for I/O or timers. */
export const flushEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
