import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { ServiceError } from "../../errors.js";
import type { Network } from "../../hop/networks.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import { SingleFlight } from "../../resilience/single-flight.js";
import type { Requester, Waiters } from "../../resilience/waiters.js";
import type { ChangedTransfer } from "../index/change-feed.js";
import type { TransferLister } from "../index/list/transfer-lister.js";
import type { TransferStatus } from "../status.js";
import type { ChangeHistory, IndexChangeListener } from "./change-history.js";
import type { Presented } from "./followed-transfer.js";
import type { WatchLookups } from "./watch-lookups.js";

/** Names the transfers of one transaction that have one ID: from Ethereum there may be several. */
export type TransferKey = Pick<ChangedTransfer, "transferId" | "transactionHash">;

/** What a watch of an account asks for: whose transfers, in which view, and for which caller. */
export interface AccountSubscription {
  readonly network: Network;
  /** Address of senders and recipients, lower-case hex. */
  readonly account: string;
  readonly isFull: boolean;
  readonly caller: string;
}

/** A transfer as the index knows it, in the form in which callers get it. */
export interface PresentedTransfer<M> {
  readonly status: TransferStatus;
  readonly presented: Presented<M>;
}

/** What a watch sends first. */
export interface AccountSnapshot {
  readonly transfers: readonly TransferKey[];
  /** Those of them whose details change without the index: they wait for a bonder or for their settlement. */
  readonly waiting: readonly TransferKey[];
  /** Place in the history before it was read, and the generation of that place. */
  readonly order: number;
  readonly generation: number;
}

/** The newest transfers of an account, which a watch begins with whatever their state. */
export const INITIAL_TRANSFER_COUNT = 50;
/** Transfers among which those are looked for that can still change, as many as pages have at most. */
export const SEARCHED_TRANSFERS = { basic: 1_000, full: 100 } as const;
/** Present states that slow readers have not got yet, of all watches together: 250 bytes each. One caller takes half of them. */
export const MAX_UNSENT_STATES = 100_000;
/** Fingerprints of transfers that can still change, of all watches together: 100 bytes each. */
const MAX_SENT = 100_000;
/** Estimated size of all states that are kept, as in the cache of statuses. */
const MAX_BYTES = 32 * 1024 * 1024;
const BYTES_PER_STATE = 6_000;
const BYTES_PER_OTHER_TRANSFER = 400;
/** Transfers of all snapshots that are kept for who watches the same account next. */
const MAX_SNAPSHOT_TRANSFERS = 20_000;
/** Messages have prices, which change without an event. */
const MAX_AGE_MS = 60_000;
const ANY_TRANSFER = { state: undefined, token: undefined, source: undefined, destination: undefined };

/** What the watches of accounts of this process share: who watches what, and the states, which are read once for all. */
export class WatchedAccounts<M> implements IndexChangeListener {
  readonly #lister: Pick<TransferLister, "isIndexed" | "list" | "find">;
  readonly #lookups: Pick<WatchLookups<M>, "present">;
  readonly history: ChangeHistory;
  readonly now: () => number;
  readonly #watchesByAccount = new Map<string, Set<{ onNews(): void }>>();
  /** Fingerprints of what was sent last of transfers that can still change. What it has lost may be sent again. */
  readonly #sent = new LRUCache<number, number>({ max: MAX_SENT });
  readonly #unsent = new FairQuota(() => MAX_UNSENT_STATES);
  readonly #transfers: SharedReads<readonly PresentedTransfer<M>[]>;
  readonly #snapshots: SharedReads<AccountSnapshot>;

  constructor({
    lister,
    lookups,
    history,
    now,
    closing,
  }: {
    readonly lister: Pick<TransferLister, "isIndexed" | "list" | "find">;
    readonly lookups: Pick<WatchLookups<M>, "present">;
    readonly history: ChangeHistory;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
    /** Ends all reads. */
    readonly closing: AbortSignal;
  }) {
    this.#lister = lister;
    this.#lookups = lookups;
    this.history = history;
    this.now = now;
    history.addListener(this);
    this.#transfers = new SharedReads<readonly PresentedTransfer<M>[]>(closing, now, {
      maxSize: MAX_BYTES,
      measure: sumBytes,
    });
    const maxSize = MAX_SNAPSHOT_TRANSFERS;
    this.#snapshots = new SharedReads(closing, now, { maxSize, measure: ({ transfers }) => transfers.length });
  }

  /** Number of distinct accounts that are watched. */
  get size(): number {
    return this.#watchesByAccount.size;
  }

  isIndexed(network: Network): boolean {
    return this.#lister.isIndexed(network);
  }

  /** Calls a watch at each change of its account. @returns the function that ends this */
  join(account: string, watch: { onNews(): void }): () => void {
    const watches = this.#watchesByAccount.get(account) ?? new Set();
    this.#watchesByAccount.set(account, watches.add(watch));
    return () => {
      watches.delete(watch);
      if (watches.size === 0) this.#watchesByAccount.delete(account);
    };
  }

  onChange(key: TransferKey): void {
    for (const isFull of [false, true]) this.#transfers.delete(getCacheKey(isFull, toText(key)));
  }

  onCaughtUp(accounts: ReadonlySet<string> | undefined): void {
    for (const account of accounts ?? [...this.#watchesByAccount.keys()]) {
      for (const watch of [...(this.#watchesByAccount.get(account) ?? [])]) watch.onNews();
    }
  }

  /**
   * Returns the present states of transfers; none if the index does not have them (any more). Rejects if it cannot be read, and
   * when the signal aborts: the read ends when nobody waits for it any more.
   */
  find(key: TransferKey, query: AccountSubscription, signal: AbortSignal): Promise<readonly PresentedTransfer<M>[]> {
    const { isFull, caller } = query;
    const read = (waiters: Waiters) => this.#readTransfers(key, query, waiters);
    return this.#transfers.find(getCacheKey(isFull, toText(key)), { caller, signal }, read);
  }

  /** Finds out which transfers a watch of an account begins with. Rejects as `find`. */
  readSnapshot(query: AccountSubscription, signal: AbortSignal): Promise<AccountSnapshot> {
    const { isFull, account, caller } = query;
    const cacheKey = getCacheKey(isFull, account);
    const known = this.#snapshots.getKnown(cacheKey);
    if (known !== undefined && !this.#isCurrent(known, account)) this.#snapshots.delete(cacheKey);
    return this.#snapshots.find(cacheKey, { caller, signal }, (waiters) => this.#readSnapshot(query, waiters));
  }

  /** Takes places for states that are to be sent first, and returns the function that releases them. @throws ServiceError */
  acquireUnsent(caller: string, count: number): () => void {
    if (count === 0) return () => {};
    const release = this.#unsent.tryAcquire(caller, count);
    if (release !== undefined) return release;
    throw new ServiceError("OVERLOADED", "too many transfers are watched here", { retryAfterSeconds: 5 });
  }

  /**
   * Records what is being sent of a transfer. Returns false if the same was sent before.
   * @param place tells apart what watches send: watch, transfer and its index among those of one key
   */
  recordSent(place: string, fingerprint: number, isFinal: boolean): boolean {
    const key = hash("sha256", place, "buffer").readUIntBE(0, 6);
    const isSame = this.#sent.get(key) === fingerprint;
    if (isFinal) this.#sent.delete(key);
    else this.#sent.set(key, fingerprint);
    return !isSame;
  }

  async #readTransfers(
    key: TransferKey,
    query: AccountSubscription,
    waiters: Waiters,
  ): Promise<PresentedTransfer<M>[]> {
    const statuses = await this.#lister.find(key.transferId, key.transactionHash, toRequester(waiters));
    return Promise.all(
      statuses.map(async (status) => ({ status, presented: await this.#lookups.present(status, query, waiters) })),
    );
  }

  async #readSnapshot({ account, isFull }: AccountSubscription, waiters: Waiters): Promise<AccountSnapshot> {
    const { newestOrder: order, generation } = this.history;
    const limit = isFull ? SEARCHED_TRANSFERS.full : SEARCHED_TRANSFERS.basic;
    const filter = { account, ...ANY_TRANSFER };
    const { transfers } = await this.#lister.list(filter, undefined, limit, toRequester(waiters));
    const chosen = transfers.filter(
      ({ isFinal, state }, index) => index < INITIAL_TRANSFER_COUNT || !isFinal || state !== "BONDED",
    );
    return { transfers: listKeys(chosen), waiting: listKeys(transfers.filter(isWaiting)), order, generation };
  }

  #isCurrent({ order, generation }: AccountSnapshot, account: string): boolean {
    const { history } = this;
    return generation === history.generation && history.covers(order) && history.findNext(account, order) === undefined;
  }
}

/** Returns whether the root of a transfer may arrive, which the index does not tell. */
export function isWaiting({ state, sent }: TransferStatus): boolean {
  return sent.kind === "l2" && state !== "BONDED";
}

/** Transfers that share transaction and ID are read together. */
function listKeys(statuses: readonly TransferStatus[]): readonly TransferKey[] {
  const keys = statuses.map(({ sent: { id, transactionHash } }) => ({ transferId: id, transactionHash }));
  return [...new Map(keys.map((key) => [toText(key), key])).values()];
}

function toRequester(waiters: Waiters): Requester {
  return { caller: "", waiters, signal: waiters.signal };
}

/** What is read once for all who wait for it, and kept for who asks next. */
class SharedReads<T extends object> {
  readonly #known: LRUCache<string, T>;
  readonly #reads: SingleFlight<T>;

  /** @param measure returns the size of a value */
  constructor(
    closing: AbortSignal,
    now: () => number,
    { maxSize, measure }: { readonly maxSize: number; readonly measure: (value: T) => number },
  ) {
    this.#reads = new SingleFlight(closing);
    const sizeCalculation = (value: T): number => 1 + measure(value);
    this.#known = new LRUCache({ maxSize, sizeCalculation, ttl: MAX_AGE_MS, perf: { now }, ttlResolution: 0 });
  }

  getKnown(key: string): T | undefined {
    return this.#known.get(key);
  }

  /** Forgets what is known, and what is being read. */
  delete(key: string): void {
    this.#known.delete(key);
    this.#reads.forget(key);
  }

  async find(key: string, requester: Requester, read: (waiters: Waiters) => Promise<T>): Promise<T> {
    return this.#known.get(key) ?? this.#reads.run(key, requester, (waiters) => this.#read(key, waiters, read));
  }

  async #read(key: string, waiters: Waiters, read: (waiters: Waiters) => Promise<T>): Promise<T> {
    const value = await read(waiters);
    if (this.#reads.isInFlight(key, waiters)) this.#known.set(key, value);
    return value;
  }
}

/** The network is no part of it: only one is indexed. */
function getCacheKey(isFull: boolean, text: string): string {
  return `${isFull ? "FULL" : "BASIC"} ${text}`;
}

function toText({ transactionHash, transferId }: TransferKey): string {
  return `${transactionHash} ${transferId}`;
}

function sumBytes(transfers: readonly PresentedTransfer<unknown>[]): number {
  const getBytes = ({ otherTransferIds }: TransferStatus): number =>
    BYTES_PER_STATE + otherTransferIds.length * BYTES_PER_OTHER_TRANSFER;
  return transfers.reduce((sum, { status }) => sum + getBytes(status), 0);
}
