import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { ServiceError } from "../../errors.js";
import type { Network } from "../../hop/networks.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { SingleFlight } from "../../resilience/single-flight.js";
import type { Requester, Waiters } from "../../resilience/waiters.js";
import type { ChangedTransfer } from "../index/change-feed.js";
import type { TransferStatus } from "../status.js";
import type { ChangeHistory, IndexChangeListener } from "./change-history.js";
import type { Presented } from "./followed-transfer.js";

/** Names the transfers of one transaction that have one ID: from Ethereum there may be several. */
export type TransferKey = Pick<ChangedTransfer, "transferId" | "transactionHash">;

/** What a watch of an account names. */
export interface AccountQuery {
  readonly network: Network;
  /** Address of senders and recipients, lower-case hex. */
  readonly account: string;
  readonly isFull: boolean;
  readonly caller: string;
}

/** A transfer as the index knows it, with the message that says so. */
export interface AccountTransfer<M> {
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

/**
 * Where transfers of accounts come from. The functions reject if the index, or what a message needs, cannot be read, and when
 * nobody waits any more.
 */
export interface AccountSource<M> {
  /** Returns whether the transfers of a network are indexed. */
  isIndexed(network: Network): boolean;
  /** Returns the transfers of an account, newest first. */
  listTransfers(account: string, limit: number, waiters: Waiters): MaybePromise<readonly TransferStatus[]>;
  /** Returns the transfers of a transaction that have an ID. */
  findTransfers(key: TransferKey, waiters: Waiters): MaybePromise<readonly TransferStatus[]>;
  /** Makes the message of a status. */
  present(
    status: TransferStatus,
    view: Pick<AccountQuery, "network" | "isFull">,
    waiters: Waiters,
  ): MaybePromise<Presented<M>>;
}

/** A failure is shared as well: all who watch a transfer that cannot be read wait together. */
type Loaded<T> = { readonly value: T } | { readonly error: unknown };

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
const FAILURE_AGE_MS = 500;

/** What the watches of accounts of this process share: who watches what, and the states, which are read once for all. */
export class AccountStates<M> implements IndexChangeListener {
  readonly #source: AccountSource<M>;
  readonly #watchesByAccount = new Map<string, Set<{ onNews(): void }>>();
  /** Fingerprints of what was sent last of transfers that can still change. What it has lost may be sent again. */
  readonly #sent = new LRUCache<number, number>({ max: MAX_SENT });
  readonly #unsent = new FairQuota(() => MAX_UNSENT_STATES);
  readonly #transfers: SharedReads<readonly AccountTransfer<M>[]>;
  readonly #snapshots: SharedReads<AccountSnapshot>;

  /**
   * @param now monotonic clock, in milliseconds
   * @param closing ends all reads
   */
  constructor(
    source: AccountSource<M>,
    readonly history: ChangeHistory,
    readonly now: () => number,
    closing: AbortSignal,
  ) {
    this.#source = source;
    history.addListener(this);
    this.#transfers = new SharedReads<readonly AccountTransfer<M>[]>(closing, now, {
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
    return this.#source.isIndexed(network);
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
  find(key: TransferKey, query: AccountQuery, signal: AbortSignal): Promise<readonly AccountTransfer<M>[]> {
    const { isFull, caller } = query;
    const read = (waiters: Waiters) => this.#readTransfers(key, query, waiters);
    return this.#transfers.find(getCacheKey(isFull, toText(key)), { caller, signal }, read);
  }

  /** Finds out which transfers a watch of an account begins with. Rejects as `find`. */
  readSnapshot(query: AccountQuery, signal: AbortSignal): Promise<AccountSnapshot> {
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
    query: AccountQuery,
    waiters: Waiters,
  ): Promise<readonly AccountTransfer<M>[]> {
    const statuses = await this.#source.findTransfers(key, waiters);
    return Promise.all(
      statuses.map(async (status) => ({ status, presented: await this.#source.present(status, query, waiters) })),
    );
  }

  async #readSnapshot({ account, isFull }: AccountQuery, waiters: Waiters): Promise<AccountSnapshot> {
    const { newestOrder: order, generation } = this.history;
    const limit = isFull ? SEARCHED_TRANSFERS.full : SEARCHED_TRANSFERS.basic;
    const statuses = await this.#source.listTransfers(account, limit, waiters);
    const chosen = statuses.filter(
      ({ isFinal, state }, index) => index < INITIAL_TRANSFER_COUNT || !isFinal || state !== "BONDED",
    );
    return { transfers: listKeys(chosen), waiting: listKeys(statuses.filter(isWaiting)), order, generation };
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

/** What is read once for all who wait for it, and kept for who asks next. */
class SharedReads<T> {
  readonly #loaded: LRUCache<string, Loaded<T>>;
  readonly #reads: SingleFlight<Loaded<T>>;

  /** @param measure returns the size of a value */
  constructor(
    closing: AbortSignal,
    now: () => number,
    { maxSize, measure }: { readonly maxSize: number; readonly measure: (value: T) => number },
  ) {
    this.#reads = new SingleFlight(closing);
    const sizeCalculation = (loaded: Loaded<T>): number => 1 + ("value" in loaded ? measure(loaded.value) : 0);
    this.#loaded = new LRUCache({ maxSize, sizeCalculation, ttl: MAX_AGE_MS, perf: { now }, ttlResolution: 0 });
  }

  getKnown(key: string): T | undefined {
    const loaded = this.#loaded.get(key);
    return loaded !== undefined && "value" in loaded ? loaded.value : undefined;
  }

  /** Forgets what is known, and what is being read. */
  delete(key: string): void {
    this.#loaded.delete(key);
    this.#reads.forget(key);
  }

  async find(key: string, requester: Requester, read: (waiters: Waiters) => Promise<T>): Promise<T> {
    const load = (waiters: Waiters): Promise<Loaded<T>> => this.#load(key, waiters, read);
    const loaded = this.#loaded.get(key) ?? (await this.#reads.run(key, requester, load));
    if ("value" in loaded) return loaded.value;
    throw loaded.error;
  }

  async #load(key: string, waiters: Waiters, read: (waiters: Waiters) => Promise<T>): Promise<Loaded<T>> {
    let loaded: Loaded<T>;
    try {
      loaded = { value: await read(waiters) };
    } catch (error) {
      loaded = { error };
    }
    if (this.#reads.isInFlight(key, waiters))
      this.#loaded.set(key, loaded, { ttl: "value" in loaded ? MAX_AGE_MS : FAILURE_AGE_MS });
    return loaded;
  }
}

/** The network is no part of it: only one is indexed. */
function getCacheKey(isFull: boolean, text: string): string {
  return `${isFull ? "FULL" : "BASIC"} ${text}`;
}

function toText({ transactionHash, transferId }: TransferKey): string {
  return `${transactionHash} ${transferId}`;
}

function sumBytes(transfers: readonly AccountTransfer<unknown>[]): number {
  const getBytes = ({ otherTransferIds }: TransferStatus): number =>
    BYTES_PER_STATE + otherTransferIds.length * BYTES_PER_OTHER_TRANSFER;
  return transfers.reduce((sum, { status }) => sum + getBytes(status), 0);
}
