import { ServiceError } from "../errors.js";
import { addAbortListener } from "./abort-scope.js";
import { FairQuota } from "./fair-quota.js";
import { listCallers, Waiters } from "./waiters.js";

/** A permit: whose it is, and the function that returns it. */
interface Permit {
  readonly caller: string;
  readonly release: () => void;
}

type Admit = (permit: Permit) => void;

/** Work that waits for a permit of one semaphore; of one caller at most half of it. */
export const MAX_WAITING = 20_000;

/**
 * Limits concurrency such that callers share the permits fairly. There are twice as many permits as one caller may hold: a
 * caller holds at most as many as it leaves free (see FairQuota), so another caller need not wait for its long queue.
 * Where all work is of one caller, it is a plain semaphore.
 */
export class FairSemaphore {
  readonly #quota = new FairQuota(() => 2 * this.#permitsPerCaller);
  readonly #places = new FairQuota(() => MAX_WAITING);
  /** What waits, by caller; callers in the order of their turns. */
  readonly #queues = new Map<string, Set<Admit>>();
  #permitsPerCaller: number;

  /** @param permitsPerCaller permits of a caller that is alone */
  constructor(permitsPerCaller: number) {
    this.#permitsPerCaller = permitsPerCaller;
  }

  /**
   * Runs the work under a permit. Waiters of one caller are admitted in the order of their arrival, and callers take turns,
   * those first that hold less. Work of several callers waits in the queues of all, and begins in the first turn.
   * @param work gets the caller whose turn it is
   * @throws ServiceError OVERLOADED, at once, when too much waits
   * @throws the signal's reason if that aborts before a permit is available
   */
  async acquire<T>(callers: string | Waiters, signal: AbortSignal, work: (caller: string) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const permit = this.#tryAcquire(callers) ?? (await this.#waitForPermit(callers, signal));
    try {
      return await work(permit.caller);
    } finally {
      permit.release();
      this.#admitWaiters();
    }
  }

  /** Changes the number of permits. Running work keeps its permit. */
  setPermitsPerCaller(permitsPerCaller: number): void {
    this.#permitsPerCaller = permitsPerCaller;
    this.#admitWaiters();
  }

  #tryAcquire(callers: string | Waiters): Permit | undefined {
    if (this.#isFull()) return undefined;
    for (const caller of listCallers(callers)) {
      // A caller whose earlier calls wait must not overtake them.
      const release = this.#queues.has(caller) ? undefined : this.#quota.tryAcquire(caller);
      if (release !== undefined) return { caller, release };
    }
    return undefined;
  }

  #isFull(): boolean {
    return this.#quota.heldCount() >= 2 * this.#permitsPerCaller;
  }

  /**
   * Takes the permit on behalf of each admitted waiter, so that a new arrival cannot overtake it. Visits no more callers
   * than there are permits, however many wait: only one that holds a permit may be refused another while one is free.
   */
  #admitWaiters(): void {
    for (const [caller, queue] of this.#queues) {
      if (this.#isFull()) return;
      const release = this.#quota.tryAcquire(caller);
      if (release === undefined) continue;
      // The others have their turns before its next one, also in this loop.
      this.#queues.delete(caller);
      this.#queues.set(caller, queue);
      const [admit] = queue;
      admit?.({ caller, release });
    }
  }

  #enqueue(caller: string, admit: Admit): void {
    const queue = this.#queues.get(caller) ?? new Set();
    this.#queues.set(caller, queue.add(admit));
  }

  #dequeue(caller: string, admit: Admit): void {
    const queue = this.#queues.get(caller);
    queue?.delete(admit);
    if (queue?.size === 0) this.#queues.delete(caller);
  }

  async #waitForPermit(callers: string | Waiters, signal: AbortSignal): Promise<Permit> {
    const releasePlace = this.#places.tryAcquire(callers);
    if (releasePlace === undefined)
      throw new ServiceError("OVERLOADED", "too much work of this kind waits here", { retryAfterSeconds: 1 });
    return new Promise((resolve, reject) => {
      // The callers in whose queues it waits: all who wait for it, and one who was the last when he left.
      const queued = new Set(listCallers(callers));
      const observer = {
        onJoin: (caller: string): void => {
          queued.add(caller);
          this.#enqueue(caller, admit);
          this.#admitWaiters();
        },
        // The place of the last remains, for work that outlives those who wait for it.
        onLeave: (caller: string, isLast: boolean): void => {
          if (isLast) return;
          queued.delete(caller);
          this.#dequeue(caller, admit);
        },
      };
      const leave = (): void => {
        releasePlace();
        signal.removeEventListener("abort", abort);
        if (callers instanceof Waiters) callers.unobserve(observer);
        for (const caller of queued) this.#dequeue(caller, admit);
      };
      const abort = (): void => {
        leave();
        reject(signal.reason);
      };
      const admit: Admit = (permit) => {
        leave();
        resolve(permit);
      };
      addAbortListener(signal, abort);
      for (const caller of queued) this.#enqueue(caller, admit);
      if (callers instanceof Waiters) callers.observe(observer);
    });
  }
}
