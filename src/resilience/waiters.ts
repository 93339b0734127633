import { ABANDONED, addAbortListener } from "./abort-scope.js";

/** Who waits for a result: one caller, or a group whose callers come and go. */
export interface Requester {
  /** Key that tells callers apart: they share limited resources fairly. */
  readonly caller: string;
  /** Aborts when nobody of them waits any more. */
  readonly signal: AbortSignal;
  /** Absent: the one caller. */
  readonly waiters?: Waiters | undefined;
}

/** Learns of callers who come and go. */
export interface WaitersObserver {
  onJoin(caller: string): void;
  /** @param isLast whether nobody waits any more */
  onLeave(caller: string, isLast: boolean): void;
}

/**
 * The callers who wait for one piece of work, such as a lookup. They come and go while it waits in queues and while it runs.
 * It has a place in the fair queues of all of them, and ends when the last one has left.
 */
export class Waiters implements Iterable<string> {
  readonly #closing: AbortSignal | undefined;
  readonly #controller = new AbortController();
  /** How often each caller waits; those who have waited for the longest time first. */
  readonly #counts = new Map<string, number>();
  readonly #observers = new Set<WaitersObserver>();
  /** The caller who left last; empty until all have left. */
  #last: readonly string[] = [];
  readonly #close = (): void => this.close();

  /** @param closing ends the work even if callers wait for it. Default: nothing does */
  constructor(closing?: AbortSignal) {
    this.#closing = closing;
    if (closing?.aborted) this.close();
    else if (closing !== undefined) addAbortListener(closing, this.#close);
  }

  /** Aborts when the last caller has left, for good. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#counts.keys();
  }

  add(caller: string): void {
    const count = this.#counts.get(caller) ?? 0;
    this.#counts.set(caller, count + 1);
    if (count === 0) for (const observer of this.#observers) observer.onJoin(caller);
  }

  remove(caller: string): void {
    const count = this.#counts.get(caller) ?? 0;
    if (count > 1) this.#counts.set(caller, count - 1);
    else if (this.#counts.delete(caller)) {
      const isLast = this.#counts.size === 0;
      if (isLast) this.#last = [caller];
      for (const observer of this.#observers) observer.onLeave(caller, isLast);
    }
    if (this.#counts.size === 0) this.close();
  }

  /**
   * Returns who takes turns and pays: those who wait; when all have left, the last of them. Some work outlives those who
   * waited for it, such as a log scan in the background.
   */
  listCharged(): Iterable<string> {
    return this.#counts.size > 0 ? this.#counts.keys() : this.#last;
  }

  /** Adds the callers of a group, also those who join it later, as long as they wait there. Returns the function that ends this. */
  addAll(group: Waiters): () => void {
    const observer = { onJoin: (caller: string) => this.add(caller), onLeave: (caller: string) => this.remove(caller) };
    group.observe(observer);
    for (const caller of group) this.add(caller);
    return () => {
      group.unobserve(observer);
      for (const caller of group) this.remove(caller);
    };
  }

  /** Reports who comes and goes from now on. */
  observe(observer: WaitersObserver): void {
    this.#observers.add(observer);
  }

  unobserve(observer: WaitersObserver): void {
    this.#observers.delete(observer);
  }

  /** Ends the work whoever waits. Call it when the work is done. */
  close(): void {
    this.#closing?.removeEventListener("abort", this.#close);
    this.#controller.abort(ABANDONED);
  }
}

/** Returns who takes turns and pays, where that may be one caller. */
export function listCallers(callers: string | Waiters): Iterable<string> {
  return typeof callers === "string" ? [callers] : callers.listCharged();
}

/** Adds a requester to those who wait. Returns the function that removes it, to be called once. */
export function joinWaiters(waiters: Waiters, { caller, waiters: group }: Requester): () => void {
  if (group !== undefined) return waiters.addAll(group);
  waiters.add(caller);
  return () => waiters.remove(caller);
}
