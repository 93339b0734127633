import { afterEach, describe, expect, test, vi } from "vitest";
import {
  createResumableLogScanner,
  type LogScanOptions,
} from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
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
const isDown = { reason: "UPSTREAM_UNAVAILABLE" };
/** A block is a second: what is younger than 1,800 blocks is searched again. */
const blockMs = 1_000;

function setup({ head = 100_000, most = Number.POSITIVE_INFINITY } = {}) {
  const closing = new AbortController();
  const logScanner = createResumableLogScanner(closing.signal);
  const chain = createTransferChainStub("arbitrum", { head, most });
  const starts: AbortSignal[] = [];
  const follow = (
    key: string | undefined,
    more: Partial<LogScanOptions> = {},
    signal = new AbortController().signal,
  ) => {
    const findStartBlock = async (during: AbortSignal): Promise<number> => {
      starts.push(during);
      return 50_000;
    };
    const options = {
      client: chain.client,
      filter,
      findStartBlock,
      blockMs,
      isMatch: () => true,
      targetCount: 1,
      ...more,
    };
    return logScanner.resume(key, options, signal);
  };
  return { chain, follow, closing, starts };
}
const all = { targetCount: Number.POSITIVE_INFINITY };

afterEach(() => {
  vi.useRealTimers();
});

describe("a search for logs", () => {
  test("begins at its start, ends where enough is found, and is not made again", async () => {
    const { chain, follow, starts } = setup({ most: 2_000 });
    chain.events = [{ event, block: 53_000 }];
    expect(await follow("a")).toEqual([toLog(event, 53_000)]);
    expect(chain.searchedRanges[0]?.from).toBe(50_000);
    expect(starts).toHaveLength(1);
    const before = chain.methods.length;
    expect(await follow("a")).toEqual([toLog(event, 53_000)]);
    expect(chain.methods).toHaveLength(before);
    // Another key is another search.
    await follow("b");
    expect(starts).toHaveLength(2);
  });

  test("finds all up to the head, in the order of the chain, each once", async () => {
    const { chain, follow } = setup({ most: 7_000 });
    const blocks = [50_000, 59_999, 60_000, 79_999, 99_500, 100_000];
    chain.events = blocks.map((block) => ({ event, block }));
    expect(await follow("a", all)).toEqual(blocks.map((block) => toLog(event, block)));
    expect(await follow("a", all)).toEqual(blocks.map((block) => toLog(event, block)));
    expect(await follow(undefined, all)).toEqual(blocks.map((block) => toLog(event, block)));
  });

  test.each(["a", undefined])("is for what is wanted, whatever else there is, under the key %s", async (key) => {
    const { chain, follow } = setup({ most: 2_000 });
    chain.events = [52_000, 57_000, 71_000, 90_000].map((block, index) => ({
      event: index % 2 === 0 ? other : event,
      block,
    }));
    const isMatch: LogScanOptions["isMatch"] = ({ transactionHash }) => transactionHash === event.transactionHash;
    expect(await follow(key, { isMatch })).toEqual([toLog(event, 57_000)]);
    expect(Math.max(...chain.searchedRanges.map(({ to }) => to))).toBeLessThan(90_000);
    const both = [toLog(event, 57_000), toLog(event, 90_000)];
    expect(await follow(key, { isMatch, targetCount: 2 })).toEqual(both);
    expect(await follow(key, { isMatch, targetCount: 3 })).toEqual(both);
  });

  test("goes on when who began it has left, and another gets what it comes to", async () => {
    const { chain, follow, starts } = setup();
    const held = createDeferred<void>();
    chain.events = [{ event, block: 60_500 }];
    chain.beforeResponse = (method) => (method === "eth_getLogs" ? held.promise : undefined);
    const caller = new AbortController();
    const left = follow("a", {}, caller.signal);
    await flushEventLoop();
    caller.abort();
    await expect(left).rejects.toMatchObject({ ...isDown, message: expect.stringContaining("arbitrum") });
    const joined = follow("a");
    held.resolve();
    expect(await joined).toEqual([toLog(event, 60_500)]);
    expect(starts.map(({ aborted }) => aborted)).toEqual([true]);
    expect(chain.methods.filter((method) => method === "eth_getBlockByNumber")).toHaveLength(1);
  });

  test("ends the wait at once for who has left before", async () => {
    const { follow } = setup();
    await expect(follow("a", {}, AbortSignal.abort())).rejects.toMatchObject(isDown);
  });

  test("continues where it ended, and reads again what is young", async () => {
    const { chain, follow } = setup();
    expect(await follow("a")).toEqual([]);
    expect(chain.searchedRanges.map(({ from }) => from)).toEqual([50_000, 60_000, 80_000]);
    expect(chain.searchedRanges.at(-1)?.to).toBe(100_000);
    chain.searchedRanges.length = 0;
    chain.head = 100_100;
    chain.events = [{ event, block: 100_050 }];
    expect(await follow("a")).toEqual([toLog(event, 100_050)]);
    expect(chain.searchedRanges).toEqual([{ from: 98_201, to: 100_100 }]);
  });

  test("forgets a young log with the block that was undone, and keeps an old one", async () => {
    const { chain, follow } = setup();
    chain.events = [
      { event, block: 98_200 },
      { event: other, block: 98_201 },
    ];
    expect(await follow("a", { targetCount: 2 })).toHaveLength(2);
    chain.events = [];
    expect(await follow("a", { targetCount: 2 })).toEqual([toLog(event, 98_200)]);
  });

  test("begins again where the chain's head is behind what was searched", async () => {
    const { chain, follow } = setup({ head: 49_000 });
    expect(await follow("a")).toEqual([]);
    expect(chain.searchedRanges).toEqual([]);
    chain.head = 50_000;
    chain.events = [{ event, block: 50_000 }];
    expect(await follow("a")).toEqual([toLog(event, 50_000)]);
  });

  test("fails for all who wait, keeps what it had searched, and is tried again", async () => {
    const { chain, follow, starts } = setup();
    chain.events = [{ event, block: 51_000 }];
    let answers = 1;
    chain.beforeResponse = (method) => {
      if (method === "eth_getLogs" && answers-- <= 0) throw unavailableError("arbitrum");
    };
    const [a, b] = [follow("a", all), follow("a", all)];
    await expect(a).rejects.toMatchObject(isDown);
    await expect(b).rejects.toMatchObject(isDown);
    chain.beforeResponse = () => {};
    chain.searchedRanges.length = 0;
    expect(await follow("a", all)).toEqual([toLog(event, 51_000)]);
    expect(chain.searchedRanges[0]?.from).toBe(60_000);
    expect(starts).toHaveLength(1);
  });

  test("that cannot begin fails, and begins later", async () => {
    const { chain, follow } = setup();
    chain.events = [{ event, block: 60_000 }];
    const findStartBlock = () => Promise.reject(unavailableError("optimism"));
    await expect(follow("a", { findStartBlock })).rejects.toMatchObject(isDown);
    expect(await follow("a")).toHaveLength(1);
  });

  test("without a key is for one alone, and ends with the signal", async () => {
    const { chain, follow, starts } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    const caller = new AbortController();
    const [a, b] = [follow(undefined, {}, caller.signal), follow(undefined)];
    await flushEventLoop();
    expect(starts).toHaveLength(2);
    expect(starts[0]).toBe(caller.signal);
    caller.abort();
    await expect(a).rejects.toMatchObject(isDown);
    chain.beforeResponse = () => {};
    let isOver = false;
    b.finally(() => {
      isOver = true;
    });
    await flushEventLoop();
    expect(isOver).toBe(false);
    // Nothing of it is kept.
    await follow(undefined);
    expect(starts).toHaveLength(3);
  });

  test("waits for its turn while eight others go on, unless it is for one alone or found already", async () => {
    const { chain, follow, starts } = setup();
    chain.events = [{ event, block: 60_000 }];
    const known = await follow("known");
    const held = createDeferred<void>();
    chain.beforeResponse = () => held.promise;
    const eight = Array.from({ length: 8 }, (_, index) => follow(`search ${index}`));
    await flushEventLoop();
    const begun = starts.length;
    const [next, joined] = [follow("ninth"), follow("search 3")];
    await flushEventLoop();
    expect(starts).toHaveLength(begun);
    const alone = follow(undefined);
    await flushEventLoop();
    expect(starts).toHaveLength(begun + 1);
    expect(await follow("known")).toEqual(known);
    held.resolve();
    await Promise.all([...eight, joined, alone]);
    expect(await next).toHaveLength(1);
    expect(starts).toHaveLength(begun + 2);
  });

  test("does not wait for those of another chain, however many hang there", async () => {
    const { chain, follow, closing } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    const hanging = Array.from({ length: 40 }, (_, index) => follow(`search ${index}`));
    for (const each of hanging) each.catch(() => {});
    const well = createTransferChainStub("base");
    well.events = [{ event, block: 60_000 }];
    await flushEventLoop();
    expect(await follow("on base", { client: well.client })).toHaveLength(1);
    closing.abort();
  });

  test("makes room after ten minutes, its wait for a turn included", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { chain, follow, starts } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    const eight = Promise.allSettled(Array.from({ length: 8 }, (_, index) => follow(`search ${index}`)));
    await vi.advanceTimersByTimeAsync(6 * 60_000);
    const next = follow("next");
    let isOver = false;
    const over = next.catch(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(4 * 60_000 - 1);
    expect(starts).toHaveLength(8);
    await vi.advanceTimersByTimeAsync(1);
    expect((await eight).map(({ status }) => status)).toEqual(Array(8).fill("rejected"));
    expect(starts).toHaveLength(9);
    await vi.advanceTimersByTimeAsync(6 * 60_000 - 1);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await over;
    await expect(next).rejects.toMatchObject(isDown);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("makes room when it fails", async () => {
    const { chain, follow } = setup();
    chain.beforeResponse = () => {
      throw unavailableError("arbitrum");
    };
    for (let index = 0; index < 17; index += 1) {
      await expect(follow(`search ${index}`)).rejects.toThrow("arbitrum is down");
    }
  });

  test("ends at the close", async () => {
    const { chain, follow, closing, starts } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    const running = follow("a");
    await flushEventLoop();
    closing.abort();
    await expect(running).rejects.toMatchObject(isDown);
    await expect(follow("b")).rejects.toBeDefined();
    expect(starts.every(({ aborted }) => aborted)).toBe(true);
  });
});
