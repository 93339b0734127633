import type { Followers } from "./following/followers.js";
import { decodeResumeToken, encodeResumeToken } from "./resume-token.js";
import { TargetCursor, type TargetEvent } from "./target-cursor.js";
import type { Alarm, WatchClock } from "./watch-clock.js";
import type { WatchTarget } from "./watch-target.js";

/** Where the events of a watch go. */
export interface WatchSink<M> {
  /** Returns whether the caller has read what was sent. */
  isReady(): boolean;
  sendTransfer(message: M, resumeToken: string): void;
  sendUnknown(target: WatchTarget, isFinal: boolean, resumeToken: string): void;
  sendBookmark(resumeToken: string): void;
  /** Ends the watch: with an error, or because nothing can change any more. */
  end(error?: unknown): void;
  /** Ends the watch so that the caller resumes it. */
  interrupt(): void;
}

export type WatchEventKind = "transfer" | "unknown" | "bookmark";

/** What all watches share. */
export interface WatchDeps<M> {
  readonly followers: Followers<M>;
  readonly clock: WatchClock;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  readonly onEvent: (kind: WatchEventKind) => void;
  /** Called once for each watch when it has ended. */
  readonly onClose: (caller: string, targets: number) => void;
}

export interface WatchRequest {
  /** Canonical. */
  readonly targets: readonly WatchTarget[];
  readonly queryDigest: string;
  /** Empty: a new watch. */
  readonly resumeToken: string;
  /** Slug of the chain on which the transfers probably were sent; empty: unknown. */
  readonly likelySource: string;
  readonly caller: string;
  /** Longest life and longest silence, in milliseconds. */
  readonly lifetimeMs: number;
  readonly bookmarkMs: number;
}

/** A reader that is slow gets no bookmark; it is looked at again after this time. */
const NOT_READY_RETRY_MS = 1_000;
/** Far below the age at which a token says nothing any more. */
const TOKEN_REUSE_MS = 10 * 60_000;

/**
 * One open watch: sends what its caller has not received yet, newest states only. A class, because there may be ten
 * thousands: its methods are shared, and one timer wakes all of them.
 */
export class TransferWatch<M> implements Alarm {
  private readonly cursors: readonly TargetCursor<M>[];
  private readonly endsAt: number;
  private lastSentAt: number;
  private isOpen = true;
  private isFlushing = false;
  /** The last token, and when it was made. */
  private token = "";
  private tokenAt = 0;

  /** @throws ServiceError INVALID_PARAMETER for a bad resume token */
  constructor(
    private readonly request: WatchRequest,
    private readonly sink: WatchSink<M>,
    private readonly deps: WatchDeps<M>,
  ) {
    const { targets, resumeToken, queryDigest, lifetimeMs } = request;
    const resumed =
      resumeToken === "" ? undefined : decodeResumeToken(resumeToken, queryDigest, targets.length, this.nowSeconds());
    const openedAt = this.nowSeconds();
    this.cursors = targets.map((target, index) => new TargetCursor(target, resumed?.targets[index], this, openedAt));
    this.lastSentAt = deps.now();
    this.endsAt = this.lastSentAt + lifetimeMs;
    this.isResumedComplete = resumed?.isComplete === true;
  }

  /** Whether the caller's token says that nothing could change any more. */
  private readonly isResumedComplete: boolean;

  /** Begins to follow the targets. @throws ServiceError OVERLOADED when too many are followed */
  start(): void {
    const { followers, clock } = this.deps;
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
    clock.add(this, this.getNextAlarm());
    this.flush();
  }

  onTargetChange(): void {
    this.flush();
  }

  fail(error: unknown): void {
    if (this.isOpen) this.sink.end(error);
  }

  onReady(): void {
    this.flush();
  }

  onDrain(): void {
    if (!this.isOpen) return;
    this.sendBookmark();
    this.sink.interrupt();
  }

  onEnd(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.deps.clock.remove(this);
    for (const cursor of this.cursors) this.leave(cursor);
    this.deps.onClose(this.request.caller, this.cursors.length);
  }

  onAlarm(now: number): number | undefined {
    if (now >= this.endsAt) {
      this.onDrain();
      return undefined;
    }
    this.flush();
    if (!this.isOpen) return undefined;
    if (now - this.lastSentAt >= this.request.bookmarkMs) {
      if (!this.sink.isReady()) return now + NOT_READY_RETRY_MS;
      this.sendBookmark();
    }
    return this.getNextAlarm();
  }

  /** Sends what the caller does not know yet, as far as it reads; ends the watch when nothing can change any more. */
  private flush(): void {
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

  private sendBookmark(): void {
    // What was sent has not changed since the last token: it is made again only before it would be too old.
    const { now } = this.deps;
    if (this.token === "" || now() - this.tokenAt >= TOKEN_REUSE_MS) this.createToken();
    this.noteSent("bookmark");
    this.sink.sendBookmark(this.token);
  }

  private noteSent(kind: WatchEventKind): void {
    this.lastSentAt = this.deps.now();
    this.deps.onEvent(kind);
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

  private getNextAlarm(): number {
    let next = Math.min(this.lastSentAt + this.request.bookmarkMs, this.endsAt);
    for (const cursor of this.cursors) {
      const expiry = cursor.getExpiry();
      if (expiry !== undefined) next = Math.min(next, this.deps.now() + expiry * 1_000 - this.deps.wallNow());
    }
    return next;
  }

  private nowSeconds(): number {
    return Math.floor(this.deps.wallNow() / 1_000);
  }
}
