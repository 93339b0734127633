import { isImmutableStatus, type TransferStatus } from "../status.js";
import { getRetryDelayMs } from "./chain-poller.js";
import type { Answer } from "./chain-questions.js";

/** A status in the form in which callers get it, made once for all of them. */
export interface Presented<M> {
  readonly message: M;
  /** Hash of everything in the message that counts as a change: prices are left out, which change all the time. */
  readonly fingerprint: number;
  /** Whether the message says all there is to say about a transfer whose blocks are final. */
  readonly isFinal: boolean;
}

/** Why a transfer is looked up again: what a poll has seen, or nothing new. */
export type LookupReason = "delivery" | "reorg" | "finality" | "verify";

/** One poll may reach an endpoint that has a block but not its transactions yet. */
const MISSES_BEFORE_REORG = 2;

/** A transfer that a follower has found. Times are milliseconds on the monotonic clock. */
export class FollowedTransfer<M> {
  /** Place among the transfers of the follower; never used again for another. */
  readonly slot: number;
  /** Its lookups. */
  readonly turn: LookupTurn;
  status: TransferStatus;
  presented: Presented<M>;
  /** Whether its status cannot change any more. */
  isSettled: boolean;
  isSourceFinal = false;
  send = new PolledTransaction();
  delivery = new PolledTransaction();
  /** When its last lookup began. */
  lookedUpAt: number;

  constructor(start: Pick<FollowedTransfer<M>, "slot" | "turn" | "status" | "presented" | "lookedUpAt">) {
    this.slot = start.slot;
    this.turn = start.turn;
    this.status = start.status;
    this.presented = start.presented;
    this.lookedUpAt = start.lookedUpAt;
    this.isSettled = isImmutableStatus(start.status);
  }

  /** Whether nothing about the transfer can change any more. */
  get isFinal(): boolean {
    return this.isSettled && this.presented.isFinal;
  }

  /** Whether everything that callers see of the delivery is known. */
  get isDeliveryComplete(): boolean {
    const { delivery } = this.status;
    return delivery?.transactionHash !== undefined && delivery.blockNumber !== undefined;
  }

  /** Takes what a lookup has found, and forgets what polls have seen. */
  replace(status: TransferStatus, presented: Presented<M>): void {
    this.status = status;
    this.presented = presented;
    this.isSettled = isImmutableStatus(status);
    this.send = new PolledTransaction();
    this.delivery = new PolledTransaction();
  }
}

/** One of a transfer's transactions, as polls have seen it. */
class PolledTransaction {
  /** Hash of its block; undefined: not seen yet. */
  #blockHash: string | undefined = undefined;
  /** Polls in a row in which an endpoint that has its block did not have the transaction. */
  #misses = 0;

  /**
   * Records what a poll says about the transaction.
   * @param blockNumber block in which it was mined
   * @returns whether a reorg has removed or moved it
   */
  record({ receipt, head }: Answer, blockNumber: number): boolean {
    if (receipt === undefined) {
      // An endpoint that lags behind knows neither the block nor the transaction.
      if (head < blockNumber) return false;
      this.#misses += 1;
      return this.#misses >= MISSES_BEFORE_REORG;
    }
    // Until a lookup has found out where it is now, each poll says so again.
    if (this.#blockHash !== undefined && this.#blockHash !== receipt.blockHash) return true;
    this.#blockHash = receipt.blockHash;
    this.#misses = 0;
    return false;
  }
}

/** Lets lookups of one thing begin one after the other, and after failures later and later. */
export class LookupTurn {
  readonly #now: () => number;
  readonly #maxRetryMs: number | undefined;
  #isBusy = false;
  #failures = 0;
  #nextAt = 0;
  #afterwards: (() => void) | undefined;

  /**
   * @param now monotonic clock, in milliseconds
   * @param maxRetryMs longest time between two attempts
   */
  constructor(now: () => number, maxRetryMs?: number) {
    this.#now = now;
    this.#maxRetryMs = maxRetryMs;
  }

  /**
   * Runs a lookup, unless one is running or it is too early.
   * @param work returns whether it brought what was expected; if not, or if it fails, the next one has to wait
   */
  async run(work: () => Promise<boolean>, onError?: (error: unknown) => void): Promise<void> {
    if (this.#isBusy || this.#now() < this.#nextAt) return;
    this.#isBusy = true;
    let isExpected = false;
    try {
      isExpected = await work();
    } catch (error) {
      onError?.(error);
    } finally {
      this.#isBusy = false;
      this.#failures = isExpected ? 0 : this.#failures + 1;
      if (!isExpected) this.#nextAt = this.#now() + getRetryDelayMs(this.#failures, this.#maxRetryMs);
      this.#takeNews();
    }
  }

  /**
   * Runs a lookup of something that has changed, whatever the time. One that is running may have read it before: then another
   * follows.
   * @param lookUp calls `run`
   */
  runForNews(lookUp: () => void): void {
    this.#afterwards = lookUp;
    if (!this.#isBusy) this.#takeNews();
  }

  #takeNews(): void {
    const lookUp = this.#afterwards;
    if (lookUp === undefined) return;
    this.#afterwards = undefined;
    this.#nextAt = 0;
    lookUp();
  }
}

/**
 * Returns whether a status that a lookup returned replaces the one that is known. An endpoint that lags, or the explorer,
 * may return an older one: a transfer goes back only when polls have seen a reorg, or when the index, which is newer, says so.
 */
export function shouldReplaceStatus(known: TransferStatus, found: TransferStatus, reason: LookupReason): boolean {
  if (found.source === "explorer") return known.source === "explorer" && !isBackward(known, found);
  if (found.source === "index") return found.observedAtMs >= known.observedAtMs || !isBackward(known, found);
  return reason === "reorg" || !isBackward(known, found);
}

function isBackward(known: TransferStatus, found: TransferStatus): boolean {
  if (known.delivery === undefined) return false;
  if (found.delivery === undefined) return true;
  return known.delivery.transactionHash !== undefined && found.delivery.transactionHash === undefined;
}
