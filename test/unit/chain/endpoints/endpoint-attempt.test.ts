import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createCallBudgets } from "../../../../src/chain/endpoints/budget/call-budget.js";
import { type AttemptOptions, startAttempt } from "../../../../src/chain/endpoints/endpoint-attempt.js";
import { createCircuitBreaker } from "../../../../src/resilience/circuit-breaker.js";
import { UpstreamError } from "../../../../src/resilience/upstream-error.js";

const calls = [{ method: "eth_call", params: [] }];
const now = (): number => Date.now();
/** Ends waits by the fake timers. */
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Starts an attempt at an endpoint whose budget makes it wait for two seconds, and which responds 300 ms later. */
function startWaitingAttempt(options: Partial<AttemptOptions> = {}) {
  const budgets = createCallBudgets({ slug: "optimism", callsPerSecond: 10, now, sleep });
  const acquireCalls = budgets.add("endpoint");
  const endpoint = {
    name: "endpoint",
    async sendBatch(batch: typeof calls, signal: AbortSignal, onWait?: (ms: number) => void) {
      await acquireCalls(batch, signal, onWait);
      await Promise.race([sleep(300), new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      if (signal.aborted) throw new UpstreamError("did not answer in time", { kind: "timeout" });
      return batch.map(() => ({ result: "0x1" }));
    },
  };
  void acquireCalls(Array(24).fill(calls[0]), new AbortController().signal);
  const startedAt = now();
  return startAttempt({
    upstream: { endpoint, breaker: createCircuitBreaker(now) },
    calls,
    order: 0,
    isProbe: false,
    ageMs: () => now() - startedAt,
    signal: new AbortController().signal,
    timeoutMs: undefined,
    ...options,
  });
}

test("the wait for RPC_BUDGET does not count as latency of the endpoint", async () => {
  const { ageMs, result } = startWaitingAttempt();
  await vi.advanceTimersByTimeAsync(1_900);
  expect(ageMs()).toBe(0);
  await vi.advanceTimersByTimeAsync(400);
  expect(await result).toEqual({ outcomes: [{ result: "0x1" }] });
  expect(ageMs()).toBe(300);
});

test("the wait for RPC_BUDGET does not count against the timeout of the attempt", async () => {
  const { result } = startWaitingAttempt({ timeoutMs: 400 });
  await vi.advanceTimersByTimeAsync(2_300);
  expect(await result).toEqual({ outcomes: [{ result: "0x1" }] });
  expect(vi.getTimerCount()).toBe(0);
});

test("the timeout of the attempt begins after the wait for RPC_BUDGET", async () => {
  const { result, ageMs } = startWaitingAttempt({ timeoutMs: 200 });
  await vi.advanceTimersByTimeAsync(2_199);
  expect(ageMs()).toBe(199);
  await vi.advanceTimersByTimeAsync(1);
  expect(await result).toMatchObject({ isLate: true });
});
