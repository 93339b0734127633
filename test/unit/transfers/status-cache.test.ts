import { afterEach, describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { AdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { SingleFlight } from "../../../src/resilience/single-flight.js";
import type { LookupContext, LookupResult, TransferQuery } from "../../../src/transfers/sources/transfer-source.js";
import { BudgetExhaustedError } from "../../../src/transfers/spend/lookup-budget.js";
import type { TransferStatus } from "../../../src/transfers/status.js";
import { StatusCache } from "../../../src/transfers/status-cache.js";
import {
  createChainAccess,
  createDeferred,
  createLookupContext,
  createStatus,
  createWaiters,
  flushEventLoop,
  getChain,
  repeatedByteHash,
  type StatusOverrides,
  unavailableError,
} from "../../support/stubs/transfer-fixtures.js";

const immutable = createStatus();
const pending = createStatus({ delivery: undefined });
const pendingTo = (slug: string): StatusOverrides => ({ sent: { destination: getChain(slug) }, delivery: undefined });
const timeoutMs = 10_000;

/** Ends the lookups of a test. While one runs, its limiter keeps a timer, which would disturb the tests of other files. */
const endLookups: (() => void)[] = [];
afterEach(async () => {
  while (endLookups.length > 0) {
    for (const end of endLookups.splice(0)) end();
    await flushEventLoop();
  }
});

function setup({ findIndexed }: { findIndexed?: () => TransferStatus | undefined } = {}) {
  let time = 1_000_000;
  const lookups: (ReturnType<typeof createDeferred<LookupResult>> & {
    query: TransferQuery;
    context: LookupContext;
  })[] = [];
  const cache = new StatusCache({
    index: findIndexed && { findKnownStatus: findIndexed },
    resolver: {
      resolve(query, context) {
        const lookup = { ...createDeferred<LookupResult>(), query, context };
        lookups.push(lookup);
        endLookups.push(() => lookup.resolve(undefined));
        return lookup.promise;
      },
    },
    singleFlight: new SingleFlight(new AbortController().signal),
    limiter: new AdaptiveLimiter(() => time),
    timeoutMs,
    now: () => time,
  });
  const find = (transferId: string | undefined, more: Partial<LookupContext> = {}, transactionHash?: string) =>
    cache.find({ transferId, transactionHash }, createLookupContext(more));
  return {
    lookups,
    find,
    findNow: (transferId: string) => cache.findNow({ transferId, transactionHash: undefined }, createLookupContext()),
    refresh: (transferId: string) => cache.refresh({ transferId, transactionHash: undefined }, createLookupContext()),
    advanceTime: (ms: number) => {
      time += ms;
    },
    /** Runs a lookup that the resolver answers with this result or error. */
    async resolveWith(result: LookupResult | ServiceError, ...args: Parameters<typeof find>) {
      const before = lookups.length;
      const response = find(...args);
      const lookup = lookups[before];
      if (result instanceof ServiceError) lookup?.reject(result);
      else lookup?.resolve(result);
      return response;
    },
    /** Fails unless a status or error is kept for exactly this time. */
    expectKept(read: () => void, ms: number): void {
      const { length } = lookups;
      time += ms;
      read();
      expect(lookups).toHaveLength(length);
      time += 1;
      expect(find("1")).toBeInstanceOf(Promise);
      expect(lookups).toHaveLength(length + 1);
    },
  };
}

describe("a refresh", () => {
  test("looks up what is cached, and its result is cached instead", async () => {
    const { lookups, find, refresh, resolveWith } = setup();
    await resolveWith(pending, "1");
    const refreshed = refresh("1");
    expect(lookups).toHaveLength(2);
    expect(await find("1")).toBe(pending);
    lookups[1]?.resolve(immutable);
    expect(await refreshed).toBe(immutable);
    expect(await find("1")).toBe(immutable);
    expect(lookups).toHaveLength(2);
  });

  test("forgets a status that does not exist any more, and keeps it when the lookup fails", async () => {
    const { lookups, find, refresh, resolveWith } = setup();
    await resolveWith(pending, "1");
    const failed = refresh("1");
    lookups[1]?.reject(unavailableError("optimism"));
    await expect(failed).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(await find("1")).toBe(pending);
    const refreshed = refresh("1");
    lookups[2]?.resolve(undefined);
    expect(await refreshed).toBeUndefined();
    expect(await find("1")).toBeUndefined();
  });

  test("needs no lookup where the index knows the transfer", async () => {
    const { lookups, refresh } = setup({ findIndexed: () => pending });
    expect(await refresh("1")).toBe(pending);
    expect(lookups).toHaveLength(0);
  });
});

test("a watch finds what the index has now, not what was cached, and else what the chains have", async () => {
  let indexed: LookupResult = pending;
  const { lookups, find, findNow } = setup({ findIndexed: () => indexed });
  find("1");
  find("1");
  indexed = immutable;
  expect(find("1")).toBe(pending);
  expect(await findNow("1")).toBe(immutable);
  indexed = undefined;
  const found = findNow("2");
  await Promise.resolve();
  lookups[0]?.resolve(immutable);
  expect(await found).toBe(immutable);
});

test("a watch asks the resolver again for what it has of an index on a server, and shares that lookup", async () => {
  const { lookups, resolveWith, findNow } = setup();
  await resolveWith(createStatus({ delivery: undefined, source: "index" }), "1");
  const found = [findNow("1"), findNow("1")];
  await flushEventLoop();
  expect(lookups).toHaveLength(2);
  const settled = createStatus({ source: "index" });
  lookups[1]?.resolve(settled);
  expect(await Promise.all(found)).toEqual([settled, settled]);
  await findNow("1");
  await resolveWith(pending, "2");
  expect(await findNow("2")).toBe(pending);
  expect(lookups).toHaveLength(3);
});

describe("a status", () => {
  test.each<[string, ReturnType<typeof createStatus>, number]>([
    ["immutable, for an hour", immutable, 60 * 60_000],
    ["pending to L1, for one block", createStatus(pendingTo("ethereum")), 12_000],
    ["pending to Polygon, for one block", createStatus(pendingTo("polygon")), 2_000],
    ["pending to Arbitrum, whose block time is below a second, for a second", pending, 1_000],
    ["bonded in blocks that are not final, for a second", createStatus({ isFinal: false }), 1_000],
  ])("is cached: %s", async (_, status, ms) => {
    const { find, resolveWith, expectKept } = setup();
    expect(await resolveWith(status, "1")).toBe(status);
    expectKept(() => expect(find("1")).toBe(status), ms);
  });

  test("that was found by the hash of its transaction is that of no other transaction", async () => {
    const { resolveWith, find } = setup();
    await resolveWith(immutable, undefined, {}, repeatedByteHash("2b"));
    expect(find(undefined, {}, repeatedByteHash("2c"))).toBeInstanceOf(Promise);
    expect(find(undefined, {}, repeatedByteHash("2b"))).toBe(immutable);
  });

  test.each<[string, ServiceError]>([
    ["an upstream failure", unavailableError("a chain")],
    ["an invalid parameter", new ServiceError("INVALID_PARAMETER", "ambiguous")],
    ["a caller without budget", new BudgetExhaustedError("caller", "RATE_LIMITED", "too much")],
    ["a process without budget", new BudgetExhaustedError("process", "OVERLOADED", "too much")],
  ])("is not cached: %s", async (_, result) => {
    const { resolveWith, find, lookups } = setup();
    await expect(resolveWith(result, "1")).rejects.toBe(result);
    expect(find("1")).toBeInstanceOf(Promise);
    expect(lookups).toHaveLength(2);
  });

  test("is evicted after ten thousand newer ones", async () => {
    const { resolveWith, find } = setup();
    for (let id = 0; id <= 10_000; id += 1) await resolveWith(immutable, String(id));
    expect(find("0")).toBeInstanceOf(Promise);
    expect(find("1")).toBe(immutable);
    expect(find("10000")).toBe(immutable);
  });
});

test.each([
  ["a status", immutable],
  ["that nothing was found", undefined],
])("%s is kept by network, ID and hash, for all callers", async (_, result) => {
  const { resolveWith, find } = setup();
  await resolveWith(result, "1");
  const others: Parameters<typeof find>[] = [
    ["2"],
    ["1", {}, repeatedByteHash("2b")],
    ["1", { network: getNetwork("goerli") }],
    ["1", { chains: createChainAccess([], ["gnosis"]) }],
  ];
  for (const args of others) expect(find(...args)).toBeInstanceOf(Promise);
  expect(find("1", { caller: "b" })).toBe(result);
});

test("statuses of transactions with many transfers are evicted for their size", async () => {
  const { resolveWith, find } = setup();
  const otherTransferIds = Array.from({ length: 10_000 }, () => repeatedByteHash("77"));
  const large = createStatus({ otherTransferIds });
  // About 4 MB each, of 64 MiB.
  for (let id = 0; id < 20; id += 1) await resolveWith(large, String(id));
  expect(find("0")).toBeInstanceOf(Promise);
  expect(find("19")).toBe(large);
});

describe("a lookup without a status", () => {
  const exhausted = new BudgetExhaustedError("lookup", "UPSTREAM_UNAVAILABLE", "takes many requests");

  test("is not repeated for five seconds when nothing was found", async () => {
    const { resolveWith, find, expectKept } = setup();
    expect(await resolveWith(undefined, "1")).toBeUndefined();
    expectKept(() => expect(find("1")).toBeUndefined(), 5_000);
  });

  test("is not repeated for thirty seconds when it has spent its budget", async () => {
    const { resolveWith, find, expectKept } = setup();
    await expect(resolveWith(exhausted, "1")).rejects.toBe(exhausted);
    expectKept(() => expect(() => find("1")).toThrow(exhausted), 30_000);
  });

  test("hides nothing that the index learns", async () => {
    let indexed: TransferStatus | undefined;
    const { resolveWith, find } = setup({ findIndexed: () => indexed });
    await resolveWith(undefined, "1");
    await expect(resolveWith(exhausted, "2")).rejects.toBe(exhausted);
    indexed = immutable;
    expect([find("1"), find("2")]).toEqual([immutable, immutable]);
  });

  test("is run for a caller that waited for it when only the first caller had spent its budget", async () => {
    const { find, lookups } = setup();
    const first = Promise.resolve(find("1"));
    const second = Promise.resolve(find("1", { caller: "b" }));
    const error = new BudgetExhaustedError("caller", "RATE_LIMITED", "too much");
    lookups[0]?.reject(error);
    await expect(first).rejects.toBe(error);
    await flushEventLoop();
    expect(lookups.map(({ context }) => context.caller)).toEqual(["a", "b"]);
    lookups[1]?.resolve(pending);
    expect(await second).toBe(pending);
  });
});

describe("a lookup over custom endpoints", () => {
  const customContext = { chains: createChainAccess([], ["gnosis"]), remainingMs: () => 123 };

  test("bypasses the cache and the index in both directions", async () => {
    const { resolveWith, find, lookups } = setup({ findIndexed: () => immutable });
    expect(await resolveWith(pending, "1", customContext)).toBe(pending);
    expect(lookups[0]?.context.remainingMs()).toBe(123);
    expect(find("1")).toBe(immutable);
    expect(await resolveWith(pending, "1", customContext)).toBe(pending);
    expect(lookups).toHaveLength(2);
  });

  test("is not shared with other callers", () => {
    const { find, lookups } = setup();
    for (const more of [customContext, customContext, {}, {}]) find("1", more);
    expect(lookups).toHaveLength(3);
  });
});

describe("a shared lookup", () => {
  test("runs once with the full time limit and answers every caller", async () => {
    const { find, lookups, advanceTime } = setup();
    const firstCaller = new AbortController();
    const first = Promise.resolve(find("1", { remainingMs: () => 5, signal: firstCaller.signal }));
    first.catch(() => {});
    const second = find("1");
    expect(lookups).toHaveLength(1);
    const [lookup] = lookups;
    expect(lookup?.context.remainingMs()).toBe(timeoutMs);
    advanceTime(400);
    expect(lookup?.context.remainingMs()).toBe(timeoutMs - 400);
    firstCaller.abort();
    await expect(first).rejects.toBe(firstCaller.signal.reason);
    expect(lookup?.context.signal.aborted).toBe(false);
    lookup?.resolve(pending);
    expect(await second).toBe(pending);
    expect(find("1")).toBe(pending);
  });

  test("ends when every caller has left, and begins anew for the next one", async () => {
    const { find, lookups } = setup();
    const caller = new AbortController();
    const abandoned = Promise.resolve(find("1", { signal: caller.signal }));
    abandoned.catch(() => {});
    caller.abort();
    await flushEventLoop();
    const next = find("1", { caller: "b" });
    expect(lookups.map(({ context }) => context.signal.aborted)).toEqual([true, false]);
    lookups[1]?.resolve(immutable);
    expect(await next).toBe(immutable);
  });

  test("knows all who wait for it, also those who watch its transfer and come later", async () => {
    const { find, lookups } = setup();
    find("1");
    const watching = createWaiters("b");
    find("1", { waiters: watching, signal: watching.signal });
    watching.add("c");
    expect([...(lookups[0]?.context.waiters ?? [])]).toEqual(["a", "b", "c"]);
    watching.remove("b");
    expect([...(lookups[0]?.context.waiters ?? [])]).toEqual(["a", "c"]);
  });

  test("that waits for capacity is dropped when every caller has left", async () => {
    const { find, lookups } = setup();
    for (let id = 0; id < 64; id += 1) find(String(id));
    const caller = new AbortController();
    const abandoned = Promise.resolve(find("queued", { signal: caller.signal }));
    caller.abort();
    await expect(abandoned).rejects.toBe(caller.signal.reason);
    lookups[0]?.resolve(undefined);
    await flushEventLoop();
    expect(lookups).toHaveLength(64);
  });
});

describe("the index", () => {
  /** Finds statuses in an index that `create` stands for, and counts the queries. */
  function setupIndex(create: () => TransferStatus) {
    const queried: TransferStatus[] = [];
    const findIndexed = (): TransferStatus => {
      queried.push(create());
      return queried.at(-1) as TransferStatus;
    };
    return { ...setup({ findIndexed }), queried };
  }

  test("is queried first, answers synchronously, and its statuses are cached once they are asked for again", () => {
    let indexed = pending;
    const { find, lookups, queried, advanceTime } = setupIndex(() => indexed);
    expect([find("1"), find("1")]).toEqual([pending, pending]);
    expect(queried).toHaveLength(2);
    indexed = immutable;
    expect(find("1")).toBe(pending);
    expect(queried).toHaveLength(2);
    advanceTime(1_001);
    expect(find("1")).toBe(immutable);
    expect(lookups).toEqual([]);
  });

  test("is queried for each of the transfers that nobody asks for again, and none of them is kept", () => {
    const { find, queried } = setupIndex(() => createStatus());
    for (let id = 0; id < 20_000; id += 1) find(String(id));
    expect(queried).toHaveLength(20_000);
    // Statuses that are kept are frozen.
    expect(queried.filter((status) => Object.isFrozen(status))).toEqual([]);
  });

  test("is queried for a transfer until that is asked for again before ten thousand others", () => {
    const { find, queried } = setupIndex(() => immutable);
    for (const id of ["1", ...Array.from({ length: 9_999 }, (_, other) => `other ${other}`), "1"]) find(id);
    expect(queried).toHaveLength(10_001);
    find("1");
    expect(queried).toHaveLength(10_001);
    for (const id of ["2", ...Array.from({ length: 10_000 }, (_, other) => `new ${other}`), "2", "2"]) find(id);
    expect(queried).toHaveLength(10_001 + 10_003);
  });

  test("that rejects a query fails the lookup at once", () => {
    const { find, lookups } = setupIndex(() => {
      throw new ServiceError("INVALID_PARAMETER", "ambiguous");
    });
    expect(() => find("1")).toThrow("ambiguous");
    expect(lookups).toEqual([]);
  });
});

test("too many lookups are rejected at once, also over custom endpoints, except cached and shared ones", async () => {
  const overloaded = expect.objectContaining({ reason: "OVERLOADED", retryAfterSeconds: 1 });
  const { find, resolveWith, lookups } = setup();
  await resolveWith(immutable, "cached");
  // 64 run, 64 wait.
  for (let id = 0; id < 128; id += 1) find(String(id));
  expect(lookups).toHaveLength(1 + 64);
  expect(() => find("128")).toThrow(overloaded);
  expect(find("cached")).toBe(immutable);
  const shared = find("63");
  lookups.at(-1)?.resolve(immutable);
  expect(await shared).toBe(immutable);
  find("129");
  expect(lookups).toHaveLength(1 + 64 + 1);
  await expect(find("130", { chains: createChainAccess([], ["gnosis"]) })).rejects.toEqual(overloaded);
});
