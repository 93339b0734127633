import type { LRUCache } from "lru-cache";
import { getRetryDelayMs } from "../polling/pace.js";
import { MAX_CATCH_UP_SECONDS } from "../target-cursor.js";
import { WatchLifecycle, type WatchLifecycleDeps, type WatchSink, type WatchTimes } from "../watch-lifecycle.js";
import type { AccountQuery, AccountSnapshot, AccountStates, AccountTransfer, TransferKey } from "./account-states.js";
import { decodeAccountToken, encodeAccountToken } from "./account-token.js";
import type { ChangeHistory, ChangeMark } from "./change-history.js";
import { computeSentKey } from "./sent-key.js";

export interface AccountWatchDeps<M> extends WatchLifecycleDeps {
  readonly history: ChangeHistory;
  readonly states: AccountStates<M>;
  /** Fingerprints of what was sent last of transfers that can still change. What it has lost may be sent again. */
  readonly sent: LRUCache<number, number>;
  /** Takes places for transfers that are to be sent first, and returns the function that releases them. @throws ServiceError */
  readonly acquireSnapshot: (caller: string, count: number) => () => void;
}

export interface AccountWatchRequest extends AccountQuery, WatchTimes {
  readonly queryDigest: string;
  /** Empty: a new watch. */
  readonly resumeToken: string;
  /** Differs from watch to watch. */
  readonly number: number;
}

/** The present states that are being sent. */
interface Beginning {
  readonly snapshot: AccountSnapshot;
  readonly release: () => void;
  next: number;
}

/** One open watch of an account: sends present states first, then what the history tells. */
export class AccountWatch<M> extends WatchLifecycle<M, AccountWatchRequest, AccountWatchDeps<M>> {
  /** What the token says; used once, as soon as the history is ready. */
  private resumed: ChangeMark | undefined;
  private generation = -1;
  /** Order of the last change that the caller knows; undefined: it has to get the present states. */
  private position: number | undefined = undefined;
  private beginning: Beginning | undefined = undefined;
  private retryAt = Number.POSITIVE_INFINITY;
  private failures = 0;
  private isBusy = false;
  private hasNews = false;

  /** @throws ServiceError INVALID_PARAMETER for a bad resume token */
  constructor(request: AccountWatchRequest, sink: WatchSink<M>, deps: AccountWatchDeps<M>) {
    super(request, sink, deps);
    const { resumeToken, queryDigest } = request;
    this.resumed = resumeToken === "" ? undefined : decodeAccountToken(resumeToken, queryDigest);
  }

  onNews(): void {
    this.hasNews = true;
    if (!this.isBusy) void this.sendAll();
  }

  protected onDue(now: number): void {
    if (now < this.retryAt) return;
    this.retryAt = Number.POSITIVE_INFINITY;
    this.onNews();
  }

  protected getNextDueAt(): number {
    return this.retryAt;
  }

  protected getBookmarkToken(): string {
    return this.createToken();
  }

  protected release(): void {
    this.endBeginning();
  }

  private async sendAll(): Promise<void> {
    this.isBusy = true;
    try {
      while (this.hasNews && this.isOpen) {
        this.hasNews = false;
        while (this.canSend() && (await this.sendNext())) this.failures = 0;
      }
    } catch {
      this.retryLater();
    } finally {
      this.isBusy = false;
    }
  }

  private canSend(): boolean {
    return this.isOpen && this.deps.history.isReady && this.sink.isReady();
  }

  /** Does the next step. Returns whether there may be another one. */
  private async sendNext(): Promise<boolean> {
    const { history, states } = this.deps;
    // What this account misses is told when it comes; the retry only matters if that is never.
    if (this.isBehindCaller()) throw new Error("this process knows less than the caller");
    if (this.generation !== history.generation) this.findPosition();
    if (this.position !== undefined && !history.covers(this.position)) this.position = undefined;
    if (this.position === undefined) return this.sendPresentStates();
    const entry = history.findNext(this.request.account, this.position);
    if (entry === undefined) {
      this.position = history.newestOrder;
      return false;
    }
    const { generation } = this;
    const transfers = await states.find(entry.change, this.request);
    // Otherwise the change is read again: in a moment, or when the caller reads.
    if (!this.canSend() || generation !== history.generation) return this.isOpen;
    this.position = entry.order;
    if (transfers.length === 0) this.sendUnknown(entry.change);
    else this.sendTransfers(entry.change, transfers);
    return true;
  }

  /** Returns whether to wait until this process has read what another one has told the caller. */
  private isBehindCaller(): boolean {
    const { history, now } = this.deps;
    if (this.resumed === undefined || !history.isBehind(this.resumed)) return false;
    return now() - this.openedAt < MAX_CATCH_UP_SECONDS * 1_000;
  }

  /** Goes on where the token says, unless changes were missed. */
  private findPosition(): void {
    const { history } = this.deps;
    this.generation = history.generation;
    this.endBeginning();
    this.position = this.resumed && history.findOrder(this.resumed);
    this.resumed = undefined;
  }

  private async sendPresentStates(): Promise<boolean> {
    const { history, states } = this.deps;
    if (this.beginning === undefined) {
      const snapshot = await states.readSnapshot(this.request);
      if (!this.isOpen || snapshot.generation !== history.generation) return this.isOpen;
      this.begin(snapshot);
      return this.isOpen;
    }
    const { beginning } = this;
    const key = beginning.snapshot.transfers[beginning.next];
    if (key === undefined) {
      // Changes since the snapshot was read follow, or all states once more if they are not kept.
      this.position = beginning.snapshot.order;
      this.endBeginning();
      this.sendBookmark();
      return true;
    }
    const transfers = await states.find(key, this.request);
    if (!this.canSend() || this.beginning !== beginning) return this.isOpen;
    beginning.next += 1;
    this.sendTransfers(key, transfers);
    return true;
  }

  private begin(snapshot: AccountSnapshot): void {
    try {
      const release = this.deps.acquireSnapshot(this.request.caller, snapshot.transfers.length);
      this.beginning = { snapshot, release, next: 0 };
    } catch (error) {
      this.sink.end(error);
    }
  }

  private endBeginning(): void {
    this.beginning?.release();
    this.beginning = undefined;
  }

  private sendTransfers(key: TransferKey, transfers: readonly AccountTransfer<M>[]): void {
    const { account } = this.request;
    for (const [index, { status, presented }] of transfers.entries()) {
      const { sent } = status;
      // Transfers that share transaction and ID may have different recipients.
      if (sent.account !== account && sent.event.recipient.toLowerCase() !== account) continue;
      if (!this.recordSent(key, index, presented.fingerprint, status.isFinal && presented.isFinal)) continue;
      this.noteSent("transfer");
      this.sink.sendTransfer(presented.message, this.createToken());
      if (!this.isOpen) return;
    }
  }

  /** Tells that a reorg has removed a transfer. */
  private sendUnknown(key: TransferKey): void {
    if (!this.recordSent(key, 0, -1, false)) return;
    this.noteSent("unknown");
    const { network, isFull } = this.request;
    const target = { network, isFull, kind: "id", value: key.transferId } as const;
    this.sink.sendUnknown(target, false, this.createToken());
  }

  /** Records what is being sent of a transfer. Returns false if it was sent already. */
  private recordSent(
    { transactionHash, transferId }: TransferKey,
    index: number,
    fingerprint: number,
    isFinal: boolean,
  ) {
    const { sent } = this.deps;
    const key = computeSentKey(`${this.request.number} ${transactionHash} ${transferId} ${index}`);
    const isSame = sent.get(key) === fingerprint;
    if (isFinal) sent.delete(key);
    else sent.set(key, fingerprint);
    return !isSame;
  }

  private createToken(): string {
    const { history } = this.deps;
    // Before the history is ready, the caller knows what it knew before.
    if (this.generation === -1 && this.request.resumeToken !== "") return this.request.resumeToken;
    const isKnown = this.position !== undefined && this.generation === history.generation;
    return encodeAccountToken(
      this.request.queryDigest,
      isKnown && this.position !== undefined ? history.getMark(this.position) : undefined,
    );
  }

  private retryLater(): void {
    if (!this.isOpen) return;
    this.failures += 1;
    this.retryAt = this.deps.now() + getRetryDelayMs(this.failures);
    this.reschedule();
  }
}
