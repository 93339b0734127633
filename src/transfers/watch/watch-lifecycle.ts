import type { Network } from "../../hop/networks.js";

/** What a watch names: one transfer by its ID, or all transfers of a transaction. */
export interface WatchTarget {
  readonly network: Network;
  readonly kind: "id" | "hash";
  /** As in TransferQuery, lower case. */
  readonly value: string;
  /** Whether the details of the transfers are wanted as well. */
  readonly isFull: boolean;
}

export type WatchEvent<M> =
  | { readonly kind: "transfer"; readonly message: M }
  | { readonly kind: "unknown"; readonly target: WatchTarget; readonly isFinal: boolean }
  | { readonly kind: "bookmark" };
export type WatchEventKind = WatchEvent<unknown>["kind"];

/** Where the events of a watch go. */
export interface WatchSink<M> {
  /** Returns whether the caller has read what was sent. */
  isReady(): boolean;
  send(event: WatchEvent<M>, resumeToken: string): void;
  /** Ends the watch: with an error, or because nothing can change any more. */
  end(error?: unknown): void;
  /** Ends the watch so that the caller resumes it. */
  interrupt(): void;
}

/** The bounds of a watch, and who is told of its events. Times are milliseconds. */
export interface WatchLifecycleOptions {
  readonly lifetimeMs: number;
  /** Longest silence. */
  readonly bookmarkMs: number;
  /** Monotonic clock. */
  readonly now: () => number;
  readonly onEvent: (kind: WatchEventKind) => void;
  /** Called once when the watch has ended. */
  readonly onClose: () => void;
}

/** A reader that is slow gets no bookmark; it is visited again after this time. */
const NOT_READY_RETRY_MS = 1_000;
const BOOKMARK = Object.freeze({ kind: "bookmark" });

/**
 * The life of an open watch, whatever it watches: bookmarks in silence, the end of its time, drain and close. A base class,
 * because there may be ten thousands: its methods are shared, and it adds no object to a watch.
 */
export abstract class WatchLifecycle<M> {
  /** When the watch is to be visited, on the monotonic clock. What it sends meanwhile only puts off its work. */
  dueAt = Number.POSITIVE_INFINITY;
  protected isOpen = true;
  protected hasSent = false;
  protected readonly openedAt: number;
  readonly #options: WatchLifecycleOptions;
  #lastSentAt: number;

  constructor(
    protected readonly sink: WatchSink<M>,
    options: WatchLifecycleOptions,
  ) {
    this.#options = options;
    this.openedAt = options.now();
    this.#lastSentAt = this.openedAt;
  }

  /** Sends what the caller does not know yet, as far as it reads. */
  abstract onNews(): void;
  /** Does what is due at `getNextDueAt`. May be called earlier. */
  protected abstract onDue(now: number): void;
  /** Returns when there is something to do besides bookmarks, on the monotonic clock. */
  protected abstract getNextDueAt(): number;
  /** Returns a token of everything that was sent. */
  protected abstract createToken(): string;
  /** Releases what the watch holds. Called once. */
  protected abstract release(): void;

  start(): void {
    this.reschedule();
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
    this.release();
    this.#options.onClose();
  }

  /** Does what is due, and sets `dueAt` anew. */
  visit(now: number): void {
    if (now >= this.#getEndsAt()) {
      this.onDrain();
      return;
    }
    this.onDue(now);
    if (!this.isOpen) return;
    if (now - this.#lastSentAt >= this.#options.bookmarkMs) {
      if (!this.sink.isReady()) {
        this.dueAt = now + NOT_READY_RETRY_MS;
        return;
      }
      this.sendBookmark();
    }
    this.reschedule();
  }

  /** Sets `dueAt`: after what is due next has changed to an earlier time. */
  protected reschedule(): void {
    this.dueAt = Math.min(this.#lastSentAt + this.#options.bookmarkMs, this.#getEndsAt(), this.getNextDueAt());
  }

  protected send(event: WatchEvent<M>, resumeToken: string): void {
    this.hasSent = true;
    this.#lastSentAt = this.#options.now();
    this.#options.onEvent(event.kind);
    this.sink.send(event, resumeToken);
  }

  protected sendBookmark(): void {
    this.send(BOOKMARK, this.createToken());
  }

  #getEndsAt(): number {
    return this.openedAt + this.#options.lifetimeMs;
  }
}
