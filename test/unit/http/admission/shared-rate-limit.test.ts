import { afterEach, describe, expect, test, vi } from "vitest";
import { createRateLimiter, type SharedCounts } from "../../../../src/http/admission/rate-limiter.js";
import type { RequestContext } from "../../../../src/http/request/request-context.js";

const LIMIT = 10;
const WINDOW_MS = 60_000;

afterEach(() => void vi.useRealTimers());

/** Counts of all replicas of a test. */
function createCounts() {
  const counts = new Map<string, number>();
  const state = { isReachable: true, calls: 0 };
  const sharedCounts: SharedCounts = {
    async increment(caller, points) {
      state.calls += 1;
      if (!state.isReachable) throw new Error("not in time");
      const count = (counts.get(caller) ?? 0) + points;
      counts.set(caller, count);
      return { count, msLeft: WINDOW_MS };
    },
  };
  return { state, sharedCounts };
}

function createReplica(sharedCounts: SharedCounts, windowMs = WINDOW_MS) {
  const onFailure = vi.fn();
  const limiter = createRateLimiter({ requests: LIMIT, windowMs, onFailure, sharedCounts });
  const call = async (caller = "a"): Promise<{ isAdmitted: boolean; headers: readonly string[] }> => {
    const context = { caller, rateLimitHeaders: [] as readonly string[] } as RequestContext;
    return { isAdmitted: (await limiter.count(context)) === undefined, headers: context.rateLimitHeaders };
  };
  return { call, limiter, onFailure };
}

async function countAdmitted(calls: readonly Promise<{ isAdmitted: boolean }>[]): Promise<number> {
  return (await Promise.all(calls)).filter(({ isAdmitted }) => isAdmitted).length;
}

describe("a limit over three replicas", () => {
  test("admits as many calls as one does, and states what is left", async () => {
    const { sharedCounts } = createCounts();
    const replicas = [createReplica(sharedCounts), createReplica(sharedCounts), createReplica(sharedCounts)];
    const first = await replicas[0]?.call();
    expect(first?.headers).toEqual(["ratelimit-limit", "10", "ratelimit-remaining", "9", "ratelimit-reset", "60"]);
    const calls = Array.from({ length: 30 }, (_, index) => replicas[index % 3]?.call() ?? Promise.reject());
    expect(await countAdmitted(calls)).toBe(LIMIT - 1);
    expect(await countAdmitted([replicas[0]?.call("b") ?? Promise.reject()])).toBe(1);
  });

  test("asks no more for a caller that is over the limit until its window ends", async () => {
    const { sharedCounts, state } = createCounts();
    const { call } = createReplica(sharedCounts);
    for (let count = 0; count <= LIMIT; count++) await call();
    const { calls } = state;
    const { isAdmitted, headers } = await call();
    expect(isAdmitted).toBe(false);
    expect(headers).toEqual(expect.arrayContaining(["ratelimit-remaining", "0", "ratelimit-reset", "60"]));
    expect(state.calls).toBe(calls);
  });

  test("is that of each replica while nobody counts for all, and no call fails", async () => {
    const { sharedCounts, state } = createCounts();
    const { call, onFailure } = createReplica(sharedCounts);
    state.isReachable = false;
    expect(await countAdmitted(Array.from({ length: 30 }, () => call()))).toBe(LIMIT);
    state.isReachable = true;
    expect((await call()).isAdmitted).toBe(true);
    expect(onFailure).not.toHaveBeenCalled();
  });

  test("counts in windows that are no whole seconds", async () => {
    const { sharedCounts } = createCounts();
    const increment = vi.spyOn(sharedCounts, "increment");
    await createReplica(sharedCounts, 250).call("a");
    expect(increment).toHaveBeenCalledWith("a", 1, 250);
  });

  test("forgets callers above 100,000", async () => {
    // The window of the first caller must not end before the last one has called.
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    const asked: string[] = [];
    const sharedCounts: SharedCounts = {
      async increment(caller) {
        asked.push(caller);
        return { count: LIMIT + 1, msLeft: WINDOW_MS };
      },
    };
    const { call } = createReplica(sharedCounts);
    for (let index = 0; index < 100_001; index++) await call(`c${index}`);
    asked.length = 0;
    await call("c1");
    expect(asked).toEqual([]);
    await call("c0");
    expect(asked).toEqual(["c0"]);
  });
});
