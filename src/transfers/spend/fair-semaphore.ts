import { addAbortListener } from "../../resilience/abort-scope.js";
import { createFairQuota } from "../../resilience/fair-quota.js";

/** Limits concurrency such that callers share the permits fairly. */
export interface FairSemaphore {
  /**
   * Runs the work under a permit. Waiters of one caller are admitted in the order of their arrival, and callers that hold
   * less first. Rejects with the signal's reason if that aborts before a permit is available.
   */
  acquire<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/**
 * Creates a semaphore with twice as many permits as one caller may hold: a caller holds at most as many as it leaves free
 * (see FairQuota), so another caller need not wait for its long queue.
 * @param permitsPerCaller permits of a caller that is alone
 */
export function createFairSemaphore(permitsPerCaller: number): FairSemaphore {
  const quota = createFairQuota(() => 2 * permitsPerCaller);
  const waitersByCaller = new Map<string, Set<(release: () => void) => void>>();

  function admitWaiters(): void {
    let isAdmitting = true;
    while (isAdmitting) {
      isAdmitting = false;
      for (const [caller, waiters] of waitersByCaller) {
        const [admit] = waiters;
        const release = admit && quota.tryAcquire(caller);
        if (admit === undefined || release === undefined) continue;
        isAdmitting = true;
        removeWaiter(caller, admit);
        admit(release);
      }
    }
  }

  function removeWaiter(caller: string, admit: (release: () => void) => void): void {
    const waiters = waitersByCaller.get(caller);
    waiters?.delete(admit);
    if (waiters?.size === 0) waitersByCaller.delete(caller);
  }

  function waitForPermit(caller: string, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        removeWaiter(caller, admit);
        reject(signal.reason);
      };
      const admit = (release: () => void): void => {
        signal.removeEventListener("abort", abort);
        resolve(release);
      };
      const waiters = waitersByCaller.get(caller) ?? new Set();
      waitersByCaller.set(caller, waiters.add(admit));
      addAbortListener(signal, abort);
    });
  }

  return {
    async acquire(caller, signal, work) {
      signal.throwIfAborted();
      // A caller whose earlier calls wait must not overtake them.
      const free = waitersByCaller.has(caller) ? undefined : quota.tryAcquire(caller);
      const release = free ?? (await waitForPermit(caller, signal));
      try {
        return await work();
      } finally {
        release();
        admitWaiters();
      }
    },
  };
}
