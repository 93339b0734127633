import { describe, expect, test, vi } from "vitest";
import type { ChainClient, RpcCallResult } from "../../../../src/chain/chain-client.js";
import { getHeadTracker } from "../../../../src/chain/heads/head-tracker.js";
import { readReceipt } from "../../../../src/chain/read/chain-reads.js";
import { ServiceError } from "../../../../src/errors.js";
import { raceAbort } from "../../../../src/resilience/abort-scope.js";
import { AdaptiveLimiter } from "../../../../src/resilience/adaptive-limiter.js";
import { DetailsFinder, joinCalls } from "../../../../src/transfers/details/details-finder.js";
import type { ChainDetails, DetailsReader } from "../../../../src/transfers/details/details-reader.js";
import type { LookupContext } from "../../../../src/transfers/sources/transfer-source.js";
import { BudgetExhaustedError, LookupBudgets } from "../../../../src/transfers/spend/lookup-budget.js";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import { settleAfter } from "../../../support/settle-after.js";
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

const createNumbered = (index: number): TransferStatus =>
  createStatus({ sent: { transactionHash: `0x${index.toString(16).padStart(64, "0")}` } });
const numbered = (count: number) => Array.from({ length: count }, (_, index) => createNumbered(index));

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
  /** Finds the details of statuses, of one that was delivered unless others are given. */
  const find = async (statuses: readonly TransferStatus[] = [createStatus()], context: Partial<LookupContext> = {}) =>
    finder.find(statuses, createLookupContext(context));
  return { finder, find, reads, state };
}

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

  const sourceNotFinal = { ...finalDetails, source: { ...finalDetails.source, isFinal: false } };
  test.each<[string, TransferStatus, ChainDetails, number]>([
    ["final", createStatus(), finalDetails, HOUR_MS],
    ["of a pending transfer", pendingStatus, finalDetails, 1_000],
    ["not final", createStatus(), { ...finalDetails, destination: undefined }, 1_000],
    ["of a send that is not final", createStatus(), sourceNotFinal, 1_000],
  ])("that are %s stay as long as their status", async (_, status, details, ttlMs) => {
    const { find, reads, state } = setup(async () => details);
    await find([status]);
    state.now += ttlMs - 1;
    await find([status]);
    expect(reads).toHaveLength(1);
    state.now += 2;
    await find([status]);
    expect(reads).toHaveLength(2);
  });

  test("are those of the new status when a reorg changes it", async () => {
    const { find, reads } = setup();
    await find();
    await find([pendingStatus]);
    const delivery = { transactionHash: repeatedByteHash("3d"), blockNumber: 9, bonder: undefined };
    await find([createStatus({ delivery })]);
    expect(reads).toHaveLength(3);
  });

  test.each([
    [undefined, undefined],
    [0, 1_700_000_000],
    [184, 1_700_000_184],
  ])("are estimated from the median of the route: %s", async (median, estimatedDeliveryAt) => {
    const { find } = setup(undefined, median);
    expect(await find()).toMatchObject([{ details: { estimatedDeliveryAt } }]);
  });

  test("over custom endpoints are neither cached nor shared", async () => {
    const { find, reads } = setup();
    const chains = createChainAccess([], ["optimism"]);
    await Promise.all([find(undefined, { chains }), find(undefined, { chains })]);
    await find();
    expect(reads).toHaveLength(3);
  });
});

describe("reads", () => {
  test("of one status at the same time are one", async () => {
    const held = createDeferred<ChainDetails>();
    const { find, reads } = setup(() => held.promise);
    const all = Array.from({ length: 50 }, () => find());
    held.resolve(finalDetails);
    await Promise.all(all);
    expect(reads).toHaveLength(1);
  });

  test("that get no slot in time are too slow for all who wait, also for one who came later", async () => {
    vi.useFakeTimers();
    const { find, state } = setup();
    state.isBusy = true;
    const first = find();
    vi.advanceTimersByTime(5_000);
    const second = find();
    vi.advanceTimersByTime(5_000);
    const tooSlow = [{ error: expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE" }) }];
    expect(await Promise.all([first, second])).toEqual([tooSlow, tooSlow]);
  });

  test("of several statuses leave out those that are cached or being read, and take one slot", async () => {
    const held = createDeferred<ChainDetails>();
    const { find, reads, state } = setup(({ sent }) =>
      sent.transactionHash.endsWith("1") ? held.promise : Promise.resolve(finalDetails),
    );
    const [first, second, third] = [createNumbered(0), createNumbered(1), createNumbered(2)];
    await find([first]);
    const pending = find([second]);
    const all = find([first, second, third]);
    expect(reads).toEqual([first, second, third]);
    held.resolve(finalDetails);
    expect(await all).toHaveLength(3);
    await pending;
    expect(state.slots).toBe(3);
  });

  test("end when all their callers have left, and not before", async () => {
    const signals: AbortSignal[] = [];
    const { find } = setup((_, { signal }) => {
      signals.push(signal);
      return createDeferred<ChainDetails>().promise;
    });
    const [first, second] = [new AbortController(), new AbortController()];
    const [one, two] = [createNumbered(0), createNumbered(1)];
    const both = find([one, two], { signal: first.signal });
    const other = find([two], { signal: second.signal, caller: "b" });
    first.abort();
    await both;
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
    second.abort();
    await other;
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    void find([two]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false]);
  });

  test("that fail concern their status alone, and are not kept", async () => {
    let isDown = true;
    const { find } = setup(async ({ sent }) => {
      if (isDown && sent.transactionHash.endsWith("1")) throw unavailableError("arbitrum");
      return finalDetails;
    });
    const outcomes = await find(numbered(3));
    expect(outcomes.map((outcome) => "error" in outcome)).toEqual([false, true, false]);
    isDown = false;
    const later = await find(numbered(3));
    expect(later.map((outcome) => "error" in outcome)).toEqual([false, false, false]);
  });

  test.each([
    [4_000, 3_500],
    [1_000, 800],
  ])("that hang are UPSTREAM_UNAVAILABLE before the deadline in %i ms, after %i ms", async (remainingMs, waitMs) => {
    vi.useFakeTimers();
    const { find } = setup(() => new Promise(() => {}));
    const message = expect.stringMatching(/optimism and arbitrum/);
    expect(await settleAfter(find(undefined, { remainingMs: () => remainingMs }), waitMs)).toEqual([
      { error: expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE", message }) },
    ]);
    expect(vi.getTimerCount()).toBe(1);
  });

  test.each([[[]], [["optimism"]]])("leave no timer behind, with custom endpoints %s", async (custom) => {
    vi.useFakeTimers();
    const { find } = setup();
    await find(undefined, { chains: createChainAccess([], custom) });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("that take too long end with their own time, and name the chains", async () => {
    vi.useFakeTimers();
    const { find } = setup((_, { signal }) => raceAbort(new Promise(() => {}), signal));
    const outcomes = find(undefined, { remainingMs: () => 60_000 });
    await vi.advanceTimersByTimeAsync(10_000);
    const message = "the details of the transfer could not be read from optimism and arbitrum in time";
    expect(await outcomes).toMatchObject([{ error: { reason: "UPSTREAM_UNAVAILABLE", message } }]);
  });

  test("know how much time is left of their own", async () => {
    const left: number[] = [];
    const { find, state } = setup(async (_, { remainingMs }) => {
      left.push(remainingMs());
      state.now += 1_500;
      left.push(remainingMs());
      return finalDetails;
    });
    await find(undefined, { remainingMs: () => 4_000 });
    expect(left).toEqual([10_000, 8_500]);
  });

  test("fail the call where the code is wrong", async () => {
    const { find } = setup(() => Promise.reject(new TypeError("a fault")));
    await expect(find()).rejects.toThrow(new TypeError("a fault"));
  });

  test("that have begun are joined while the server is overloaded, and take no slot", async () => {
    const held = createDeferred<ChainDetails>();
    const { find, state } = setup(() => held.promise);
    const first = find();
    state.isFull = true;
    const second = find();
    held.resolve(finalDetails);
    expect([await first, await second]).toMatchObject([[{ details: finalDetails }], [{ details: finalDetails }]]);
    expect(state.slots).toBe(1);
  });

  test("are not begun while the server is overloaded, which does not concern cached ones", async () => {
    const { find, state, reads } = setup();
    const [cached, other] = [createNumbered(0), createNumbered(1)];
    await find([cached]);
    state.isFull = true;
    expect(await find([cached])).toHaveLength(1);
    await expect(find([other])).rejects.toMatchObject({ reason: "OVERLOADED" });
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
    const { find } = setup(async ({ sent }, { chains, signal }) => {
      await readReceipt(chains.getClient("arbitrum"), sent.transactionHash, signal);
      return finalDetails;
    });
    await find(numbered(1_000), { chains: createChainAccess([arbitrum]) });
    expect(arbitrum.methods).toEqual(Array(50).fill(Array(20).fill("eth_getTransactionReceipt").join(" ")));
    expect(mostOpen).toBe(5);
  });

  test("that another caller's spent budget ended are repeated for a caller with one of its own", async () => {
    const held = createDeferred<void>();
    const { find, reads } = setup(async (_, { caller }) => {
      await held.promise;
      if (caller !== "poor") return finalDetails;
      throw new BudgetExhaustedError("caller", "RATE_LIMITED", "spent");
    });
    const [poor, rich, alsoRich] = ["poor", "rich", "also rich"].map((caller) => find(undefined, { caller }));
    expect(reads).toHaveLength(1);
    held.resolve();
    expect(await poor).toMatchObject([{ error: { reason: "RATE_LIMITED" } }]);
    for (const found of [rich, alsoRich]) expect(await found).toMatchObject([{ details: finalDetails }]);
    // Once for the one that has no budget left, and once for the two others.
    expect(reads).toHaveLength(2);
  });

  test.each([
    ["the operator's", [], 440],
    ["a caller's own", ["optimism"], 40],
  ])("of one call search %s endpoint as far as one lookup may", async (_, custom, searches) => {
    const arbitrum = createTransferChainStub("arbitrum");
    const seen: boolean[] = [];
    const { find } = setup(async ({ sent }, { chains, signal }) => {
      seen.push(chains.hasCustomEndpoint("optimism"));
      const filter = { address: sent.account, topics: [] };
      try {
        for (;;) await chains.getClient("arbitrum").getLogs({ filter, range: { from: 0, to: 1 } }, signal);
      } catch {
        throw unavailableError("arbitrum");
      }
    });
    const outcomes = await find(numbered(2), { chains: createChainAccess([arbitrum], custom) });
    expect(arbitrum.methods).toHaveLength(searches);
    expect(seen).toEqual(Array(2).fill(custom.length > 0));
    // The spent budget is the cause, whatever failed of it.
    expect(outcomes).toMatchObject(Array(2).fill({ error: { reason: "UPSTREAM_UNAVAILABLE", budget: "lookup" } }));
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
