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

/** Longest life and longest silence of a watch, in milliseconds. */
export interface WatchTimes {
  readonly lifetimeMs: number;
  readonly bookmarkMs: number;
}

export interface WatchLifecycleDeps {
  readonly clock: WatchClock;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly onEvent: (kind: WatchEventKind) => void;
  /** Called once when the watch has ended. */
  readonly onClose: () => void;
}

/** A reader that is slow gets no bookmark; it is looked at again after this time. */
const NOT_READY_RETRY_MS = 1_000;

/**
 * The life of an open watch, whatever it watches: bookmarks in silence, the end of its time, drain and close. A base class,
 * because there may be ten thousands: its methods are shared, it adds no object to a watch, and one timer wakes all of them.
 */
export abstract class WatchLifecycle<M, R extends WatchTimes, D extends WatchLifecycleDeps> implements Alarm {
  protected isOpen = true;
  protected readonly openedAt: number;
  private lastSentAt: number;

  constructor(
    protected readonly request: R,
    protected readonly sink: WatchSink<M>,
    protected readonly deps: D,
  ) {
    this.openedAt = deps.now();
    this.lastSentAt = this.openedAt;
  }

  /** Sends what the caller does not know yet, as far as it reads. */
  abstract onNews(): void;
  /** Does what is due at `getNextDueAt`. May be called earlier. */
  protected abstract onDue(now: number): void;
  /** Returns when there is something to do besides bookmarks, in milliseconds on the monotonic clock. */
  protected abstract getNextDueAt(): number;
  /** Returns a token of everything that was sent. */
  protected abstract getBookmarkToken(): string;
  /** Releases what the watch holds. Called once. */
  protected abstract release(): void;

  start(): void {
    this.deps.clock.add(this, this.getNextAlarm());
    this.onNews();
  }

  onReady(): void {
    this.onNews();
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
    this.release();
    this.deps.onClose();
  }

  onAlarm(now: number): number | undefined {
    if (now >= this.getEndsAt()) {
      this.onDrain();
      return undefined;
    }
    this.onDue(now);
    if (!this.isOpen) return undefined;
    if (now - this.lastSentAt >= this.request.bookmarkMs) {
      if (!this.sink.isReady()) return now + NOT_READY_RETRY_MS;
      this.sendBookmark();
    }
    return this.getNextAlarm();
  }

  /** Tells the clock that the next alarm may be earlier than it was. */
  protected reschedule(): void {
    const { clock } = this.deps;
    clock.remove(this);
    clock.add(this, this.getNextAlarm());
  }

  protected sendBookmark(): void {
    this.noteSent("bookmark");
    this.sink.sendBookmark(this.getBookmarkToken());
  }

  /** Records that an event is being sent. */
  protected noteSent(kind: WatchEventKind): void {
    this.lastSentAt = this.deps.now();
    this.deps.onEvent(kind);
  }

  private getEndsAt(): number {
    return this.openedAt + this.request.lifetimeMs;
  }

  private getNextAlarm(): number {
    return Math.min(this.lastSentAt + this.request.bookmarkMs, this.getEndsAt(), this.getNextDueAt());
  }
}
