import { afterEach, describe, expect, test, vi } from "vitest";
import type { ChainClient, RpcCallResult } from "../../../../src/chain/chain-client.js";
import { getHeadTracker } from "../../../../src/chain/heads/head-tracker.js";
import { readReceipt } from "../../../../src/chain/read/chain-reads.js";
import { ServiceError } from "../../../../src/errors.js";
import { raceAbort } from "../../../../src/resilience/abort-scope.js";
import { AdaptiveLimiter } from "../../../../src/resilience/adaptive-limiter.js";
import { DetailsFinder, joinCalls } from "../../../../src/transfers/details/details-finder.js";
import type { ChainDetails, DetailsReader } from "../../../../src/transfers/details/details-reader.js";
import { BudgetExhaustedError, LookupBudgets } from "../../../../src/transfers/spend/lookup-budget.js";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import {
  createChainAccess,
  createDeferred,
  createLookupContext,
  createStatus,
  createTransferChainStub,
  flushEventLoop,
  repeatedByteAddress,
  repeatedByteHash,
  unavailableError,
} from "../../../support/stubs/transfer-fixtures.js";

const finalDetails: ChainDetails = {
  substate: "RECEIVED",
  payout: undefined,
  source: { blockNumber: 1, timestamp: 2, isFinal: true },
  destination: { blockNumber: 3, timestamp: 4, isFinal: true },
};
const pendingStatus = createStatus({ delivery: undefined, isFinal: false });
const HOUR_MS = 3_600_000;

const numbered = (count: number): TransferStatus[] =>
  Array.from({ length: count }, (_, index) =>
    createStatus({ sent: { transactionHash: `0x${index.toString(16).padStart(64, "0")}` } }),
  );

function setup(readDetails: DetailsReader = async () => finalDetails, medianSeconds?: number) {
  const state = { now: 5_000, isFull: false, isBusy: false, slots: 0 };
  const reads: TransferStatus[] = [];
  const limiter = Object.assign(new AdaptiveLimiter(() => 0), {
    async run<T>(_caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      if (state.isBusy) await raceAbort(createDeferred<void>().promise, signal);
      state.slots += 1;
      return work();
    },
    assertCapacity() {
      if (state.isFull) throw new ServiceError("OVERLOADED", "full");
    },
  });
  const finder = new DetailsFinder({
    readDetails(status, context) {
      reads.push(status);
      return readDetails(status, context);
    },
    budgets: new LookupBudgets({ now: () => state.now }),
    limiter,
    timeoutMs: 10_000,
    closing: new AbortController().signal,
    now: () => state.now,
    ...(medianSeconds === undefined ? {} : { getMedianDeliverySeconds: () => medianSeconds }),
  });
  return { finder, reads, state };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("details", () => {
  test("are cached, synchronous then, and read without the signal", async () => {
    const { finder, reads } = setup();
    const context = createLookupContext();
    await finder.find([createStatus()], context);
    const unreadable = { ...context };
    Object.defineProperty(unreadable, "signal", { get: () => expect.unreachable("the signal is expensive") });
    // An equal status, as the index makes one for each request.
    expect(finder.find([createStatus()], unreadable)).toEqual([
      { details: { ...finalDetails, estimatedDeliveryAt: undefined } },
    ]);
    expect(reads).toHaveLength(1);
  });

  test.each<[string, TransferStatus, ChainDetails, number]>([
    ["final", createStatus(), finalDetails, HOUR_MS],
    ["of a pending transfer", pendingStatus, finalDetails, 1_000],
    ["not final", createStatus(), { ...finalDetails, destination: undefined }, 1_000],
    [
      "of a send that is not final",
      createStatus(),
      { ...finalDetails, source: { ...finalDetails.source, isFinal: false } },
      1_000,
    ],
  ])("that are %s stay as long as their status", async (_, status, details, ttlMs) => {
    const { finder, reads, state } = setup(async () => details);
    await finder.find([status], createLookupContext());
    state.now += ttlMs - 1;
    await finder.find([status], createLookupContext());
    expect(reads).toHaveLength(1);
    state.now += 2;
    await finder.find([status], createLookupContext());
    expect(reads).toHaveLength(2);
  });

  test("are those of the new status when a reorg changes it", async () => {
    const { finder, reads } = setup();
    await finder.find([createStatus()], createLookupContext());
    await finder.find([pendingStatus], createLookupContext());
    const delivery = { transactionHash: repeatedByteHash("3d"), blockNumber: 9, bonder: undefined };
    await finder.find([createStatus({ delivery })], createLookupContext());
    expect(reads).toHaveLength(3);
  });

  test.each([
    [undefined, undefined],
    [0, 1_700_000_000],
    [184, 1_700_000_184],
  ])("are estimated from the median of the route: %s", async (median, estimatedDeliveryAt) => {
    const { finder } = setup(undefined, median);
    expect(await finder.find([createStatus()], createLookupContext())).toMatchObject([
      { details: { estimatedDeliveryAt } },
    ]);
  });

  test("over custom endpoints are neither cached nor shared", async () => {
    const { finder, reads } = setup();
    const context = createLookupContext({ chains: createChainAccess([], ["optimism"]) });
    await Promise.all([finder.find([createStatus()], context), finder.find([createStatus()], context)]);
    await finder.find([createStatus()], createLookupContext());
    expect(reads).toHaveLength(3);
  });
});

describe("reads", () => {
  test("of one status at the same time are one", async () => {
    const held = createDeferred<ChainDetails>();
    const { finder, reads } = setup(() => held.promise);
    const all = Array.from({ length: 50 }, () => finder.find([createStatus()], createLookupContext()));
    held.resolve(finalDetails);
    await Promise.all(all);
    expect(reads).toHaveLength(1);
  });

  test("that get no slot in time are too slow for all who wait, also for one who came later", async () => {
    vi.useFakeTimers();
    const { finder, state } = setup();
    state.isBusy = true;
    const first = finder.find([createStatus()], createLookupContext());
    vi.advanceTimersByTime(5_000);
    const second = finder.find([createStatus()], createLookupContext());
    vi.advanceTimersByTime(5_000);
    const tooSlow = [{ error: expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE" }) }];
    expect(await Promise.all([first, second])).toEqual([tooSlow, tooSlow]);
  });

  test("of several statuses leave out those that are cached or being read, and take one slot", async () => {
    const held = createDeferred<ChainDetails>();
    const { finder, reads, state } = setup(({ sent }) =>
      sent.transactionHash.endsWith("1") ? held.promise : Promise.resolve(finalDetails),
    );
    const [first, second, third] = numbered(3);
    if (first === undefined || second === undefined || third === undefined) throw new Error("no statuses");
    await finder.find([first], createLookupContext());
    const pending = finder.find([second], createLookupContext());
    const all = finder.find([first, second, third], createLookupContext());
    expect(reads).toEqual([first, second, third]);
    held.resolve(finalDetails);
    expect(await all).toHaveLength(3);
    await pending;
    expect(state.slots).toBe(3);
  });

  test("end when all their callers have left, and not before", async () => {
    const signals: AbortSignal[] = [];
    const { finder } = setup((_, { signal }) => {
      signals.push(signal);
      return createDeferred<ChainDetails>().promise;
    });
    const [first, second] = [new AbortController(), new AbortController()];
    const [one, two] = numbered(2);
    if (one === undefined || two === undefined) throw new Error("two statuses");
    const both = finder.find([one, two], createLookupContext({ signal: first.signal }));
    const other = finder.find([two], createLookupContext({ signal: second.signal, caller: "b" }));
    first.abort();
    await both;
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
    second.abort();
    await other;
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    void finder.find([two], createLookupContext());
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false]);
  });

  test("that fail concern their status alone, and are not kept", async () => {
    let isDown = true;
    const { finder } = setup(async ({ sent }) => {
      if (isDown && sent.transactionHash.endsWith("1")) throw unavailableError("arbitrum");
      return finalDetails;
    });
    const outcomes = await finder.find(numbered(3), createLookupContext());
    expect(outcomes.map((outcome) => "error" in outcome)).toEqual([false, true, false]);
    isDown = false;
    const later = await finder.find(numbered(3), createLookupContext());
    expect(later.map((outcome) => "error" in outcome)).toEqual([false, false, false]);
  });

  test.each([
    [4_000, 3_500],
    [1_000, 800],
  ])("that hang are UPSTREAM_UNAVAILABLE before the deadline in %i ms, after %i ms", async (remainingMs, waitMs) => {
    vi.useFakeTimers();
    const { finder } = setup(() => new Promise(() => {}));
    const context = createLookupContext({ remainingMs: () => remainingMs });
    let isSettled = false;
    const outcomes = Promise.resolve(finder.find([createStatus()], context)).finally(() => {
      isSettled = true;
    });
    await vi.advanceTimersByTimeAsync(waitMs - 1);
    expect(isSettled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await outcomes).toEqual([
      {
        error: expect.objectContaining({
          reason: "UPSTREAM_UNAVAILABLE",
          message: expect.stringMatching(/optimism and arbitrum/),
        }),
      },
    ]);
    expect(vi.getTimerCount()).toBe(1);
  });

  test.each([[[]], [["optimism"]]])("leave no timer behind, with custom endpoints %s", async (custom) => {
    vi.useFakeTimers();
    const { finder } = setup();
    await finder.find([createStatus()], createLookupContext({ chains: createChainAccess([], custom) }));
    expect(vi.getTimerCount()).toBe(0);
  });

  test("that take too long end with their own time, and name the chains", async () => {
    vi.useFakeTimers();
    const { finder } = setup(
      (_, { signal }) =>
        new Promise((__, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    );
    const outcomes = finder.find([createStatus()], createLookupContext({ remainingMs: () => 60_000 }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await outcomes).toMatchObject([
      {
        error: {
          reason: "UPSTREAM_UNAVAILABLE",
          message: "the details of the transfer could not be read from optimism and arbitrum in time",
        },
      },
    ]);
  });

  test("know how much time is left of their own", async () => {
    const left: number[] = [];
    const { finder, state } = setup(async (_, { remainingMs }) => {
      left.push(remainingMs());
      state.now += 1_500;
      left.push(remainingMs());
      return finalDetails;
    });
    await finder.find([createStatus()], createLookupContext({ remainingMs: () => 4_000 }));
    expect(left).toEqual([10_000, 8_500]);
  });

  test("fail the call where the code is wrong", async () => {
    const { finder } = setup(() => Promise.reject(new TypeError("a fault")));
    await expect(finder.find([createStatus()], createLookupContext())).rejects.toThrow(new TypeError("a fault"));
  });

  test("that have begun are joined while the server is overloaded, and take no slot", async () => {
    const held = createDeferred<ChainDetails>();
    const { finder, state } = setup(() => held.promise);
    const first = finder.find([createStatus()], createLookupContext());
    state.isFull = true;
    const second = finder.find([createStatus()], createLookupContext());
    held.resolve(finalDetails);
    expect([await first, await second]).toMatchObject([[{ details: finalDetails }], [{ details: finalDetails }]]);
    expect(state.slots).toBe(1);
  });

  test("are not begun while the server is overloaded, which does not concern cached ones", async () => {
    const { finder, state, reads } = setup();
    const [cached, other] = numbered(2);
    if (cached === undefined || other === undefined) throw new Error("no statuses");
    await finder.find([cached], createLookupContext());
    state.isFull = true;
    expect(await finder.find([cached], createLookupContext())).toHaveLength(1);
    await expect(finder.find([other], createLookupContext())).rejects.toMatchObject({ reason: "OVERLOADED" });
    expect(reads).toHaveLength(1);
  });

  test("of a thousand statuses are batches of twenty, five at the same time", async () => {
    const arbitrum = createTransferChainStub("arbitrum");
    let [open, mostOpen] = [0, 0];
    arbitrum.beforeResponse = async () => {
      open += 1;
      mostOpen = Math.max(mostOpen, open);
      await flushEventLoop();
      open -= 1;
    };
    const { finder } = setup(async ({ sent }, { chains, signal }) => {
      await readReceipt(chains.getClient("arbitrum"), sent.transactionHash, signal);
      return finalDetails;
    });
    const context = createLookupContext({ chains: createChainAccess([arbitrum]) });
    await finder.find(numbered(1_000), context);
    expect(arbitrum.methods).toEqual(Array(50).fill(Array(20).fill("eth_getTransactionReceipt").join(" ")));
    expect(mostOpen).toBe(5);
  });

  test("that another caller's spent budget ended are repeated for a caller with one of its own", async () => {
    const held = createDeferred<void>();
    const { finder, reads } = setup(async (_, { caller }) => {
      await held.promise;
      if (caller !== "poor") return finalDetails;
      throw new BudgetExhaustedError("caller", "RATE_LIMITED", "spent");
    });
    const [poor, rich] = ["poor", "rich"].map((caller) =>
      finder.find([createStatus()], createLookupContext({ caller })),
    );
    const alsoRich = finder.find([createStatus()], createLookupContext({ caller: "also rich" }));
    expect(reads).toHaveLength(1);
    held.resolve();
    expect(await poor).toMatchObject([{ error: { reason: "RATE_LIMITED" } }]);
    for (const found of [rich, alsoRich]) expect(await found).toMatchObject([{ details: finalDetails }]);
    // Once for the one that has no budget left, and once for the two others.
    expect(reads).toHaveLength(2);
  });

  test("of one call spend one budget", async () => {
    const arbitrum = createTransferChainStub("arbitrum");
    const { finder } = setup(async ({ sent }, { chains, signal }) => {
      for (let i = 0; i < 100; i++) {
        await chains
          .getClient("arbitrum")
          .getLogs({ filter: { address: sent.account, topics: [] }, range: { from: 0, to: 1 } }, signal);
      }
      return finalDetails;
    });
    const context = createLookupContext({ chains: createChainAccess([arbitrum]) });
    const outcomes = await finder.find(numbered(10), context);
    expect(arbitrum.methods.length).toBeLessThanOrEqual(450);
    expect(outcomes.every((outcome) => "error" in outcome)).toBe(true);
    expect(outcomes[0]).toMatchObject({ error: { reason: "UPSTREAM_UNAVAILABLE", budget: "lookup" } });
  });

  test.each([
    ["the operator's", [], 440],
    ["a caller's own", ["optimism"], 40],
  ])("search %s endpoint as far as a lookup may", async (_, custom, searches) => {
    const arbitrum = createTransferChainStub("arbitrum");
    const seen: boolean[] = [];
    const { finder } = setup(async ({ sent }, { chains, signal }) => {
      seen.push(chains.hasCustomEndpoint("optimism"));
      const filter = { address: sent.account, topics: [] };
      try {
        for (;;) await chains.getClient("arbitrum").getLogs({ filter, range: { from: 0, to: 1 } }, signal);
      } catch {
        throw unavailableError("arbitrum");
      }
    });
    const context = createLookupContext({ chains: createChainAccess([arbitrum], custom) });
    const outcomes = await finder.find([createStatus()], context);
    expect(arbitrum.methods).toHaveLength(searches);
    expect(seen).toEqual([custom.length > 0]);
    // The spent budget is the cause, whatever failed of it.
    expect(outcomes).toMatchObject([{ error: { reason: "UPSTREAM_UNAVAILABLE", budget: "lookup" } }]);
  });
});

const { signal } = new AbortController();
const own = new AbortController().signal;

/** Joins the calls to Base; `respond` gives the outcomes of a batch. */
function joinCallsToBase(respond: (methods: readonly string[]) => Promise<readonly RpcCallResult[]>) {
  const base = createTransferChainStub("base");
  const sendBatch = vi.fn<ChainClient["sendBatch"]>((calls) => respond(calls.map(({ method }) => method)));
  const client = { ...base.client, heads: getHeadTracker(base.client), sendBatch };
  const chains = joinCalls(createChainAccess([{ ...base, client }], ["base"]), signal);
  return { chains, client, sendBatch };
}

const echo = async (methods: readonly string[]) => methods.map((method) => ({ result: `${method} result` }));

test("calls of one turn go out in one batch with the common signal, and each gets its result", async () => {
  const { chains, sendBatch } = joinCallsToBase(echo);
  const onRequest = vi.fn();
  const validate = vi.fn();
  const [first, second] = [chains.getClient("base"), chains.getClient("base")];
  expect(await Promise.all([first.send("a", [1], own), second.send("b", [2], own, { validate, onRequest })])).toEqual([
    "a result",
    "b result",
  ]);
  await first.send("c", [], own);
  expect(sendBatch.mock.calls.map(([calls, used]) => [calls.map(({ method }) => method), used === signal])).toEqual([
    [["a", "b"], true],
    [["c"], true],
  ]);
  expect(sendBatch.mock.calls[0]?.[0][1]).toEqual({ method: "b", params: [2], validate, onRequest });
});

test("a call that reverts, or that has no outcome, fails alone", async () => {
  const revert = Object.assign(new Error("reverted"), { data: "0x" }) as never;
  const { chains } = joinCallsToBase(async () => [{ revert }, { result: 2 }]);
  const client = chains.getClient("base");
  const outcomes = await Promise.allSettled(["a", "b", "c"].map((method) => client.send(method, [], own)));
  expect(outcomes).toEqual([
    { status: "rejected", reason: revert },
    { status: "fulfilled", value: 2 },
    { status: "rejected", reason: new Error("the call has no outcome") },
  ]);
});

test("a batch that fails fails its calls, but not those of another", async () => {
  const { chains } = joinCallsToBase((methods) =>
    methods.includes("0") ? Promise.reject(unavailableError("base")) : echo(methods),
  );
  const client = chains.getClient("base");
  const calls = Array.from({ length: 21 }, (_, index) => client.send(String(index), [], own));
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.slice(0, 20)).toEqual(Array(20).fill({ status: "rejected", reason: unavailableError("base") }));
  expect(outcomes[20]).toEqual({ status: "fulfilled", value: "20 result" });
});

test("batches and log searches pass as they are, and the chain is the same", async () => {
  const { chains, client, sendBatch } = joinCallsToBase(echo);
  const joined = chains.getClient("base");
  const getLogs = vi.spyOn(client, "getLogs");
  const calls = [{ method: "a", params: [] }];
  expect(await joined.sendBatch(calls, own)).toEqual([{ result: "a result" }]);
  expect(sendBatch).toHaveBeenCalledWith(calls, own);
  const filter = { address: repeatedByteAddress("b1"), topics: [] };
  const search = { filter, range: { from: 0, to: 9 }, newestFirst: true, onRequest: vi.fn() };
  expect(await joined.getLogs(search, own)).toEqual({ result: [], range: { from: 0, to: 9 } });
  expect(getLogs).toHaveBeenCalledWith(search, own);
  expect([joined.slug, joined.heads]).toEqual(["base", client.heads]);
  expect([chains.hasCustomEndpoint("base"), chains.hasCustomEndpoint("linea")]).toEqual([true, false]);
});
