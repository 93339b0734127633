import type { ChangedTransfer, IndexChangeFeed } from "../../index/store/changes/index-changes.js";
import { createIndexChangeReader, type IndexChangeReader } from "../index-change-reader.js";

/** A place in the change log of one certain index. */
export interface ChangeMark {
  readonly sequence: number;
  /** 0: the place before all changes, which says nothing about the index. */
  readonly nonce: number;
}

/** A change, and its place in the history of this process. */
export interface HistoryEntry {
  /** Grows by one from entry to entry. */
  readonly order: number;
  readonly change: ChangedTransfer;
}

/**
 * The newest changes of the index, by account. All watches of accounts share it: they hold a place in it and nothing of what
 * they have not sent yet, so that a slow reader, and one that resumes, cost as little as a fast one.
 */
export interface ChangeHistory {
  /** Begins to read, first the changes before now. Does nothing when it has begun. */
  start(): void;
  /** Whether the changes up to now were read. */
  readonly isReady: boolean;
  /** Grows when changes were missed: no place of before means anything. */
  readonly generation: number;
  /** Order of the newest entry; -1 before the first. */
  readonly newestOrder: number;
  /** Returns whether all changes after a place are kept. */
  covers(order: number): boolean;
  /** Returns the first change of an account after a place that is the last one of its transfer; undefined: there is none. */
  findNext(account: string, afterOrder: number): HistoryEntry | undefined;
  /** Returns the mark of a place: everything up to it comes before the mark's successors. */
  getMark(order: number): ChangeMark;
  /** Returns the place of a mark; undefined: it is of another index, or the changes since are not kept any more. */
  findOrder(mark: ChangeMark): number | undefined;
  /** Returns whether the index that is read has not come to a mark: it is a standby that lags behind, or another index. */
  isBehind(mark: ChangeMark): boolean;
  close(): void;
}

export interface ChangeHistoryOptions {
  /** Returns undefined while the index is not open. */
  readonly getFeed: () => IndexChangeFeed | undefined;
  /** Called after each change of a transfer has been read. */
  readonly onChange: (change: ChangedTransfer) => void;
  /** Called when the history has everything up to now. @param accounts those that have news; undefined: all may have */
  readonly onNews: (accounts: ReadonlySet<string> | undefined) => void;
}

/** Changes that are kept, and read before the first watch: 700 bytes each. */
export const MAX_HISTORY = 10_000;
/** The oldest are removed together: this is cheaper than one by one. */
const REMOVED_AT_ONCE = 500;
const NO_MARK: ChangeMark = Object.freeze({ sequence: 0, nonce: 0 });

export function createChangeHistory({ getFeed, onChange, onNews }: ChangeHistoryOptions): ChangeHistory {
  let reader: IndexChangeReader | undefined;
  let entries: HistoryEntry[] = [];
  const byAccount = new Map<string, HistoryEntry[]>();
  /** Order of the last entry of each transfer. */
  const lastOrders = new Map<string, number>();
  /** Accounts with changes that watches were not told of; undefined: all. */
  let news: Set<string> | undefined = new Set();
  let nextOrder = 0;
  /** Sequence up to which the index was read. */
  let readSequence = 0;
  let isReady = false;
  let generation = 0;

  const getFirstOrder = (): number => entries[0]?.order ?? nextOrder;

  function append(change: ChangedTransfer): void {
    const entry = { order: nextOrder++, change };
    entries.push(entry);
    lastOrders.set(getTransferKey(change), entry.order);
    for (const account of getAccounts(change)) {
      const list = byAccount.get(account);
      if (list === undefined) byAccount.set(account, [entry]);
      else list.push(entry);
      news?.add(account);
    }
    onChange(change);
    if (entries.length >= MAX_HISTORY + REMOVED_AT_ONCE) removeOldest();
  }

  function removeOldest(): void {
    const removed = entries.splice(0, REMOVED_AT_ONCE);
    const firstOrder = getFirstOrder();
    for (const { order, change } of removed) {
      const key = getTransferKey(change);
      if (lastOrders.get(key) === order) lastOrders.delete(key);
      for (const account of getAccounts(change)) {
        const list = byAccount.get(account);
        if (list === undefined || (list[0]?.order ?? firstOrder) >= firstOrder) continue;
        const kept = list.slice(findIndexAfter(list, (entry) => entry.order < firstOrder));
        if (kept.length > 0) byAccount.set(account, kept);
        else byAccount.delete(account);
      }
    }
  }

  function forgetAll(): void {
    entries = [];
    byAccount.clear();
    lastOrders.clear();
    news = undefined;
    generation += 1;
  }

  return {
    get isReady() {
      return isReady;
    },
    get generation() {
      return generation;
    },
    get newestOrder() {
      return nextOrder - 1;
    },
    start() {
      reader ??= createIndexChangeReader({
        getFeed,
        lookBack: MAX_HISTORY,
        onChanges: (changed) => changed.forEach(append),
        onGap: forgetAll,
        onCaughtUp(sequence) {
          readSequence = sequence;
          const accounts = news;
          const isFirst = !isReady;
          isReady = true;
          if (accounts?.size === 0 && !isFirst) return;
          news = new Set();
          onNews(isFirst ? undefined : accounts);
        },
      });
    },
    covers: (order) => order >= getFirstOrder() - 1,
    findNext(account, afterOrder) {
      const list = byAccount.get(account) ?? [];
      const isBefore = ({ order }: HistoryEntry): boolean => order <= afterOrder;
      for (let index = findIndexAfter(list, isBefore); index < list.length; index++) {
        const entry = list[index];
        if (entry !== undefined && lastOrders.get(getTransferKey(entry.change)) === entry.order) return entry;
      }
      return undefined;
    },
    getMark(order) {
      const next = entries[order + 1 - getFirstOrder()]?.change.sequence;
      // A change may concern several transfers: its mark says that all of them were sent.
      for (let index = order - getFirstOrder(); index >= 0; index--) {
        const change = entries[index]?.change;
        if (change !== undefined && change.sequence !== next && change.nonce !== 0)
          return { sequence: change.sequence, nonce: change.nonce };
      }
      return NO_MARK;
    },
    findOrder({ sequence, nonce }) {
      const index = findIndexAfter(entries, ({ change }) => change.sequence <= sequence) - 1;
      const entry = entries[index];
      const isSame = entry?.change.sequence === sequence && entry.change.nonce === nonce && nonce !== 0;
      return isSame ? entry.order : undefined;
    },
    isBehind: ({ sequence }) => sequence > readSequence,
    close: () => reader?.close(),
  };
}

function getTransferKey({ transactionHash, transferId }: ChangedTransfer): string {
  return `${transactionHash} ${transferId}`;
}

function getAccounts({ account, recipient }: ChangedTransfer): readonly string[] {
  return account === recipient ? [account] : [account, recipient];
}

/** Returns the index of the first entry that is not before something; the entries are sorted. */
function findIndexAfter(entries: readonly HistoryEntry[], isBefore: (entry: HistoryEntry) => boolean): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entries[middle];
    if (entry !== undefined && isBefore(entry)) low = middle + 1;
    else high = middle;
  }
  return low;
}
