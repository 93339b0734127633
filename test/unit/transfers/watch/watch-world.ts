import { utils } from "ethers";
import { vi } from "vitest";
import type { ChainClient, RpcCall } from "../../../../src/chain/chain-client.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { Scheduler } from "../../../../src/resilience/scheduler.js";
import type { TransferQuery } from "../../../../src/transfers/sources/transfer-source.js";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import { ChangeHistory } from "../../../../src/transfers/watch/change-history.js";
import type { FollowerContext } from "../../../../src/transfers/watch/follower.js";
import { Followers } from "../../../../src/transfers/watch/followers.js";
import { computeFingerprint } from "../../../../src/transfers/watch/resume-token.js";
import { type OpenWatch, TransferWatcher } from "../../../../src/transfers/watch/transfer-watcher.js";
import type { WatchEvent, WatchSink } from "../../../../src/transfers/watch/watch-lifecycle.js";
import { unavailableError } from "../../../support/stubs/transfer-fixtures.js";

export const mainnet = getNetwork("mainnet");

/** An event as the caller of a watch gets it. */
export interface SentEvent {
  readonly kind: "transfer" | "unknown" | "bookmark";
  readonly token: string;
  /** State of the transfer, or whether the unknown one is final. */
  readonly state?: string | boolean;
  readonly id?: string;
}

/** A caller: reads at once unless `isReading` is false. */
export class CallerStub implements WatchSink<TransferStatus> {
  readonly events: SentEvent[] = [];
  ending: "open" | "complete" | "interrupted" | Error = "open";
  isReading = true;
  watch: OpenWatch | undefined;

  isReady(): boolean {
    return this.isReading;
  }
  send(event: WatchEvent<TransferStatus>, token: string): void {
    const { kind } = event;
    if (kind === "bookmark") this.events.push({ kind, token });
    else if (kind === "unknown") this.events.push({ kind, token, state: event.isFinal, id: event.target.value });
    else this.events.push({ kind, token, state: event.message.state, id: event.message.sent.id });
  }
  end(error?: unknown): void {
    this.finish(error instanceof Error ? error : "complete");
  }
  interrupt(): void {
    this.finish("interrupted");
  }
  /** The last token that was received. */
  get token(): string {
    return this.events.at(-1)?.token ?? "";
  }
  /** States of the transfers and unknown targets that were sent. */
  get states(): readonly (string | boolean | undefined)[] {
    return this.events.filter(({ kind }) => kind !== "bookmark").map(({ state }) => state);
  }
  read(): void {
    this.isReading = true;
    this.watch?.onReady();
  }
  private finish(ending: "complete" | "interrupted" | Error): void {
    this.ending = ending;
    this.watch?.onEnd();
  }
}

/** What one chain knows. */
export interface ChainFacts {
  head: number;
  /** Hash of the block of each transaction. */
  readonly receipts: Map<string, string>;
  /** Calldata of the flags that are set. */
  readonly flags: Set<string>;
  logs: { readonly address: string; readonly topics: readonly string[] }[];
  batches: number;
  calls: number;
}

interface OpenOptions {
  readonly hashes?: readonly string[];
  readonly resumeToken?: string;
  readonly caller?: string;
  readonly likelySource?: string;
  readonly stub?: CallerStub;
  readonly isFull?: boolean;
}

/** Chains, a lookup that knows the statuses of `statuses`, and watches over both. Time stands still except in `advance`. */
export function createWatchWorld({ maxLifetimeMs = 3_600_000, maxWatches = 0, maxWatchesPerCaller = 0 } = {}) {
  vi.useFakeTimers({ now: 1_700_000_000_000 });
  const now = (): number => Date.now();
  const facts = new Map<string, ChainFacts>();
  const statuses = new Map<string, TransferStatus[]>();
  let lookupCount = 0;
  let isDown = false;
  let untilPresented = Promise.resolve();
  const finalChains = new Set<string>();
  const events: string[] = [];
  /** What details say that no status says. */
  const details = { substate: "WAITING_FOR_SETTLEMENT" };

  function getFacts(slug: string): ChainFacts {
    const known = facts.get(slug) ?? {
      ...{ head: 5_000, receipts: new Map(), flags: new Set<string>(), logs: [] },
      ...{ batches: 0, calls: 0 },
    };
    facts.set(slug, known);
    return known;
  }

  function createClient(slug: string): ChainClient {
    const chain = getFacts(slug);
    const header = () => ({ number: `0x${chain.head.toString(16)}`, hash: hashOf(chain.head), timestamp: "0x1" });
    function answer({ method, params }: Pick<RpcCall, "method" | "params">): unknown {
      if (method === "eth_getBlockByNumber") return header();
      if (method === "eth_call") return callContract(chain, params[0] as { readonly data: string });
      const hash = String(params[0]);
      const blockHash = chain.receipts.get(hash);
      if (blockHash === undefined) return null;
      return { transactionHash: hash, blockHash, from: `0x${"00".repeat(20)}`, logs: [] };
    }
    const request = async <T>(calls: number, run: () => T): Promise<T> => {
      chain.batches += 1;
      chain.calls += calls;
      if (isDown) throw unavailableError(slug);
      return run();
    };
    return {
      slug,
      send: (method, params) => request(1, () => answer({ method, params })),
      sendBatch: (calls) => request(calls.length, () => calls.map((call) => ({ result: answer(call) }))),
      getLogs: ({ range }) =>
        request(1, () => ({
          range,
          result: chain.logs.map((log, index) => ({
            ...log,
            ...{ data: "0x", blockNumber: `0x${range.to.toString(16)}`, blockHash: hashOf(range.to) },
            ...{ logIndex: `0x${index.toString(16)}`, transactionHash: hashOf(index) },
          })),
        })),
    };
  }

  async function find(query: TransferQuery): Promise<readonly TransferStatus[]> {
    lookupCount += 1;
    if (isDown) throw unavailableError("optimism");
    const found = statuses.get(query.transactionHash ?? query.transferId ?? "") ?? [];
    return found.filter(({ sent }) => query.transferId === undefined || sent.id === query.transferId);
  }

  const clients = new Map([...mainnet.chains.keys()].map((slug) => [slug, createClient(slug)]));
  const lookups: FollowerContext<TransferStatus>["lookups"] = {
    findAll: ({ kind, value }) =>
      find({ transferId: kind === "id" ? value : undefined, transactionHash: kind === "hash" ? value : undefined }),
    refresh: async (_network, query) => (await find(query))[0],
    async present(status, { isFull }) {
      await untilPresented;
      const { sent, state, delivery } = status;
      const isFinal = isFull && status.isFinal;
      const text = `${sent.id} ${state} ${delivery?.transactionHash} ${isFinal} ${isFull && details.substate}`;
      const stage = (delivery === undefined ? 0 : 4) + Number(isFinal);
      return { message: status, fingerprint: computeFingerprint(text, stage), isFinal: true };
    },
    isFinal: async (_network, chain) => finalChains.has(chain.slug),
  };
  const scheduler = new Scheduler();
  const followers = new Followers<TransferStatus>({
    now,
    wallNow: now,
    scheduler,
    lookups,
    getChains: () => ({ getClient: (slug) => clients.get(slug) as ChainClient, hasCustomEndpoint: () => false }),
    indexedNetwork: mainnet,
    onPoll: () => {},
  });
  const watcher = new TransferWatcher({
    ...{ followers, scheduler, accounts: undefined, history: new ChangeHistory(undefined, scheduler) },
    ...{ maxLifetimeMs, maxWatches, maxWatchesPerCaller, random: () => 0 },
    onEvent: (kind) => events.push(kind),
  });

  return {
    watcher,
    followers,
    events,
    details,
    finalChains,
    getFacts,
    getClient: (slug: string) => clients.get(slug) as ChainClient,
    countLookups: () => lookupCount,
    countRequests: () => [...facts.values()].reduce((sum, { batches }) => sum + batches, 0),
    /** Makes a status known to lookups, under its ID and its transaction. */
    put(status: TransferStatus): void {
      const { id, transactionHash } = status.sent;
      for (const key of new Set([id, transactionHash])) {
        statuses.set(key, [...(statuses.get(key) ?? []).filter(({ sent }) => sent.id !== id), status]);
      }
    },
    forget(status: TransferStatus): void {
      statuses.delete(status.sent.id);
      statuses.delete(status.sent.transactionHash);
    },
    /** Tells followers that the index has news of a transfer. */
    announce(transferId: string): void {
      const nobody = `0x${"00".repeat(20)}`;
      const change = { sequence: 1, nonce: 1, transferId, transactionHash: transferId, deliveryHash: undefined };
      followers.onChange({ ...change, account: nobody, recipient: nobody });
    },
    /** Keeps lookups from ending after they have read a status. @returns the function that ends this */
    holdLookups(): () => void {
      let release = (): void => {};
      untilPresented = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    setDown(value: boolean): void {
      isDown = value;
    },
    /** Opens a watch of IDs and hashes. */
    open(
      ids: readonly string[],
      { hashes = [], stub = new CallerStub(), isFull = false, ...more }: OpenOptions = {},
    ): CallerStub {
      const toTarget = (kind: "id" | "hash") => (value: string) => ({ network: mainnet, kind, value, isFull });
      const targets = [...ids.map(toTarget("id")), ...hashes.map(toTarget("hash"))];
      stub.watch = watcher.open({ targets, resumeToken: "", likelySource: "", caller: "me", ...more }, stub);
      if (stub.ending !== "open") stub.watch.onEnd();
      return stub;
    },
    advance: (ms: number) => vi.advanceTimersByTimeAsync(ms),
    close(): void {
      watcher.close();
      vi.useRealTimers();
    },
  };
}

export type WatchWorld = ReturnType<typeof createWatchWorld>;

export const hashOf = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`;

const multicall = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
]);

function callContract({ flags }: ChainFacts, { data }: { readonly data: string }): string {
  const toWord = (isSet: boolean) => `0x${(isSet ? "1" : "0").padStart(64, "0")}`;
  if (!data.startsWith(multicall.getSighash("aggregate3"))) return toWord(flags.has(data));
  const [calls] = multicall.decodeFunctionData("aggregate3", data) as unknown as [{ readonly callData: string }[]];
  const results = calls.map(({ callData }) => [true, toWord(flags.has(callData))]);
  return multicall.encodeFunctionResult("aggregate3", [results]);
}
