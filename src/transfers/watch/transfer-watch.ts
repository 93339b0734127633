import type { FollowedTransfer } from "./followed-transfer.js";
import type { Follower, FollowerObserver } from "./follower.js";
import type { Followers } from "./followers.js";
import {
  combineFingerprints,
  decodeResumeToken,
  encodeResumeToken,
  getFingerprintStage,
  type TargetProgress,
} from "./resume-token.js";
import { WatchLifecycle, type WatchLifecycleOptions, type WatchSink, type WatchTarget } from "./watch-lifecycle.js";

export interface TransferWatchRequest {
  /** In the order that the resume token counts them. */
  readonly targets: readonly WatchTarget[];
  readonly queryDigest: string;
  /** Empty: a new watch. */
  readonly resumeToken: string;
  /** Slug of the chain on which the transfers probably were sent; empty: unknown. */
  readonly likelySource: string;
  readonly caller: string;
}

/** A token is made again after this time, long before it is too old to be resumed. */
const TOKEN_REUSE_MS = 10 * 60_000;
/** How long an unknown target is watched, in seconds: wallets subscribe before nodes have the transaction. */
const MAX_UNKNOWN_SECONDS = 600;
/**
 * How long a watch that was resumed, in seconds, holds back that a transfer is unknown, or at an earlier stage than it was
 * told: this replica may know less than the one before. After that it counts as a reorg.
 */
export const MAX_CATCH_UP_SECONDS = 30;
const NOTHING: readonly number[] = Object.freeze([]);

/** One open watch of transfers: sends what its caller has not received yet, newest states only. */
export class TransferWatch<M> extends WatchLifecycle<M> {
  readonly #request: TransferWatchRequest;
  readonly #followers: Followers<M>;
  readonly #cursors: readonly TargetCursor<M>[];
  /** Whether the caller's token says that nothing could change any more. */
  readonly #isResumedComplete: boolean;
  #isFlushing = false;
  /** The last token, and when it was made. */
  #token = "";
  #tokenAt = 0;

  /** @throws ServiceError INVALID_PARAMETER for a bad resume token */
  constructor(
    request: TransferWatchRequest,
    sink: WatchSink<M>,
    followers: Followers<M>,
    options: WatchLifecycleOptions,
  ) {
    super(sink, options);
    this.#request = request;
    this.#followers = followers;
    const { targets, resumeToken, queryDigest } = request;
    const openedAt = this.#nowSeconds();
    const resumed =
      resumeToken === "" ? undefined : decodeResumeToken(resumeToken, queryDigest, targets.length, openedAt);
    this.#cursors = targets.map((target, index) => new TargetCursor(target, resumed?.targets[index], this, openedAt));
    this.#isResumedComplete = resumed?.isComplete === true;
  }

  /** Begins to follow the targets. @throws ServiceError OVERLOADED when too many are followed */
  override start(): void {
    if (this.#isResumedComplete) {
      this.sink.end();
      return;
    }
    // Followers may know their transfers already; nothing is sent before all are asked.
    this.#isFlushing = true;
    for (const cursor of this.#cursors) {
      if (!cursor.isGivenUp) cursor.follower = this.#followers.acquire(cursor.target, this.#request, cursor);
    }
    this.#isFlushing = false;
    super.start();
  }

  fail(error: unknown): void {
    if (this.isOpen) this.sink.end(error);
  }

  /** Sends what the caller does not know yet, as far as it reads; ends the watch when nothing can change any more. */
  onNews(): void {
    if (this.#isFlushing || !this.isOpen) return;
    this.#isFlushing = true;
    try {
      for (const cursor of this.#cursors) {
        for (;;) {
          const event = cursor.peek(this.#nowSeconds());
          if (event === undefined) break;
          // onReady goes on here.
          if (!this.isOpen || !this.sink.isReady()) return;
          this.#sendEvent(cursor, event);
        }
      }
      if (!this.isOpen) return;
      if (this.#isComplete()) this.sink.end();
      // Resumed, and nothing has changed since: the caller learns that the watch is back.
      else if (!this.hasSent && this.#cursors.every(({ isCompared }) => isCompared)) this.sendBookmark();
    } finally {
      this.#isFlushing = false;
    }
  }

  protected onDue(): void {
    this.onNews();
  }

  protected getNextDueAt(): number {
    const { now, wallNow } = this.#followers;
    let next = Number.POSITIVE_INFINITY;
    for (const cursor of this.#cursors) {
      const expiry = cursor.getExpiry();
      if (expiry !== undefined) next = Math.min(next, now() + expiry * 1_000 - wallNow());
    }
    return next;
  }

  protected createToken(hasChanged = false): string {
    // What was sent has not changed since the last token: it is made again only before it would be too old.
    const isFresh = this.#token !== "" && this.#followers.now() - this.#tokenAt < TOKEN_REUSE_MS;
    if (isFresh && !hasChanged) return this.#token;
    const targets = this.#cursors.map((cursor) => cursor.toProgress());
    const progress = { isComplete: this.#isComplete(), targets };
    this.#token = encodeResumeToken(this.#request.queryDigest, progress, this.#nowSeconds());
    this.#tokenAt = this.#followers.now();
    return this.#token;
  }

  protected release(): void {
    for (const cursor of this.#cursors) this.#leave(cursor);
  }

  #sendEvent(cursor: TargetCursor<M>, event: TargetEvent<M>): void {
    cursor.record(event, this.#nowSeconds());
    const token = this.createToken(true);
    if (event.kind === "transfer") this.send({ kind: "transfer", message: event.transfer.presented.message }, token);
    else {
      if (event.isFinal) this.#leave(cursor);
      this.send({ ...event, target: cursor.target }, token);
    }
  }

  #isComplete(): boolean {
    const nowSeconds = this.#nowSeconds();
    return this.#cursors.every((cursor) => cursor.isComplete(nowSeconds));
  }

  #leave(cursor: TargetCursor<M>): void {
    const { follower } = cursor;
    cursor.follower = undefined;
    if (follower !== undefined) this.#followers.release(follower, this.#request.caller, cursor);
  }

  #nowSeconds(): number {
    return Math.floor(this.#followers.wallNow() / 1_000);
  }
}

/** What a watch has to tell about a target next. */
type TargetEvent<M> =
  | { readonly kind: "transfer"; readonly transfer: FollowedTransfer<M> }
  | { readonly kind: "unknown"; readonly isFinal: boolean };

/**
 * What one watch has told of one target. It keeps hashes of what was sent, not messages: a slow reader costs no more than a
 * fast one, and gets the newest state when it reads again. A class, because there may be a hundred thousand.
 */
class TargetCursor<M> implements FollowerObserver<M> {
  /** undefined: not followed (any more). */
  follower: Follower<M> | undefined = undefined;
  /** Whether the caller was told that the target is not looked for any more. */
  isGivenUp: boolean;
  /** Fingerprints of the states that were sent last, by slot of their transfers. */
  #sent: (number | undefined)[] = [];
  /** Fingerprints of what an earlier watch had sent, until the transfers are known. */
  #resumed: readonly number[];
  #unknownSince: number;
  readonly #watch: TransferWatch<M>;
  /** When the watch began, in Unix seconds. */
  readonly #openedAt: number;

  constructor(
    readonly target: WatchTarget,
    resumed: TargetProgress | undefined,
    watch: TransferWatch<M>,
    openedAt: number,
  ) {
    this.#watch = watch;
    this.#openedAt = openedAt;
    this.#resumed = resumed?.sent ?? NOTHING;
    this.#unknownSince = resumed?.unknownSince ?? 0;
    this.isGivenUp = resumed?.isGivenUp ?? false;
  }

  /** Whether what an earlier watch has told was compared with what is known now. */
  get isCompared(): boolean {
    return this.isGivenUp || (this.follower?.phase !== "searching" && this.#resumed.length === 0);
  }

  onChange(): void {
    this.#watch.onNews();
  }

  onFailure(error: unknown): void {
    this.#watch.fail(error);
  }

  /** Returns the next event that the caller has not received; undefined: it knows everything. */
  peek(nowSeconds: number): TargetEvent<M> | undefined {
    const { follower } = this;
    if (follower === undefined || this.isGivenUp || follower.phase === "searching") return undefined;
    if (this.#isBehind(follower, nowSeconds)) return undefined;
    if (follower.phase === "unknown") {
      if (this.#unknownSince === 0) return { kind: "unknown", isFinal: false };
      const isExpired = nowSeconds - this.#unknownSince >= MAX_UNKNOWN_SECONDS;
      return isExpired ? { kind: "unknown", isFinal: true } : undefined;
    }
    this.#skipResumed(follower.transfers);
    const transfer = follower.transfers.find(({ slot, presented }) => this.#sent[slot] !== presented.fingerprint);
    return transfer && { kind: "transfer", transfer };
  }

  /** Records that an event is being sent. */
  record(event: TargetEvent<M>, nowSeconds: number): void {
    if (event.kind === "transfer") {
      this.#unknownSince = 0;
      this.#sent[event.transfer.slot] = event.transfer.presented.fingerprint;
      return;
    }
    this.#sent = [];
    if (event.isFinal) this.isGivenUp = true;
    else this.#unknownSince = nowSeconds;
  }

  /** Returns whether the caller knows everything and nothing can change. */
  isComplete(nowSeconds: number): boolean {
    return this.isGivenUp || (this.follower?.isFinal === true && this.peek(nowSeconds) === undefined);
  }

  /** Returns when there will be news without a change, in Unix seconds; undefined: never. */
  getExpiry(): number | undefined {
    if (this.isGivenUp) return undefined;
    // Until the states of an earlier watch are compared, it may have to be waited for those that it has told.
    if (this.#resumed.length > 0) return this.#openedAt + MAX_CATCH_UP_SECONDS;
    return this.#unknownSince === 0 ? undefined : this.#unknownSince + MAX_UNKNOWN_SECONDS;
  }

  toProgress(): TargetProgress {
    const known = this.follower?.phase === "known" ? this.follower.transfers : [];
    const sent = known.map(({ slot }) => this.#sent[slot]).filter((fingerprint) => fingerprint !== undefined);
    return { sent: [...this.#resumed, ...sent], unknownSince: this.#unknownSince, isGivenUp: this.isGivenUp };
  }

  /** Returns whether the earlier watch, of another replica, probably knew more than the follower knows yet. */
  #isBehind({ phase, transfers }: Follower<M>, nowSeconds: number): boolean {
    const resumed = this.#resumed;
    if (resumed.length === 0 || nowSeconds - this.#openedAt >= MAX_CATCH_UP_SECONDS) return false;
    if (phase === "unknown") return true;
    const known = transfers.map(({ presented }) => presented.fingerprint);
    const lost = resumed.filter((fingerprint) => !known.includes(fingerprint));
    const gained = known.filter((fingerprint) => !resumed.includes(fingerprint));
    return Math.max(...lost.map(getFingerprintStage)) > Math.min(...gained.map(getFingerprintStage));
  }

  /** Counts states as sent that an earlier watch has sent. */
  #skipResumed(transfers: readonly FollowedTransfer<M>[]): void {
    const resumed = this.#resumed;
    if (resumed.length === 0) return;
    this.#resumed = NOTHING;
    const fingerprints = transfers.map(({ presented }) => presented.fingerprint);
    const areAllEqual = resumed.length === 1 && combineFingerprints(fingerprints)[0] === resumed[0];
    for (const { slot, presented } of transfers) {
      if (areAllEqual || resumed.includes(presented.fingerprint)) this.#sent[slot] = presented.fingerprint;
    }
  }
}
