import { ABANDONED } from "../../resilience/abort-scope.js";
import { getRetryDelayMs } from "./chain-poller.js";
import { type ChangeMark, decodeAccountToken, encodeAccountToken } from "./resume-token.js";
import { MAX_CATCH_UP_SECONDS } from "./transfer-watch.js";
import { WatchLifecycle, type WatchLifecycleOptions, type WatchSink } from "./watch-lifecycle.js";
import {
  type AccountSnapshot,
  type AccountSubscription,
  isWaiting,
  type PresentedTransfer,
  type TransferKey,
  type WatchedAccounts,
} from "./watched-accounts.js";

export interface AccountWatchRequest extends AccountSubscription {
  /** Empty: a new watch. */
  readonly resumeToken: string;
  readonly queryDigest: string;
  /** Differs from watch to watch. */
  readonly number: number;
}

/** How often the details of transfers that wait are read again; states are kept for as long. */
const DETAILS_INTERVAL_MS = 60_000;
const NONE: readonly TransferKey[] = [];

/** One open watch of an account: sends present states first, then what the history tells. */
export class AccountWatch<M> extends WatchLifecycle<M> {
  readonly #request: AccountWatchRequest;
  readonly #states: WatchedAccounts<M>;
  readonly #leave: () => void;
  /** What the token says; used once, as soon as the history is ready. */
  #resumed: ChangeMark | undefined;
  #generation = -1;
  /** Order of the last change that the caller knows; undefined: it has to get the present states. */
  #position: number | undefined = undefined;
  /** The present states that are being sent, and the place of the next one. */
  #beginning: { readonly snapshot: AccountSnapshot; readonly release: () => void; next: number } | undefined =
    undefined;
  #retryAt = Number.POSITIVE_INFINITY;
  #failures = 0;
  /** Ends what is being read; undefined: nothing is. */
  #reading: AbortController | undefined = undefined;
  #hasNews = false;
  /** When to read the details of transfers that wait; Infinity: none does. */
  #detailsAt = Number.POSITIVE_INFINITY;
  /** Those of them whose details are still to be read. */
  #waiting: readonly TransferKey[] = NONE;

  /** @throws ServiceError INVALID_PARAMETER for a bad resume token */
  constructor(
    request: AccountWatchRequest,
    sink: WatchSink<M>,
    states: WatchedAccounts<M>,
    options: WatchLifecycleOptions,
  ) {
    super(sink, options);
    this.#request = request;
    this.#states = states;
    const { resumeToken, queryDigest } = request;
    this.#resumed = resumeToken === "" ? undefined : decodeAccountToken(resumeToken, queryDigest);
    this.#leave = states.join(request.account, this);
    // What was sent before it was resumed may wait as well.
    this.#expectDetails();
  }

  onNews(): void {
    this.#hasNews = true;
    if (this.#reading === undefined) void this.#sendAll();
  }

  protected onDue(now: number): void {
    if (now < this.getNextDueAt()) return;
    this.#retryAt = Number.POSITIVE_INFINITY;
    this.onNews();
  }

  protected getNextDueAt(): number {
    return Math.min(this.#retryAt, this.#detailsAt);
  }

  protected createToken(): string {
    const { history } = this.#states;
    const { queryDigest, resumeToken } = this.#request;
    // Before the history is ready, the caller knows what it knew before.
    if (this.#generation === -1 && resumeToken !== "") return resumeToken;
    const position = this.#generation === history.generation ? this.#position : undefined;
    return encodeAccountToken(queryDigest, position === undefined ? undefined : history.getMark(position));
  }

  protected release(): void {
    this.#endBeginning();
    this.#reading?.abort(ABANDONED);
    this.#leave();
  }

  async #sendAll(): Promise<void> {
    this.#reading = new AbortController();
    const { signal } = this.#reading;
    try {
      while (this.#hasNews && this.isOpen) {
        this.#hasNews = false;
        while (this.#canSend() && (await this.#sendNext(signal))) this.#failures = 0;
      }
    } catch {
      this.#retryLater();
    } finally {
      this.#reading = undefined;
    }
  }

  #canSend(): boolean {
    return this.isOpen && this.#states.history.isReady && this.sink.isReady();
  }

  /** Does the next step. Returns whether there may be another one. */
  async #sendNext(signal: AbortSignal): Promise<boolean> {
    const { history } = this.#states;
    // What this account misses is told when it comes; the retry only matters if that is never.
    if (this.#isBehindCaller()) throw new Error("this process knows less than the caller");
    if (this.#generation !== history.generation) this.#findPosition();
    if (this.#position !== undefined && !history.covers(this.#position)) this.#position = undefined;
    if (this.#position === undefined) return this.#sendPresentStates(signal);
    const entry = history.findNext(this.#request.account, this.#position);
    if (entry === undefined) {
      this.#position = history.newestOrder;
      // Resumed, and nothing has changed since: the caller learns that the watch is back.
      if (!this.hasSent) this.sendBookmark();
      return this.#sendWaiting(signal);
    }
    const generation = this.#generation;
    const transfers = await this.#states.find(entry.change, this.#request, signal);
    // Otherwise the change is read again: in a moment, or when the caller reads.
    if (!this.#canSend() || generation !== history.generation) return this.isOpen;
    this.#position = entry.order;
    if (transfers.length === 0) this.#sendUnknown(entry.change);
    else this.#sendTransfers(entry.change, transfers);
    return true;
  }

  /** Returns whether to wait until this process has read what another one has told the caller. */
  #isBehindCaller(): boolean {
    const { history, now } = this.#states;
    if (this.#resumed === undefined || !history.isBehind(this.#resumed)) return false;
    return now() - this.openedAt < MAX_CATCH_UP_SECONDS * 1_000;
  }

  /** Goes on where the token says, unless changes were missed. */
  #findPosition(): void {
    const { history } = this.#states;
    this.#generation = history.generation;
    this.#endBeginning();
    this.#position = this.#resumed && history.findOrder(this.#resumed);
    this.#resumed = undefined;
  }

  async #sendPresentStates(signal: AbortSignal): Promise<boolean> {
    const states = this.#states;
    if (this.#beginning === undefined) {
      const snapshot = await states.readSnapshot(this.#request, signal);
      if (!this.isOpen || snapshot.generation !== states.history.generation) return this.isOpen;
      this.#begin(snapshot);
      return this.isOpen;
    }
    const beginning = this.#beginning;
    const key = beginning.snapshot.transfers[beginning.next];
    if (key === undefined) {
      // Changes since the snapshot was read follow, or all states once more if they are not kept.
      this.#position = beginning.snapshot.order;
      this.#endBeginning();
      this.sendBookmark();
      return true;
    }
    const transfers = await states.find(key, this.#request, signal);
    if (!this.#canSend() || this.#beginning !== beginning) return this.isOpen;
    beginning.next += 1;
    this.#sendTransfers(key, transfers);
    return true;
  }

  /**
   * Sends the next transfer that waits again if its details have changed: a root arrives, or is gone after a reorg.
   * @returns whether others may follow; changes of the index go first
   */
  async #sendWaiting(signal: AbortSignal): Promise<boolean> {
    const states = this.#states;
    if (this.#waiting.length === 0 && states.now() >= this.#detailsAt) {
      this.#detailsAt = states.now() + DETAILS_INTERVAL_MS;
      this.#waiting = (await states.readSnapshot(this.#request, signal)).waiting;
      if (this.#waiting.length === 0) this.#detailsAt = Number.POSITIVE_INFINITY;
    }
    const [key, ...others] = this.#waiting;
    if (key === undefined) return false;
    // One that cannot be read holds up no other: its turn comes again.
    const transfers = await states.find(key, this.#request, signal).catch(() => []);
    if (!this.#canSend()) return false;
    this.#waiting = others;
    this.#sendTransfers(key, transfers);
    return true;
  }

  #expectDetails(): void {
    if (!this.#request.isFull || this.#detailsAt !== Number.POSITIVE_INFINITY) return;
    this.#detailsAt = this.#states.now() + DETAILS_INTERVAL_MS;
    this.reschedule();
  }

  #begin(snapshot: AccountSnapshot): void {
    try {
      const release = this.#states.acquireUnsent(this.#request.caller, snapshot.transfers.length);
      this.#beginning = { snapshot, release, next: 0 };
    } catch (error) {
      this.sink.end(error);
    }
  }

  #endBeginning(): void {
    this.#beginning?.release();
    this.#beginning = undefined;
  }

  #sendTransfers(key: TransferKey, transfers: readonly PresentedTransfer<M>[]): void {
    const { account } = this.#request;
    for (const [index, { status, presented }] of transfers.entries()) {
      const { sent } = status;
      // Transfers that share transaction and ID may have different recipients.
      if (sent.account !== account && sent.event.recipient.toLowerCase() !== account) continue;
      if (isWaiting(status)) this.#expectDetails();
      const isFinal = status.isFinal && presented.isFinal;
      if (!this.#states.recordSent(this.#getPlace(key, index), presented.fingerprint, isFinal)) continue;
      this.send({ kind: "transfer", message: presented.message }, this.createToken());
      if (!this.isOpen) return;
    }
  }

  /** Tells that a reorg has removed a transfer. */
  #sendUnknown(key: TransferKey): void {
    if (!this.#states.recordSent(this.#getPlace(key, 0), -1, false)) return;
    const { network, isFull } = this.#request;
    const target = { network, isFull, kind: "id", value: key.transferId } as const;
    this.send({ kind: "unknown", target, isFinal: false }, this.createToken());
  }

  #getPlace({ transactionHash, transferId }: TransferKey, index: number): string {
    return `${this.#request.number} ${transactionHash} ${transferId} ${index}`;
  }

  #retryLater(): void {
    if (!this.isOpen) return;
    this.#failures += 1;
    this.#retryAt = this.#states.now() + getRetryDelayMs(this.#failures);
    this.reschedule();
  }
}
