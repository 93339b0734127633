import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { createAdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { createSingleFlight } from "../../../src/resilience/single-flight.js";
import type {
  LookupContext,
  LookupResult,
  TransferQuery,
  TransferSource,
} from "../../../src/transfers/sources/transfer-source.js";
import { createStatusCache } from "../../../src/transfers/status-cache.js";
import {
  createChainAccess,
  createDeferred,
  createLookupContext,
  createStatus,
  flushEventLoop,
  getChain,
  repeatedByteHash,
  type StatusOverrides,
  unavailableError,
} from "../../support/stubs/transfer-fixtures.js";

const settled = createStatus();
const waiting = createStatus({ delivery: undefined });
const towards = (slug: string): StatusOverrides => ({ sent: { destination: getChain(slug) }, delivery: undefined });
const timeoutMs = 10_000;

function setup({ index }: { index?: (transferId: string) => LookupResult } = {}) {
  let time = 1_000_000;
  const lookUps: (ReturnType<typeof createDeferred<LookupResult>> & {
    query: TransferQuery;
    context: LookupContext;
  })[] = [];
  const source: TransferSource<LookupResult> | undefined = index && {
    name: "index",
    findByTransactionHash: (_, id) => index(id ?? ""),
    findByTransferId: (id) => index(id),
  };
  const book = createStatusCache({
    index: source,
    resolver: {
      resolve(query, context) {
        const lookUp = { ...createDeferred<LookupResult>(), query, context };
        lookUps.push(lookUp);
        return lookUp.promise;
      },
    },
    singleFlight: createSingleFlight(new AbortController().signal),
    limiter: createAdaptiveLimiter(() => time),
    timeoutMs,
    now: () => time,
  });
  const find = (transferId: string, more: Partial<LookupContext> = {}, transactionHash?: string) =>
    book.find({ transferId, transactionHash }, { ...createLookupContext(more), caller: "a" });
  return {
    lookUps,
    find,
    pass: (ms: number) => {
      time += ms;
    },
    /** Finds, where everyone who is asked says this. */
    async told(found: LookupResult | ServiceError, ...rest: Parameters<typeof find>) {
      const before = lookUps.length;
      const asked = find(...rest);
      const lookUp = lookUps[before];
      if (found instanceof ServiceError) lookUp?.reject(found);
      else lookUp?.resolve(found);
      return asked;
    },
  };
}

describe("a status that was found", () => {
  test.each<[string, ReturnType<typeof createStatus>, number]>([
    ["settled, for an hour", settled, 60 * 60_000],
    ["pending towards L1, for its block", createStatus(towards("ethereum")), 12_000],
    ["pending towards Polygon, for its block", createStatus(towards("polygon")), 2_000],
    ["pending towards Arbitrum, whose blocks are short, for a second", waiting, 1_000],
    ["bonded in blocks that may be undone, for a second", createStatus({ isFinal: false }), 1_000],
  ])("is kept: %s", async (_, status, ms) => {
    const { find, told, pass, lookUps } = setup();
    expect(await told(status, "1")).toBe(status);
    pass(ms);
    expect(find("1")).toBe(status);
    pass(1);
    expect(find("1")).toBeInstanceOf(Promise);
    expect(lookUps).toHaveLength(2);
  });

  test("is kept for the very question", async () => {
    const { told, find } = setup();
    await told(settled, "1");
    expect(find("2")).toBeInstanceOf(Promise);
    expect(find("1", {}, repeatedByteHash("2b"))).toBeInstanceOf(Promise);
    expect(find("1", { network: getNetwork("goerli") })).toBeInstanceOf(Promise);
    expect(find("1")).toBe(settled);
  });

  test.each<[string, LookupResult | ServiceError]>([
    ["that there is none", undefined],
    ["a failure", unavailableError("a chain")],
    ["a caller's mistake", new ServiceError("INVALID_PARAMETER", "ambiguous")],
  ])("is not %s", async (_, found) => {
    const { told, find, lookUps } = setup();
    const first = told(found, "1");
    if (found instanceof ServiceError) await expect(first).rejects.toBe(found);
    else expect(await first).toBeUndefined();
    expect(find("1")).toBeInstanceOf(Promise);
    expect(lookUps).toHaveLength(2);
  });

  test("is one of ten thousand at most", async () => {
    const { told, find } = setup();
    for (let id = 0; id <= 10_000; id += 1) await told(settled, String(id));
    expect(find("0")).toBeInstanceOf(Promise);
    expect(find("1")).toBe(settled);
    expect(find("10000")).toBe(settled);
  });
});

describe("who asks on an endpoint of its own", () => {
  const own = { chains: createChainAccess([], ["gnosis"]), remainingMs: () => 123 };

  test("gets a look-up of its own, of which nothing is kept, and nothing that is kept", async () => {
    const { told, find, lookUps } = setup({ index: () => settled });
    expect(await told(waiting, "1", own)).toBe(waiting);
    expect(lookUps[0]?.context.remainingMs()).toBe(123);
    expect(find("1")).toBe(settled);
    expect(await told(waiting, "1", own)).toBe(waiting);
    expect(lookUps).toHaveLength(2);
  });

  test("shares it with nobody", () => {
    const { find, lookUps } = setup();
    for (const more of [own, own, {}, {}]) find("1", more);
    expect(lookUps).toHaveLength(3);
  });
});

describe("a look-up for several", () => {
  test("is one, has all the time there is, and is told to all", async () => {
    const { find, lookUps, pass } = setup();
    const impatient = new AbortController();
    const first = Promise.resolve(find("1", { remainingMs: () => 5, signal: impatient.signal }));
    first.catch(() => {});
    const second = find("1");
    expect(lookUps).toHaveLength(1);
    const [lookUp] = lookUps;
    expect(lookUp?.context.remainingMs()).toBe(timeoutMs);
    pass(400);
    expect(lookUp?.context.remainingMs()).toBe(timeoutMs - 400);
    impatient.abort();
    await expect(first).rejects.toBe(impatient.signal.reason);
    expect(lookUp?.context.signal.aborted).toBe(false);
    lookUp?.resolve(waiting);
    expect(await second).toBe(waiting);
    expect(find("1")).toBe(waiting);
  });

  test("is broken off when nobody waits any more", async () => {
    const { find, lookUps } = setup();
    const caller = new AbortController();
    const left = Promise.resolve(find("1", { signal: caller.signal }));
    left.catch(() => {});
    caller.abort();
    await flushEventLoop();
    expect(lookUps[0]?.context.signal.aborted).toBe(true);
    find("1");
    expect(lookUps).toHaveLength(2);
    expect(lookUps[1]?.context.signal.aborted).toBe(false);
  });
});

describe("the index", () => {
  test("is asked first, answers without a promise, and what it says is kept as long as any", () => {
    let [word, asked]: [LookupResult, number] = [waiting, 0];
    const { find, lookUps, pass } = setup({
      index: () => {
        asked += 1;
        return word;
      },
    });
    expect(find("1")).toBe(waiting);
    word = settled;
    expect(find("1")).toBe(waiting);
    expect(asked).toBe(1);
    pass(1_001);
    expect(find("1")).toBe(settled);
    expect(lookUps).toEqual([]);
  });

  test("that cannot know leaves it to others", async () => {
    const { told } = setup({
      index: () => {
        throw unavailableError("the index");
      },
    });
    expect(await told(waiting, "1")).toBe(waiting);
  });

  test("that fails otherwise is an error at once", () => {
    const { find, lookUps } = setup({
      index: () => {
        throw new ServiceError("INVALID_PARAMETER", "ambiguous");
      },
    });
    expect(() => find("1")).toThrow("ambiguous");
    expect(lookUps).toEqual([]);
  });
});

describe("look-ups that are too many", () => {
  const overloaded = expect.objectContaining({ reason: "OVERLOADED", retryAfterSeconds: 1 });

  test("are refused at once; what is kept, looked up already, or over an endpoint of the caller's own is not", async () => {
    const { find, told, lookUps } = setup();
    await told(settled, "kept");
    // So many at work, the others in line.
    for (let id = 0; id < 128; id += 1) find(String(id));
    expect(lookUps).toHaveLength(1 + 64);
    expect(() => find("128")).toThrow(overloaded);
    expect(find("kept")).toBe(settled);
    const shared = find("63");
    lookUps.at(-1)?.resolve(settled);
    expect(await shared).toBe(settled);
    find("129");
    find("130", { chains: createChainAccess([], ["gnosis"]) });
    expect(lookUps).toHaveLength(1 + 64 + 1 + 1);
  });
});
