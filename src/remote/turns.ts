/** So many at a time, the others in the order in which they came. */
export interface Turns {
  /** Does the work when it is its turn. Rejects, with the signal's reason, when the signal fires before that. */
  take<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createTurns(most: number): Turns {
  const waiting = new Set<() => void>();
  let taken = 0;

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
    async take(signal, work) {
      signal.throwIfAborted();
      if (taken < most) taken += 1;
      // Whoever ends gives its place to the next one, so that nobody overtakes.
      else await waitForTurn(signal);
      try {
        return await work();
      } finally {
        const [next] = waiting;
        if (next === undefined) taken -= 1;
        else next();
      }
    },
  };
}
