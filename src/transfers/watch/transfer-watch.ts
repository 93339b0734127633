import type { Followers } from "./following/followers.js";
import { decodeResumeToken, encodeResumeToken } from "./resume-token.js";
import { TargetCursor, type TargetEvent } from "./target-cursor.js";
import { WatchLifecycle, type WatchLifecycleDeps, type WatchSink, type WatchTimes } from "./watch-lifecycle.js";
import type { WatchTarget } from "./watch-target.js";

export interface TransferWatchDeps<M> extends WatchLifecycleDeps {
  readonly followers: Followers<M>;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
}

export interface TransferWatchRequest extends WatchTimes {
  /** Canonical. */
  readonly targets: readonly WatchTarget[];
  readonly queryDigest: string;
  /** Empty: a new watch. */
  readonly resumeToken: string;
  /** Slug of the chain on which the transfers probably were sent; empty: unknown. */
  readonly likelySource: string;
  readonly caller: string;
}

/** Far below the age at which a token says nothing any more. */
const TOKEN_REUSE_MS = 10 * 60_000;

/** One open watch of transfers: sends what its caller has not received yet, newest states only. */
export class TransferWatch<M> extends WatchLifecycle<M, TransferWatchRequest, TransferWatchDeps<M>> {
  private readonly cursors: readonly TargetCursor<M>[];
  /** Whether the caller's token says that nothing could change any more. */
  private readonly isResumedComplete: boolean;
  private isFlushing = false;
  /** The last token, and when it was made. */
  private token = "";
  private tokenAt = 0;

  /** @throws ServiceError INVALID_PARAMETER for a bad resume token */
  constructor(request: TransferWatchRequest, sink: WatchSink<M>, deps: TransferWatchDeps<M>) {
    super(request, sink, deps);
    const { targets, resumeToken, queryDigest } = request;
    const openedAt = this.nowSeconds();
    const resumed =
      resumeToken === "" ? undefined : decodeResumeToken(resumeToken, queryDigest, targets.length, openedAt);
    this.cursors = targets.map((target, index) => new TargetCursor(target, resumed?.targets[index], this, openedAt));
    this.isResumedComplete = resumed?.isComplete === true;
  }

  /** Begins to follow the targets. @throws ServiceError OVERLOADED when too many are followed */
  override start(): void {
    const { followers } = this.deps;
    if (this.isResumedComplete) {
      this.sink.end();
      return;
    }
    // Followers may know their transfers already; nothing is sent before all are asked.
    this.isFlushing = true;
    for (const cursor of this.cursors) {
      if (cursor.isWanted) cursor.follower = followers.acquire(cursor.target, this.request, cursor);
    }
    this.isFlushing = false;
    super.start();
  }

  fail(error: unknown): void {
    if (this.isOpen) this.sink.end(error);
  }

  /** Sends what the caller does not know yet, as far as it reads; ends the watch when nothing can change any more. */
  onNews(): void {
    if (this.isFlushing || !this.isOpen) return;
    this.isFlushing = true;
    try {
      for (const cursor of this.cursors) {
        for (;;) {
          const event = cursor.peek(this.nowSeconds());
          if (event === undefined) break;
          // onReady goes on here.
          if (!this.isOpen || !this.sink.isReady()) return;
          this.sendEvent(cursor, event);
        }
      }
      if (this.isOpen && this.isComplete()) this.sink.end();
    } finally {
      this.isFlushing = false;
    }
  }

  protected onDue(): void {
    this.onNews();
  }

  protected getNextDueAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const cursor of this.cursors) {
      const expiry = cursor.getExpiry();
      if (expiry !== undefined) next = Math.min(next, this.deps.now() + expiry * 1_000 - this.deps.wallNow());
    }
    return next;
  }

  protected getBookmarkToken(): string {
    // What was sent has not changed since the last token: it is made again only before it would be too old.
    if (this.token !== "" && this.deps.now() - this.tokenAt < TOKEN_REUSE_MS) return this.token;
    return this.createToken();
  }

  protected release(): void {
    for (const cursor of this.cursors) this.leave(cursor);
  }

  private sendEvent(cursor: TargetCursor<M>, event: TargetEvent<M>): void {
    cursor.record(event, this.nowSeconds());
    const token = this.createToken();
    this.noteSent(event.kind);
    if (event.kind === "transfer") this.sink.sendTransfer(event.transfer.presented.message, token);
    else {
      if (event.isFinal) this.leave(cursor);
      this.sink.sendUnknown(cursor.target, event.isFinal, token);
    }
  }

  private createToken(): string {
    const targets = this.cursors.map((cursor) => cursor.toProgress());
    const progress = { isComplete: this.isComplete(), targets };
    this.token = encodeResumeToken(this.request.queryDigest, progress, this.nowSeconds());
    this.tokenAt = this.deps.now();
    return this.token;
  }

  private isComplete(): boolean {
    const nowSeconds = this.nowSeconds();
    return this.cursors.every((cursor) => cursor.isComplete(nowSeconds));
  }

  private leave(cursor: TargetCursor<M>): void {
    const { follower } = cursor;
    cursor.follower = undefined;
    if (follower !== undefined) this.deps.followers.release(follower, cursor);
  }

  private nowSeconds(): number {
    return Math.floor(this.deps.wallNow() / 1_000);
  }
}
