import { setImmediate } from "node:timers/promises";
import type { ScheduledJob, Scheduler } from "../../resilience/scheduler.js";
import type { ChangedTransfer, IndexChangeFeed } from "../index/change-feed.js";
import type { ChangeMark } from "./resume-token.js";

/** Something that follows what changes in the index. */
export interface IndexChangeListener {
  /** Called after a change of a transfer has been read. */
  onChange(change: ChangedTransfer): void;
  /** Called when changes were missed: anything may have changed. */
  onGap?(): void;
  /** Called when everything up to now was read. @param accounts those that have news; undefined: all may have */
  onCaughtUp?(accounts: ReadonlySet<string> | undefined): void;
}

/** Changes that are kept, and read before the first watch: 700 bytes each. */
export const MAX_HISTORY = 10_000;
/** The oldest are removed together: this is cheaper than one by one. */
const REMOVED_AT_ONCE = 500;
const CHANGES_PER_READ = 500;
const NO_MARK: ChangeMark = Object.freeze({ sequence: 0, nonce: 0 });

/**
 * Reads what changes in the index, for all watches of this process, and keeps the newest changes by account. Watches of
 * accounts hold a place in it and nothing of what they have not sent yet, so that a slow reader, and one that resumes, cost
 * as little as a fast one.
 */
export class ChangeHistory {
  readonly #feed: IndexChangeFeed | undefined;
  readonly #scheduler: Scheduler;
  readonly #listeners: IndexChangeListener[] = [];
  #job: ScheduledJob | undefined = undefined;
  #unsubscribe: (() => void) | undefined;
  /** Sequence of the last change that was read; undefined: none was asked for yet. */
  #sequence: number | undefined;
  /** Sequence up to which listeners were told. */
  #toldSequence = 0;
  #changes: ChangedTransfer[] = [];
  /** Order of the first of them. */
  #firstOrder = 0;
  /** Order of the last change of each transfer. */
  readonly #lastOrders = new Map<string, number>();
  /** Accounts with changes that listeners were not told of; undefined: all. */
  #news: Set<string> | undefined = undefined;
  #isReady = false;
  #generation = 0;

  /** @param feed undefined: there is no index */
  constructor(feed: IndexChangeFeed | undefined, scheduler: Scheduler) {
    this.#feed = feed;
    this.#scheduler = scheduler;
  }

  /** Whether the changes up to now were read. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Grows when changes were missed: earlier positions are invalid. */
  get generation(): number {
    return this.#generation;
  }

  /** Order of the newest change; -1 before the first. */
  get newestOrder(): number {
    return this.#firstOrder + this.#changes.length - 1;
  }

  addListener(listener: IndexChangeListener): void {
    this.#listeners.push(listener);
  }

  /** Begins to read, first the changes before now. Does nothing when it has begun, or there is no index. */
  start(): void {
    const feed = this.#feed;
    if (this.#job !== undefined || feed === undefined) return;
    // Other processes write the same index: only its sequence tells of their changes.
    const job = this.#scheduler.every("index changes", feed.pollMs, () => this.#read(feed));
    this.#job = job;
    this.#unsubscribe = feed.subscribe(() => job.runNow());
    job.runNow();
  }

  close(): void {
    this.#job?.stop();
    this.#unsubscribe?.();
  }

  /** Returns whether all changes after a place are kept. */
  covers(order: number): boolean {
    return order >= this.#firstOrder - 1;
  }

  /**
   * Returns the first change of an account after a place that is the last one of its transfer, and its own place; undefined:
   * there is none.
   */
  findNext(
    account: string,
    afterOrder: number,
  ): { readonly order: number; readonly change: ChangedTransfer } | undefined {
    for (let order = Math.max(afterOrder + 1, this.#firstOrder); order <= this.newestOrder; order++) {
      const change = this.#changes[order - this.#firstOrder];
      if (change === undefined || (change.account !== account && change.recipient !== account)) continue;
      if (this.#lastOrders.get(getTransferKey(change)) === order) return { order, change };
    }
    return undefined;
  }

  /** Returns the mark of a place: everything up to it comes before the mark's successors. */
  getMark(order: number): ChangeMark {
    const next = this.#changes[order + 1 - this.#firstOrder]?.sequence;
    // A change may concern several transfers: its mark says that all of them were sent.
    for (let index = order - this.#firstOrder; index >= 0; index--) {
      const change = this.#changes[index];
      if (change !== undefined && change.sequence !== next && change.nonce !== 0)
        return { sequence: change.sequence, nonce: change.nonce };
    }
    return NO_MARK;
  }

  /** Returns the place of a mark; undefined: it is of another index, or the changes since are not kept any more. */
  findOrder({ sequence, nonce }: ChangeMark): number | undefined {
    const index = this.#changes.findLastIndex((change) => change.sequence <= sequence);
    const change = this.#changes[index];
    const isSame = change?.sequence === sequence && change.nonce === nonce && nonce !== 0;
    return isSame ? this.#firstOrder + index : undefined;
  }

  /** Returns whether the index has not reached a mark: it is a standby that lags behind, or another index. */
  isBehind({ sequence }: ChangeMark): boolean {
    return sequence > this.#toldSequence;
  }

  async #read(feed: IndexChangeFeed): Promise<void> {
    try {
      await this.#readAll(feed);
    } catch {
      // The index cannot be read now: the next poll goes on from the same sequence.
    }
  }

  async #readAll(feed: IndexChangeFeed): Promise<void> {
    const newest = await feed.readSequence();
    this.#sequence ??= Math.max(0, newest - MAX_HISTORY);
    // A lower one is of an index that was built again.
    if (newest < this.#sequence) {
      this.#sequence = newest;
      this.#forgetAll();
    }
    for (let hasMore = newest > this.#sequence; hasMore; ) {
      const changes = await feed.readChanges(this.#sequence, CHANGES_PER_READ);
      this.#sequence = changes.sequence;
      hasMore = changes.hasMore;
      if (!changes.isComplete) this.#forgetAll();
      for (const change of changes.changed) this.#append(change);
      // Reads of a file do not wait, and what precedes the beginning may be much.
      if (hasMore) await setImmediate();
    }
    this.#tellCaughtUp(this.#sequence);
  }

  #tellCaughtUp(sequence: number): void {
    this.#toldSequence = sequence;
    const accounts = this.#isReady ? this.#news : undefined;
    this.#isReady = true;
    if (accounts?.size === 0) return;
    this.#news = new Set();
    for (const listener of this.#listeners) listener.onCaughtUp?.(accounts);
  }

  #append(change: ChangedTransfer): void {
    this.#changes.push(change);
    this.#lastOrders.set(getTransferKey(change), this.newestOrder);
    this.#news?.add(change.account).add(change.recipient);
    for (const listener of this.#listeners) listener.onChange(change);
    if (this.#changes.length >= MAX_HISTORY + REMOVED_AT_ONCE) this.#removeOldest();
  }

  #removeOldest(): void {
    for (const change of this.#changes.splice(0, REMOVED_AT_ONCE)) {
      const key = getTransferKey(change);
      if (this.#lastOrders.get(key) === this.#firstOrder) this.#lastOrders.delete(key);
      this.#firstOrder += 1;
    }
  }

  #forgetAll(): void {
    this.#firstOrder += this.#changes.length;
    this.#changes = [];
    this.#lastOrders.clear();
    this.#news = undefined;
    this.#generation += 1;
    for (const listener of this.#listeners) listener.onGap?.();
  }
}

function getTransferKey({ transactionHash, transferId }: ChangedTransfer): string {
  return `${transactionHash} ${transferId}`;
}
