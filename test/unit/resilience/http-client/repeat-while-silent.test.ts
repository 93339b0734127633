import { beforeEach, expect, test, vi } from "vitest";
import { repeatWhileSilent } from "../../../../src/resilience/http-client/repeat-while-silent.js";
import { UpstreamError } from "../../../../src/resilience/http-client/upstream-error.js";

const never = new AbortController().signal;
const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
    signal.addEventListener("abort", () => resolve());
  });
const options = { intervalMs: 3_000, timeoutMs: 8_000, signal: never, sleep };

/** Work whose runs take these times in milliseconds. */
function createWork(...durationsMs: readonly number[]) {
  const signals: AbortSignal[] = [];
  const work = (signal: AbortSignal): Promise<number> => {
    const run = signals.push(signal);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve(run), durationsMs[run - 1]);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(new UpstreamError("did not answer in time"));
      });
    });
  };
  return { work, signals };
}

beforeEach(() => void vi.useFakeTimers());

test("runs once where the first run ends in time", async () => {
  const { work, signals } = createWork(2_999);
  const result = repeatWhileSilent(work, options);
  await vi.advanceTimersByTimeAsync(2_999);
  expect(await result).toBe(1);
  expect(signals).toHaveLength(1);
});

test("uses a slow run although another has started beside it", async () => {
  const { work, signals } = createWork(4_000, 4_000);
  const result = repeatWhileSilent(work, options);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(await result).toBe(1);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test("uses a repetition where the first run hangs", async () => {
  const { work } = createWork(60_000, 10);
  const result = repeatWhileSilent(work, options);
  await vi.advanceTimersByTimeAsync(3_010);
  expect(await result).toBe(2);
});

test("fails when the time is over, with three runs at most", async () => {
  const { work, signals } = createWork(60_000, 60_000, 60_000);
  const result = repeatWhileSilent(work, options);
  result.catch(() => {});
  await vi.advanceTimersByTimeAsync(8_000);
  await expect(result).rejects.toThrow("did not answer in time");
  expect(signals).toHaveLength(3);
});
