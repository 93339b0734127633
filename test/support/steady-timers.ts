import { vi } from "vitest";

/**
 * Leaves faked timers to the tests. Otherwise `expect.poll` and `vi.waitFor` advance them, and a faked `Date`, with each
 * attempt: on a busy machine there are more attempts, so that more time would pass.
 */
export function keepTimersSteady(): void {
  Object.assign(vi, { isFakeTimers: () => false });
}
