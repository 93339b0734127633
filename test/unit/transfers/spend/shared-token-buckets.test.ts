import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  EXCHANGE_INTERVAL_MS,
  type SharedTokenBuckets,
  shareTokenBuckets,
} from "../../../../src/transfers/spend/shared-token-buckets.js";
import { createTokenBuckets } from "../../../../src/transfers/spend/token-buckets.js";

const RATE = { kind: "caller", capacity: 100, refillPerSecond: 1 };

/** Buckets without refill that all replicas of a test share. */
function createShared() {
  const missing = new Map<string, number>();
  const state = { isReachable: true, calls: 0, latencyMs: 0 };
  const shared: SharedTokenBuckets = {
    async take({ capacity }, spent) {
      state.calls += 1;
      if (!state.isReachable) return new Map();
      for (const [key, tokens] of spent) missing.set(key, Math.min(capacity, (missing.get(key) ?? 0) + tokens));
      const levels = new Map([...spent.keys()].map((key) => [key, missing.get(key) ?? 0]));
      if (state.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, state.latencyMs));
      return levels;
    },
  };
  return { shared, state, missing };
}

describe("token buckets of several replicas", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const createReplica = (shared: SharedTokenBuckets) =>
    shareTokenBuckets(
      createTokenBuckets(RATE, () => 0),
      RATE,
      shared,
    );
  const exchange = () => vi.advanceTimersByTimeAsync(EXCHANGE_INTERVAL_MS);

  function takeAll(replica: ReturnType<typeof createReplica>, key = "caller"): number {
    let taken = 0;
    while (replica.tryTake(key)) taken += 1;
    return taken;
  }

  test("hold together what one holds, up to what is spent between two exchanges", async () => {
    const { shared } = createShared();
    const [first, second, third] = [createReplica(shared), createReplica(shared), createReplica(shared)];
    for (let count = 0; count < 40; count++) first.tryTake("caller");
    await exchange();
    for (let count = 0; count < 30; count++) second.tryTake("caller");
    await exchange();
    // Its first token tells it what the others have spent.
    expect(third.tryTake("caller")).toBe(true);
    await exchange();
    expect(takeAll(third)).toBe(29);
    await exchange();
    expect(second.tryTake("caller")).toBe(true);
    await exchange();
    expect(takeAll(second)).toBe(0);
    expect(second.secondsUntil("caller", 10)).toBe(10);
    expect(takeAll(second, "other caller")).toBe(100);
  });

  test("count what is spent while an exchange is under way once, and not less", async () => {
    const { shared, state, missing } = createShared();
    const replica = createReplica(shared);
    // Others have spent half of it.
    missing.set("caller", 50);
    state.latencyMs = 100;
    for (let count = 0; count < 10; count++) replica.tryTake("caller");
    await exchange();
    for (let count = 0; count < 20; count++) replica.tryTake("caller");
    await vi.advanceTimersByTimeAsync(state.latencyMs);
    expect(takeAll(replica)).toBe(20);
  });

  test("are those of one process while the others are out of reach", async () => {
    const { shared, state } = createShared();
    state.isReachable = false;
    const replica = createReplica(shared);
    expect(takeAll(replica)).toBe(100);
    await exchange();
    expect(replica.tryTake("caller")).toBe(false);
    expect(replica.tryTake("other caller")).toBe(true);
  });

  test("do not count attempts that an empty bucket refuses", async () => {
    const { shared } = createShared();
    const spent: number[] = [];
    const replica = createReplica({
      take(rate, tokens) {
        spent.push(tokens.get("caller") ?? 0);
        return shared.take(rate, tokens);
      },
    });
    takeAll(replica);
    for (let count = 0; count < 10; count++) replica.tryTake("caller");
    await exchange();
    for (let count = 0; count < 10; count++) replica.tryTake("caller");
    await exchange();
    expect(spent).toEqual([100]);
  });

  test("exchange nothing while nothing is spent", async () => {
    const { shared, state } = createShared();
    const replica = createReplica(shared);
    replica.tryTake("caller");
    await vi.advanceTimersByTimeAsync(10 * EXCHANGE_INTERVAL_MS);
    expect(state.calls).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("of many callers are exchanged in turn", async () => {
    const { shared, missing } = createShared();
    const replica = createReplica(shared);
    for (let caller = 0; caller < 500; caller++) replica.tryTake(`caller ${caller}`);
    await exchange();
    expect(missing.size).toBe(200);
    await exchange();
    await exchange();
    expect(missing.size).toBe(500);
  });
});
