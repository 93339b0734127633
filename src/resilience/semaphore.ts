import { addAbortListener } from "./abort-scope.js";

/** Limits concurrency. Waiters are admitted in the order of their arrival. */
export interface Semaphore {
  /** Runs the work under a permit. Rejects with the signal's reason if that aborts before a permit is available. */
  acquire<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** Changes the number of permits. Running work keeps its permit. */
  setLimit(limit: number): void;
}

export function createSemaphore(initialLimit: number): Semaphore {
  const waiters = new Set<() => void>();
  let limit = initialLimit;
  let held = 0;

  /** Takes the permit on behalf of each admitted waiter, so that a new arrival cannot overtake it. */
  function admitWaiters(): void {
    for (const admit of waiters) {
      if (held >= limit) break;
      held += 1;
      admit();
    }
  }

  function waitForPermit(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        waiters.delete(admit);
        reject(signal.reason);
      };
      const admit = (): void => {
        waiters.delete(admit);
        signal.removeEventListener("abort", abort);
        resolve();
      };
      waiters.add(admit);
      addAbortListener(signal, abort);
    });
  }

  return {
    async acquire(signal, work) {
      signal.throwIfAborted();
      if (held < limit) held += 1;
      else await waitForPermit(signal);
      try {
        return await work();
      } finally {
        held -= 1;
        admitWaiters();
      }
    },
    setLimit(newLimit) {
      limit = newLimit;
      admitWaiters();
    },
  };
}
