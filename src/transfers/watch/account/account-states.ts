import { LRUCache } from "lru-cache";
import type { Network } from "../../../hop/networks.js";
import type { MaybePromise } from "../../../resilience/maybe-async.js";
import type { TransferStatus } from "../../status.js";
import type { Presented } from "../following/followed-transfer.js";
import type { ChangeHistory } from "./change-history.js";

/** Names the transfers of one transaction that have one ID: from Ethereum there may be several. */
export interface TransferKey {
  readonly transferId: string;
  readonly transactionHash: string;
}

/** What a watch of an account names. */
export interface AccountQuery {
  readonly network: Network;
  /** Address of senders and recipients, lower-case hex. */
  readonly account: string;
  readonly isFull: boolean;
  /** The caller who pays for what is read. */
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
  /** Place in the history before it was read, and the generation of that place. */
  readonly order: number;
  readonly generation: number;
}

/** Reads states from the index, each once for all who watch it. */
export interface AccountStates<M> {
  /** Returns the present states of transfers; none if the index does not have them (any more). Rejects if it cannot be read. */
  find(key: TransferKey, query: AccountQuery): Promise<readonly AccountTransfer<M>[]>;
  /** Finds out which transfers a watch of an account begins with. Rejects if the index cannot be read. */
  readSnapshot(query: AccountQuery): Promise<AccountSnapshot>;
  /** Forgets the states of a transfer that has changed. */
  onChange(key: TransferKey): void;
}

export interface AccountStatesOptions<M> {
  /** Returns the transfers of an account, newest first. Rejects if the index cannot be read. */
  readonly listTransfers: (query: AccountQuery, limit: number) => MaybePromise<readonly TransferStatus[]>;
  /** Returns the transfers of a transaction that have an ID. Rejects if the index cannot be read. */
  readonly findTransfers: (key: TransferKey, query: AccountQuery) => MaybePromise<readonly TransferStatus[]>;
  /** Makes the message of a status. Rejects when the details cannot be read now. */
  readonly present: (status: TransferStatus, query: AccountQuery) => MaybePromise<Presented<M>>;
  readonly history: Pick<ChangeHistory, "generation" | "newestOrder" | "covers" | "findNext">;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** The newest transfers, which a watch begins with whatever their state. */
export const NEWEST_TRANSFERS = 50;
/** Transfers among which those are looked for that can still change, as many as pages have at most. */
export const SEARCHED_TRANSFERS = { basic: 1_000, full: 100 } as const;
/** Estimated size of all states that are kept, as in the cache of statuses. */
const MAX_BYTES = 32 * 1024 * 1024;
const BYTES_PER_STATE = 6_000;
const BYTES_PER_OTHER_TRANSFER = 400;
/** Transfers of all snapshots that are kept for who watches the same account next. */
const MAX_SNAPSHOT_TRANSFERS = 20_000;
/** Messages have prices, which change without an event. */
const MAX_AGE_MS = 60_000;
/** All who watch a transfer that cannot be read wait together. */
const FAILURE_AGE_MS = 500;

export function createAccountStates<M>(options: AccountStatesOptions<M>): AccountStates<M> {
  const { listTransfers, findTransfers, present, history, now } = options;
  const clock = { perf: { now }, ttlResolution: 0 };
  const states = new LRUCache<string, Promise<readonly AccountTransfer<M>[]>>({ maxSize: MAX_BYTES, ...clock });
  const snapshots = new LRUCache<string, Promise<AccountSnapshot>>({ maxSize: MAX_SNAPSHOT_TRANSFERS, ...clock });

  /** Reads something once for all who want it; `getSize` tells what keeping it costs. */
  function readShared<T>(
    cache: LRUCache<string, Promise<T>>,
    key: string,
    read: () => Promise<T>,
    getSize: (value: T) => number,
  ): Promise<T> {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const promise = read();
    const keep = (size: number, ttl: number): void => {
      if (cache.peek(key) === promise) cache.set(key, promise, { size, ttl });
    };
    cache.set(key, promise, { size: 1, ttl: MAX_AGE_MS });
    promise.then(
      (value) => keep(getSize(value), MAX_AGE_MS),
      () => keep(1, FAILURE_AGE_MS),
    );
    return promise;
  }

  async function readTransfers(key: TransferKey, query: AccountQuery): Promise<readonly AccountTransfer<M>[]> {
    const statuses = await findTransfers(key, query);
    return Promise.all(statuses.map(async (status) => ({ status, presented: await present(status, query) })));
  }

  async function readSnapshot(query: AccountQuery): Promise<AccountSnapshot> {
    const { newestOrder: order, generation } = history;
    const limit = query.isFull ? SEARCHED_TRANSFERS.full : SEARCHED_TRANSFERS.basic;
    const statuses = await listTransfers(query, limit);
    const chosen = statuses.filter(
      ({ isFinal, state }, index) => index < NEWEST_TRANSFERS || !isFinal || state !== "BONDED",
    );
    const keys = chosen.map(({ sent: { id, transactionHash } }) => ({ transferId: id, transactionHash }));
    // Transfers that share transaction and ID are read together.
    const transfers = [...new Map(keys.map((key) => [toText(key), key])).values()];
    return { transfers, order, generation };
  }

  async function isCurrent(snapshot: Promise<AccountSnapshot>, account: string): Promise<boolean> {
    const { order, generation } = await snapshot;
    const { generation: present, covers, findNext } = history;
    return generation === present && covers(order) && findNext(account, order) === undefined;
  }

  return {
    find: (key, query) =>
      readShared(
        states,
        `${toView(query)} ${toText(key)}`,
        () => readTransfers(key, query),
        (transfers) => transfers.reduce((sum, { status }) => sum + getBytes(status), 1),
      ),
    async readSnapshot(query) {
      const key = `${toView(query)} ${query.account}`;
      const known = snapshots.get(key);
      if (known !== undefined && !(await isCurrent(known, query.account)) && snapshots.peek(key) === known)
        snapshots.delete(key);
      return readShared(
        snapshots,
        key,
        () => readSnapshot(query),
        ({ transfers }) => transfers.length + 1,
      );
    },
    onChange(key) {
      for (const isFull of [false, true]) states.delete(`${toView({ isFull })} ${toText(key)}`);
    },
  };
}

/** Only one network is indexed. */
function toView({ isFull }: Pick<AccountQuery, "isFull">): string {
  return isFull ? "FULL" : "BASIC";
}

function toText({ transactionHash, transferId }: TransferKey): string {
  return `${transactionHash} ${transferId}`;
}

function getBytes({ otherTransferIds }: TransferStatus): number {
  return BYTES_PER_STATE + otherTransferIds.length * BYTES_PER_OTHER_TRANSFER;
}
