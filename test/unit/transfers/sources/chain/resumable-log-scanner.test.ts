import { describe, expect, test, vi } from "vitest";
import {
  type LogScanOptions,
  ResumableLogScanner,
} from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import { LookupBudgets } from "../../../../../src/transfers/spend/lookup-budget.js";
import { meterChains } from "../../../../../src/transfers/spend/metered-chains.js";
import { settleAfter } from "../../../../support/settle-after.js";
import {
  createDeferred,
  createTransferChainStub,
  flushEventLoop,
  toLog,
  unavailableError,
} from "../../../../support/stubs/transfer-fixtures.js";
import { withdrawalBondedEvent } from "../../index/support/hop-events.js";

const event = withdrawalBondedEvent("a", { to: "arbitrum" });
const other = withdrawalBondedEvent("a", { to: "arbitrum", transaction: "other" });
const filter = { address: event.address, topics: event.topics };
const unavailable = { reason: "UPSTREAM_UNAVAILABLE" };
/** One block per second: the newest 1,800 blocks are searched again. */
const blockMs = 1_000;

function setup({ head = 100_000, maxLogBlocks = Number.POSITIVE_INFINITY } = {}) {
  const closing = new AbortController();
  const clock = { now: 0 };
  const logScanner = new ResumableLogScanner(closing.signal, () => clock.now);
  const chain = createTransferChainStub("arbitrum", { head, maxLogBlocks });
  const starts: AbortSignal[] = [];
  const findStartBlock = async (signal: AbortSignal): Promise<number> => {
    starts.push(signal);
    return 50_000;
  };
  const defaults = { client: chain.client, filter, findStartBlock, blockMs, isMatch: () => true, targetCount: 1 };
  function resume(
    key: string | undefined,
    more: Partial<LogScanOptions> = {},
    signal = new AbortController().signal,
    caller = "a",
  ) {
    const logs = logScanner.resume(key, { ...defaults, ...more }, { caller, signal });
    logs.catch(() => {});
    return logs;
  }
  return {
    ...{ chain, resume, closing, starts, clock },
    /** Makes log searches fail after some of them. */
    failAfter(searches: number): void {
      let left = searches;
      chain.beforeResponse = (method) => {
        if (method === "eth_getLogs" && left-- <= 0) throw unavailableError("arbitrum");
      };
    },
    /** Begins scans that wait for the chain until the returned function is called. */
    async hold(count: number) {
      const held = createDeferred<void>();
      chain.beforeResponse = () => held.promise;
      const scans = Array.from({ length: count }, (_, index) => resume(`scan ${index}`));
      await flushEventLoop();
      return { scans, release: () => held.resolve() };
    },
  };
}
const unlimited = { targetCount: Number.POSITIVE_INFINITY };

describe("a log scan", () => {
  test("begins at its start block, ends at its target count, and is not repeated", async () => {
    const { chain, resume, starts } = setup({ maxLogBlocks: 2_000 });
    chain.events = [{ event, block: 53_000 }];
    expect(await resume("a")).toEqual([toLog(event, 53_000)]);
    expect(chain.searchedRanges[0]?.from).toBe(50_000);
    expect(starts).toHaveLength(1);
    const before = chain.methods.length;
    expect(await resume("a")).toEqual([toLog(event, 53_000)]);
    expect(chain.methods).toHaveLength(before);
    // Another key is another scan.
    await resume("b");
    expect(starts).toHaveLength(2);
  });

  test("finds every log up to the head once, in chain order", async () => {
    const { chain, resume } = setup({ maxLogBlocks: 7_000 });
    const blocks = [50_000, 59_999, 60_000, 79_999, 99_500, 100_000];
    chain.events = blocks.map((block) => ({ event, block }));
    expect(await resume("a", unlimited)).toEqual(blocks.map((block) => toLog(event, block)));
    expect(await resume("a", unlimited)).toEqual(blocks.map((block) => toLog(event, block)));
    expect(await resume(undefined, unlimited)).toEqual(blocks.map((block) => toLog(event, block)));
  });

  test.each(["a", undefined])("counts matching logs only, with key %s", async (key) => {
    const { chain, resume } = setup({ maxLogBlocks: 2_000 });
    chain.events = [52_000, 57_000, 71_000, 90_000].map((block, index) => ({
      event: index % 2 === 0 ? other : event,
      block,
    }));
    const isMatch: LogScanOptions["isMatch"] = ({ transactionHash }) => transactionHash === event.transactionHash;
    expect(await resume(key, { isMatch })).toEqual([toLog(event, 57_000)]);
    expect(Math.max(...chain.searchedRanges.map(({ to }) => to))).toBeLessThan(90_000);
    const both = [toLog(event, 57_000), toLog(event, 90_000)];
    expect(await resume(key, { isMatch, targetCount: 2 })).toEqual(both);
    expect(await resume(key, { isMatch, targetCount: 3 })).toEqual(both);
  });

  test("continues after its first caller has left, for the next caller", async () => {
    const { chain, resume, starts } = setup();
    const held = createDeferred<void>();
    chain.events = [{ event, block: 60_500 }];
    chain.beforeResponse = (method) => (method === "eth_getLogs" ? held.promise : undefined);
    const caller = new AbortController();
    const abandoned = resume("a", {}, caller.signal);
    await flushEventLoop();
    caller.abort();
    await expect(abandoned).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining("arbitrum") });
    const joined = resume("a");
    held.resolve();
    expect(await joined).toEqual([toLog(event, 60_500)]);
    expect(starts.map(({ aborted }) => aborted)).toEqual([true]);
    expect(chain.methods.filter((method) => method === "eth_getBlockByNumber")).toHaveLength(1);
  });

  test("takes the turn of a caller who joins it, and keeps it when he leaves", async () => {
    const { resume, starts, closing, hold } = setup();
    // As many as one caller may have at a time, and one that waits.
    await hold(9);
    expect(starts).toHaveLength(8);
    const other = new AbortController();
    resume("scan 8", {}, other.signal, "b");
    await flushEventLoop();
    expect(starts).toHaveLength(9);
    other.abort();
    await flushEventLoop();
    expect(starts.some(({ aborted }) => aborted)).toBe(false);
    closing.abort();
  });

  test("rejects at once when the signal has fired already", async () => {
    const { resume } = setup();
    await expect(resume("a", {}, AbortSignal.abort())).rejects.toMatchObject(unavailable);
  });

  test("resumes where it stopped, and reads recent blocks again", async () => {
    const { chain, resume } = setup();
    expect(await resume("a")).toEqual([]);
    expect(chain.searchedRanges.map(({ from }) => from)).toEqual([50_000, 60_000, 80_000]);
    expect(chain.searchedRanges.at(-1)?.to).toBe(100_000);
    chain.searchedRanges.length = 0;
    chain.head = 100_100;
    chain.events = [{ event, block: 100_050 }];
    expect(await resume("a")).toEqual([toLog(event, 100_050)]);
    expect(chain.searchedRanges).toEqual([{ from: 98_201, to: 100_100 }]);
  });

  test("drops a recent log after a reorg, and keeps an old one", async () => {
    const { chain, resume } = setup();
    chain.events = [
      { event, block: 98_200 },
      { event: other, block: 98_201 },
    ];
    expect(await resume("a", { targetCount: 2 })).toHaveLength(2);
    chain.events = [];
    expect(await resume("a", { targetCount: 2 })).toEqual([toLog(event, 98_200)]);
  });

  test("begins anew an hour after it first reached its end: an endpoint may have left out a log", async () => {
    const { chain, resume, clock } = setup();
    expect(await resume("a")).toEqual([]);
    chain.events = [{ event, block: 60_000 }];
    clock.now += 60 * 60_000 - 1;
    expect(await resume("a")).toEqual([]);
    clock.now += 1;
    expect(await resume("a")).toEqual([toLog(event, 60_000)]);
  });

  test("starts later when the head is below its start block", async () => {
    const { chain, resume } = setup({ head: 49_000 });
    expect(await resume("a")).toEqual([]);
    expect(chain.searchedRanges).toEqual([]);
    chain.head = 50_000;
    chain.events = [{ event, block: 50_000 }];
    expect(await resume("a")).toEqual([toLog(event, 50_000)]);
  });

  test("fails for every caller, keeps its progress until it reaches its end, and can be resumed", async () => {
    const { chain, resume, starts, clock, failAfter } = setup();
    chain.events = [{ event, block: 51_000 }];
    failAfter(1);
    const both = [resume("a", unlimited), resume("a", unlimited)];
    for (const each of both) await expect(each).rejects.toMatchObject(unavailable);
    chain.beforeResponse = () => {};
    clock.now += 60 * 60_000;
    chain.searchedRanges.length = 0;
    expect(await resume("a", unlimited)).toEqual([toLog(event, 51_000)]);
    expect(chain.searchedRanges[0]?.from).toBe(60_000);
    expect(starts).toHaveLength(1);
  });

  test("fails when its start block cannot be found, and starts later", async () => {
    const { chain, resume } = setup();
    chain.events = [{ event, block: 60_000 }];
    const findStartBlock = () => Promise.reject(unavailableError("optimism"));
    await expect(resume("a", { findStartBlock })).rejects.toMatchObject(unavailable);
    expect(await resume("a")).toHaveLength(1);
  });

  test("without a key is private and ends with its signal", async () => {
    const { chain, resume, starts } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    const caller = new AbortController();
    const [a, b] = [resume(undefined, {}, caller.signal), resume(undefined)];
    await flushEventLoop();
    expect(starts).toHaveLength(2);
    expect(starts[0]).toBe(caller.signal);
    caller.abort();
    await expect(a).rejects.toMatchObject(unavailable);
    chain.beforeResponse = () => {};
    expect(await Promise.race([b, flushEventLoop().then(() => "pending")])).toBe("pending");
    // Nothing of it is stored.
    await resume(undefined);
    expect(starts).toHaveLength(3);
  });

  test("waits while eight other scans of the chain run, unless it is private or complete", async () => {
    const { chain, resume, starts, hold } = setup();
    chain.events = [{ event, block: 60_000 }];
    const completed = await resume("completed");
    const { scans, release } = await hold(8);
    const startedCount = starts.length;
    const [next, joined] = [resume("ninth"), resume("scan 3")];
    await flushEventLoop();
    expect(starts).toHaveLength(startedCount);
    const privateScan = resume(undefined);
    await flushEventLoop();
    expect(starts).toHaveLength(startedCount + 1);
    expect(await resume("completed")).toEqual(completed);
    release();
    await Promise.all([...scans, joined, privateScan]);
    expect(await next).toHaveLength(1);
    expect(starts).toHaveLength(startedCount + 2);
  });

  test("does not wait for scans of another chain", async () => {
    const { resume, closing, hold } = setup();
    await hold(40);
    const base = createTransferChainStub("base");
    base.events = [{ event, block: 60_000 }];
    expect(await resume("on base", { client: base.client })).toHaveLength(1);
    closing.abort();
  });

  test("times out after ten minutes, including its wait for the semaphore", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { resume, starts, hold } = setup();
    const { scans } = await hold(8);
    await vi.advanceTimersByTimeAsync(6 * 60_000);
    const next = resume("next");
    await vi.advanceTimersByTimeAsync(4 * 60_000 - 1);
    expect(starts).toHaveLength(8);
    await vi.advanceTimersByTimeAsync(1);
    expect((await Promise.allSettled(scans)).map(({ status }) => status)).toEqual(Array(8).fill("rejected"));
    expect(starts).toHaveLength(9);
    await expect(settleAfter(next, 6 * 60_000)).rejects.toMatchObject(unavailable);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("releases the semaphore when it fails", async () => {
    const { resume, failAfter } = setup();
    failAfter(0);
    for (let index = 0; index < 17; index += 1)
      await expect(resume(`scan ${index}`)).rejects.toThrow("arbitrum is down");
  });

  test("ends when the service closes", async () => {
    const { chain, resume, closing, starts } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    const running = resume("a");
    await flushEventLoop();
    closing.abort();
    await expect(running).rejects.toMatchObject(unavailable);
    await expect(resume("b")).rejects.toBeDefined();
    expect(starts.every(({ aborted }) => aborted)).toBe(true);
  });
});

test("a log scan up to a block reads no head, and is not repeated except for recent blocks", async () => {
  const { chain, resume } = setup();
  chain.events = [{ event, block: 60_000 }];
  const bounded = { ...unlimited, endBlock: 80_000 };
  expect(await resume("a", bounded)).toEqual([toLog(event, 60_000)]);
  expect(chain.methods).toEqual(["eth_getLogs"]);
  expect(await resume("a", bounded)).toEqual([toLog(event, 60_000)]);
  expect(chain.searchedRanges).toEqual([
    { from: 50_000, to: 80_000 },
    { from: 78_201, to: 80_000 },
  ]);
});

test("a log scan that has spent its budget pauses for 30 s, and goes on in the middle of a step", async () => {
  const { chain, resume, clock } = setup({ head: 1_000_000, maxLogBlocks: 10_000 });
  const budgets = new LookupBudgets({ now: () => 0 });
  /** Resumes with the budget of a new private lookup: 40 searches. */
  function resumeMetered() {
    const access = { getClient: () => chain.client, hasCustomEndpoint: () => false };
    return resume("a", { client: meterChains(access, budgets.open("a", true)).getClient("arbitrum") });
  }
  const message = expect.stringContaining("a lookup after 30 s goes on with it");
  const tooLong = { ...unavailable, budget: "lookup", message };
  chain.events = [{ event, block: 700_000 }];
  await expect(resumeMetered()).rejects.toMatchObject(tooLong);
  const last = chain.searchedRanges.at(-1)?.to ?? 0;
  expect(last).toBeGreaterThan(400_000);
  const requests = chain.methods.length;
  clock.now += 30_000 - 1;
  await expect(resumeMetered()).rejects.toMatchObject(tooLong);
  expect(chain.methods).toHaveLength(requests);
  clock.now += 1;
  chain.searchedRanges.length = 0;
  expect(await resumeMetered()).toEqual([toLog(event, 700_000)]);
  expect(chain.searchedRanges[0]?.from).toBe(last + 1);
});
