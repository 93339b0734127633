import { createAbortScope } from "../abort-scope.js";
import { sleep as sleepReal } from "../clock.js";

/**
 * Repeats work that takes long, beside the earlier runs, and settles like the first run that does: an upstream may be slow,
 * or only one connection to it dead. The signal of the other runs aborts then.
 */
export async function repeatWhileSilent<T>(
  work: (signal: AbortSignal) => Promise<T>,
  {
    intervalMs,
    timeoutMs,
    signal,
    sleep = sleepReal,
  }: {
    /** Time without a result after which the work starts once more, in milliseconds. */
    readonly intervalMs: number;
    /** Time after which the signal of all runs aborts, in milliseconds. */
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
    /** Resolves after a time in milliseconds, or when the signal aborts. */
    readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  },
): Promise<T> {
  const scope = createAbortScope(signal, timeoutMs);
  const runs: Promise<{ readonly value: T }>[] = [];
  const run = async (): Promise<{ readonly value: T }> => ({ value: await work(scope.signal) });
  try {
    for (;;) {
      runs.push(run());
      const first = await Promise.race([...runs, sleep(intervalMs, scope.signal)]);
      if (first !== undefined) return first.value;
      if (scope.signal.aborted) return (await Promise.race(runs)).value;
    }
  } finally {
    scope.cancel();
  }
}
