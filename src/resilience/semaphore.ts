/** So many at a time, the others in the order in which they came. */
export interface Semaphore {
  /** Does the work when it is its turn. Rejects, with the signal's reason, when the signal fires before that. */
  acquire<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** Changes how many; whoever is at work goes on. */
  setLimit(most: number): void;
}

export function createSemaphore(most: number): Semaphore {
  const waiting = new Set<() => void>();
  let allowed = most;
  let taken = 0;

  /** Whoever is let in has its place from then on, so that nobody overtakes. */
  function letIn(): void {
    for (const come of waiting) {
      if (taken >= allowed) break;
      taken += 1;
      come();
    }
  }

  function waitForTurn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting.delete(come);
        reject(signal.reason);
      };
      const come = (): void => {
        waiting.delete(come);
        signal.removeEventListener("abort", leave);
        resolve();
      };
      waiting.add(come);
      signal.addEventListener("abort", leave);
    });
  }

  return {
    async acquire(signal, work) {
      signal.throwIfAborted();
      if (taken < allowed) taken += 1;
      else await waitForTurn(signal);
      try {
        return await work();
      } finally {
        taken -= 1;
        letIn();
      }
    },
    setLimit(count) {
      allowed = count;
      letIn();
    },
  };
}
