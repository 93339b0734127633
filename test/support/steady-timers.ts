import { vi } from "vitest";

/**
 * Leaves faked timers to the tests. Otherwise `expect.poll` and `vi.waitFor` advance them, and a faked `Date`, with each
 * attempt: on a busy machine there are more attempts, so that more time would pass.
 */
export function keepTimersSteady(): void {
  Object.assign(vi, { isFakeTimers: () => false });
}

/** Advances the faked time, and returns the result. */
export async function settle<T>(result: T | Promise<T>, ms: number): Promise<T> {
  const settled = Promise.resolve(result);
  settled.catch(() => {});
  await vi.advanceTimersByTimeAsync(ms);
  return settled;
}
