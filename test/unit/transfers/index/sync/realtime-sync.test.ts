import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { parseBlockHeader } from "../../../../../src/chain/json-rpc/parse-results.js";
import { type FileIndex, useTestIndexes } from "../../../../support/index/open-index.js";
import { type ChainStub, createChainStub, type StubEvent } from "../../../../support/stubs/chain-stub.js";
import { NO_ROWS, readCursor } from "../list/list-harness.js";
import { hashFromName, transferSentEvent, withdrawalBondedEvent, withdrewEvent } from "../support/hop-events.js";
import { createFinalChain, readAllRows, startSync } from "../support/sync-harness.js";

const indexes = useTestIndexes();

/** Syncs Optimism at block 10,000, finalized to 9,900, into a new file unless one is given. */
async function start(file?: string, stub = optimism()) {
  const index = await indexes.open(file);
  const sync = startSync(index, stub);
  onTestFinished(() => sync.stop());
  await sync.waitUntilIdle();
  const coverage = async () => ({
    ...(await index.reader.readCoverage()).get("optimism"),
    toBlock: (await index.store.readCursor(10))?.to_block,
  });
  return { ...sync, index, stub, coverage };
}

const optimism = (): ChainStub => createFinalChain("optimism", 10_000, 9_900);
const sent = (id: string): StubEvent => transferSentEvent(id, { from: "optimism", to: "base" });
const bonded = (id: string): StubEvent => withdrawalBondedEvent(id, { to: "optimism" });
const isIndexed = async ({ reader }: FileIndex, id: string): Promise<boolean> =>
  (await reader.findByTransferId(hashFromName(id))).length > 0;
const areIndexed = (index: FileIndex, ...ids: readonly string[]) => Promise.all(ids.map((id) => isIndexed(index, id)));

/** Hides the blocks and logs after a block, as an endpoint that lags does. Default: none */
function setVisible(stub: ChainStub, lastBlock = Number.POSITIVE_INFINITY): void {
  stub.maxVisibleBlock = lastBlock;
  stub.maxLogBlock = lastBlock;
}

/** Returns the events of a new index that has seen only the present chain. */
async function readEventsOfFreshIndex(stub: ChainStub) {
  stub.finalized = 9_900;
  const { index, ...sync } = await start(undefined, stub);
  await sync.stop();
  return readEvents(index);
}

async function readEvents({ file }: FileIndex) {
  const { sends, deliveries } = await readAllRows(file);
  return { sends, deliveries };
}

describe("the realtime sync", () => {
  test("begins at the newest settled block and indexes everything from there on", async () => {
    const stub = optimism();
    stub.setBlock(9_900, [sent("before")]);
    stub.setBlock(9_901, [sent("a")]);
    stub.setBlock(10_000, [sent("b"), bonded("c")]);
    const { index, coverage } = await start(undefined, stub);
    expect(await coverage()).toEqual({
      fromBlock: 9_901,
      fromTimestamp: 1_700_019_800,
      toBlock: 10_000,
      toTimestamp: 1_700_020_000,
      observedAtMs: 1_800_000_000_000,
      finalizedBlock: 9_900,
    });
    expect(await Promise.all(["before", "a", "b"].map((id) => isIndexed(index, id)))).toEqual([false, true, true]);
    expect(await index.reader.findByTransferId(hashFromName("a"))).toMatchObject([{ isFinal: false }]);
    expect((await readEvents(index)).deliveries).toHaveLength(1);
  });

  test("sends one request per poll without events, and two with events", async () => {
    const { advance, stub, index, coverage } = await start();
    await advance();
    stub.requests.length = 0;
    await advance();
    expect(await coverage()).toMatchObject({ toBlock: 10_000, observedAtMs: 1_800_000_004_000 });
    stub.addBlocks([], []);
    await advance();
    const poll = ["eth_getBlockByNumber", "eth_getLogs", "eth_getBlockByNumber", "eth_getBlockByNumber"];
    expect(stub.requests).toEqual([poll, poll]);
    expect(await coverage()).toMatchObject({ toBlock: 10_002, observedAtMs: 1_800_000_006_000 });
    stub.addBlocks([sent("a")], [bonded("b"), sent("c")]);
    await advance();
    const details = [...Array(3).fill("eth_getTransactionByHash"), ...Array(2).fill("eth_getBlockByHash")];
    expect(stub.requests.slice(2)).toEqual([poll, details]);
    expect(await isIndexed(index, "c")).toBe(true);
    // The overlap is read again without its details.
    await advance();
    expect(stub.requests.slice(4)).toEqual([poll]);
  });

  test("polls once per block, or every 2 s where blocks are faster", async () => {
    const { pauses } = await start();
    expect(pauses).toEqual([2_000]);
    const ethereum = createChainStub({ slug: "ethereum", chainId: 1, head: 1_000 });
    const slow = await start(undefined, ethereum);
    expect(slow.pauses).toEqual([12_000]);
  });

  test("resumes where it stopped, page by page, oldest first", async () => {
    const first = await start();
    await first.stop();
    const { stub, index } = first;
    const ids = Array.from({ length: 30 }, (_, number) => `${number}`);
    for (const id of ids) {
      stub.addBlocks(...Array(300).fill([]));
      stub.addBlocks([sent(id)]);
    }
    stub.finalized = stub.head - 1_000;
    stub.maxLogBlocks = 500;
    stub.requests.length = 0;
    const { coverage } = await start(index.file, stub);
    expect(await Promise.all(ids.map((id) => isIndexed(index, id)))).not.toContain(false);
    expect(await coverage()).toMatchObject({ fromBlock: 9_901, toBlock: stub.head, finalizedBlock: stub.finalized });
    // Final blocks are not read twice.
    expect(stub.requests.filter((calls) => calls[0] === "eth_getLogs").length).toBeLessThan(25);
  });

  test("falls back to pages when a poll covers more blocks than the endpoint accepts", async () => {
    const { advance, stub, index, coverage } = await start();
    await advance();
    stub.maxLogBlocks = 500;
    stub.addBlocks([sent("a")], ...Array(1_500).fill([]));
    await advance();
    await advance();
    expect((await coverage()).toBlock).toBe(stub.head);
    expect(await isIndexed(index, "a")).toBe(true);
  });

  test("doubles its delay after each failure up to a minute, and recovers", async () => {
    const { advance, stub, pauses, errors, index } = await start();
    stub.onRequest = () => {
      throw new Error("down");
    };
    for (let failure = 0; failure < 8; failure++) await advance();
    expect(pauses.slice(1)).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    expect(errors).toHaveLength(8);
    stub.onRequest = () => {};
    stub.addBlocks([sent("a")]);
    await advance();
    expect(await isIndexed(index, "a")).toBe(true);
    expect(pauses.at(-1)).toBe(2_000);
  });
});

describe("with endpoints that lag", () => {
  test("does not treat a head that moves back as a reorg", async () => {
    const { advance, stub, index, reorgs, coverage } = await start();
    stub.addBlocks([sent("a")]);
    await advance();
    setVisible(stub, stub.head - 5);
    await advance();
    await advance();
    expect(reorgs).toEqual([]);
    expect((await coverage()).toBlock).toBe(10_001);
    expect(await isIndexed(index, "a")).toBe(true);
    // The time of observation stays that of the last complete poll.
    expect((await coverage()).observedAtMs).toBe(1_800_000_002_000);
  });

  test("leaves logs beyond the head of the same response for the next poll", async () => {
    const { advance, stub, index, coverage } = await start();
    await advance();
    stub.addBlocks([sent("a")], [sent("b")]);
    stub.maxVisibleBlock = 10_001;
    await advance();
    expect((await coverage()).toBlock).toBe(10_001);
    expect([await isIndexed(index, "a"), await isIndexed(index, "b")]).toEqual([true, false]);
    stub.maxVisibleBlock = Number.POSITIVE_INFINITY;
    await advance();
    expect(await isIndexed(index, "b")).toBe(true);
  });

  test("indexes no page whose blocks the endpoint does not have", async () => {
    const { index, stub, stop } = await start();
    await stop();
    stub.addBlocks(...Array(5_000).fill([]), [sent("a")]);
    let requestCount = 0;
    // The head comes from an endpoint that has it, the logs from one that does not.
    stub.onRequest = () => {
      requestCount += 1;
      setVisible(stub, stub.requests.at(-1)?.includes("eth_getLogs") ? 10_000 : undefined);
    };
    const { errors, coverage, advance } = await start(index.file, stub);
    expect(requestCount).toBeGreaterThan(0);
    expect(errors).toHaveLength(1);
    expect((await coverage()).toBlock).toBe(10_000);
    stub.onRequest = () => {};
    setVisible(stub);
    await advance();
    expect(await isIndexed(index, "a")).toBe(true);
  });

  test("corrects missed and removed events once their blocks are final", async () => {
    const { advance, stub, index, coverage } = await start();
    await advance();
    stub.addBlocks([sent("missed")], [sent("kept")], [sent("removed")]);
    stub.maxLogBlock = 10_000;
    await advance();
    stub.addBlocks(...Array(20).fill([]));
    await advance();
    stub.maxLogBlock = Number.POSITIVE_INFINITY;
    stub.addBlocks([sent("late")]);
    await advance();
    expect(await areIndexed(index, "missed", "kept", "removed", "late")).toEqual([false, false, false, true]);
    // A reorg that no poll has seen.
    stub.setBlock(10_003, []);
    stub.setBlock(10_024, []);
    stub.addBlocks(...Array(100).fill([]));
    stub.finalized = 10_070;
    await advance(60_000);
    // Settled: finalized, and two minutes old.
    expect((await coverage()).finalizedBlock).toBe(10_064);
    expect(await areIndexed(index, "missed", "kept", "removed", "late")).toEqual([true, true, false, false]);
    expect(await index.reader.findByTransferId(hashFromName("kept"))).toMatchObject([{ isFinal: true }]);
  });

  test("corrects events that were missed before a restart", async () => {
    const { advance, stub, index, stop } = await start();
    await advance();
    stub.addBlocks([sent("missed")], ...Array(20).fill([]));
    stub.maxLogBlock = 10_000;
    await advance();
    await stop();
    expect(await isIndexed(index, "missed")).toBe(false);
    stub.maxLogBlock = Number.POSITIVE_INFINITY;
    stub.addBlocks(...Array(5_000).fill([]));
    stub.finalized = stub.head;
    const { coverage } = await start(index.file, stub);
    expect((await coverage()).toBlock).toBe(stub.head);
    expect((await coverage()).finalizedBlock).toBe(stub.head - 60);
    expect(await isIndexed(index, "missed")).toBe(true);
  });

  test("treats blocks older than an hour as final where the chain has no finalized tag", async () => {
    const withoutTag = createChainStub({ slug: "optimism", chainId: 10, head: 10_000 });
    const { advance, stub, coverage } = await start(undefined, withoutTag);
    expect(await coverage()).toMatchObject({ fromBlock: 8_201, finalizedBlock: 8_200 });
    await advance();
    stub.addBlocks(...Array(50).fill([]));
    await advance(60_000);
    expect(await coverage()).toMatchObject({ toBlock: 10_050, finalizedBlock: 10_050 - 1_800 });
  });

  test("keeps the last finalized block when one endpoint does not support the tag", async () => {
    const { advance, stub, coverage, errors, index } = await start();
    stub.finalized = undefined;
    stub.addBlocks(...Array(1_850).fill([]), [sent("a")]);
    await advance(60_000);
    expect(await coverage()).toMatchObject({ toBlock: 11_851, finalizedBlock: 9_900 });
    expect(errors).toEqual([]);
    expect(await isIndexed(index, "a")).toBe(true);
  });

  test("indexes nothing while the finalized block cannot be read", async () => {
    const stub = optimism();
    const { call } = stub;
    stub.call = (method, params) => {
      if (params[0] === "finalized") throw new Error("busy");
      return call(method, params);
    };
    const { advance, coverage, errors } = await start(undefined, stub);
    expect(errors).toHaveLength(1);
    expect((await coverage()).toBlock).toBeUndefined();
    stub.call = call;
    await advance();
    expect(await coverage()).toMatchObject({ toBlock: 10_000, finalizedBlock: 9_900 });
  });

  test("indexes logs that appear later than their block as soon as they appear", async () => {
    const { advance, stub, index } = await start();
    await advance();
    stub.addBlocks([sent("a")]);
    stub.maxLogBlock = 10_000;
    await advance();
    stub.addBlocks([], []);
    await advance();
    expect(await isIndexed(index, "a")).toBe(false);
    stub.maxLogBlock = Number.POSITIVE_INFINITY;
    // No new block is needed.
    await advance();
    expect(await isIndexed(index, "a")).toBe(true);
  });

  test("reports a chain that stays shorter than the index, once each time", async () => {
    const { advance, stub, errors } = await start();
    stub.addBlocks([], []);
    await advance();
    for (let time = 1; time <= 2; time++) {
      stub.maxVisibleBlock = 10_001;
      await advance();
      await advance(30_000);
      expect(errors).toHaveLength(time - 1);
      for (let tickAfter = 0; tickAfter < 3; tickAfter++) await advance(60_000);
      expect(errors).toHaveLength(time);
      expect(errors.at(-1)).toMatchObject({ message: "optimism has fewer blocks than the index" });
      stub.maxVisibleBlock = Number.POSITIVE_INFINITY;
      await advance();
    }
  });
});

describe("reorgs", () => {
  const depths = Array.from({ length: 20 }, (_, index) => index + 1);

  test.each(depths)("of %i blocks replace, remove, add and keep events correctly", async (depth) => {
    const { advance, stub, index, reorgs, coverage } = await start();
    for (let block = 0; block < 25; block++) {
      stub.addBlocks([sent(`${depth}-${block}`), bonded(`${depth}-${block}`)]);
      // Some polls cover several blocks.
      if (block % 3 === 0) await advance();
    }
    await advance();
    const removed = Array.from({ length: depth }, (_, index) => `${depth}-${25 - depth + index}`);
    const blocks = removed.map((id, index) => {
      if (index % 3 === 0) return [sent(`${id}-new`)];
      return index % 3 === 1 ? [] : [bonded(`${id}-first`), sent(id)];
    });
    stub.reorg(depth, ...blocks, [sent("after")]);
    await advance();
    expect(reorgs).toHaveLength(1);
    expect(reorgs[0]).toBeGreaterThanOrEqual(depth);
    expect((await coverage()).toBlock).toBe(stub.head);
    expect(await readEvents(index)).toEqual(await readEventsOfFreshIndex(stub));
  });

  test("leave the index shorter until the blocks have been read again", async () => {
    const { advance, stub, index, coverage } = await start();
    stub.addBlocks([]);
    await advance();
    stub.addBlocks([sent("a")]);
    await advance();
    stub.reorg(1, [sent("b")]);
    let requests = 0;
    stub.onRequest = () => {
      requests += 1;
      // The poll sees the reorg, the next request finds the ancestor, and then the endpoint goes down.
      if (requests > 2) throw new Error("down");
    };
    await advance();
    expect(await coverage()).toMatchObject({ toBlock: 10_001, observedAtMs: (1_700_000_000 + 10_001 * 2) * 1_000 });
    expect(await isIndexed(index, "a")).toBe(false);
  });

  test("to a shorter chain are detected once it has grown", async () => {
    const { advance, stub, index, reorgs } = await start();
    stub.addBlocks([sent("a")], [sent("b")], [sent("c")]);
    await advance();
    stub.reorg(3, [sent("d")]);
    await advance();
    expect(reorgs).toEqual([]);
    stub.addBlocks([], [], [sent("a")]);
    await advance();
    await advance();
    expect(reorgs).toEqual([3]);
    expect(await readEvents(index)).toEqual(await readEventsOfFreshIndex(stub));
  });

  test("below final blocks are not followed: the endpoint is on another chain", async () => {
    const { advance, stub, index, errors } = await start();
    stub.addBlocks([sent("a")]);
    await advance();
    stub.reorg(200, ...Array(300).fill([]));
    await advance();
    expect(errors).toMatchObject([{ reason: "UPSTREAM_UNAVAILABLE" }]);
    expect(await isIndexed(index, "a")).toBe(true);
  });

  /** Replaces the newest block after the first call of a method, so that one batch returns data of two chains. */
  function reorgAfter(stub: ChainStub, method: string, ...blocks: readonly (readonly StubEvent[])[]): void {
    const { call } = stub;
    stub.call = (calledMethod, params) => {
      const result = call(calledMethod, params);
      if (calledMethod === method) {
        stub.call = call;
        stub.reorg(1, ...blocks);
      }
      return result;
    };
  }

  test("between the responses of a poll make it fail when the blocks contradict each other", async () => {
    const { advance, stub, index, errors } = await start();
    await advance();
    stub.addBlocks([sent("gone")]);
    reorgAfter(stub, "eth_getBlockByNumber", [sent("new")]);
    await advance();
    expect(errors).toMatchObject([{ reason: "UPSTREAM_UNAVAILABLE" }]);
    await advance();
    expect([await isIndexed(index, "gone"), await isIndexed(index, "new")]).toEqual([false, true]);
    expect(await readEvents(index)).toEqual(await readEventsOfFreshIndex(stub));
  });

  test("between the responses of a poll are otherwise detected by the details of its events", async () => {
    const { advance, stub, index, errors } = await start();
    await advance();
    stub.addBlocks([]);
    await advance();
    stub.addBlocks([withdrewEvent("gone", { to: "optimism" })]);
    reorgAfter(stub, "eth_getLogs", [], []);
    await advance();
    expect(errors).toHaveLength(1);
    expect((await readEvents(index)).deliveries).toHaveLength(0);
    await advance();
    await advance();
    expect(await readEvents(index)).toEqual(await readEventsOfFreshIndex(stub));
  });

  test("below the last block are followed as well", async () => {
    const { advance, stub, index, reorgs, coverage } = await start();
    await advance();
    stub.addBlocks([sent("gone")]);
    await advance();
    stub.reorg(1, [sent("new")], []);
    // The state after a poll whose block responses came from two chains.
    const latest = await stub.client.send("eth_getBlockByNumber", ["latest"], new AbortController().signal);
    const to = parseBlockHeader(stub.client, latest);
    if (to === undefined) throw new Error("no head");
    await index.store.advance(await readCursor(index, 10), NO_ROWS, { to, isFinal: false, observedAtMs: 0 });
    await advance();
    await advance();
    expect(reorgs).toEqual([2]);
    expect((await coverage()).toBlock).toBe(10_002);
    expect(await readEvents(index)).toEqual(await readEventsOfFreshIndex(stub));
  });

  test("and any other sequence of events end in the same index as a fresh sync", async () => {
    const event = fc.nat(30).map((id) => (id % 2 === 0 ? sent(`p${id}`) : bonded(`p${id}`)));
    const blocks = fc.array(fc.array(event, { maxLength: 3 }), { maxLength: 6 });
    const step = fc.oneof(
      fc.record({ kind: fc.constant("add" as const), added: blocks }),
      fc.record({ kind: fc.constant("reorg" as const), depth: fc.integer({ min: 1, max: 20 }), added: blocks }),
      fc.record({ kind: fc.constant("lag" as const), behind: fc.nat(4) }),
      fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(2_000, 60_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { index, stub, coverage, ...sync } = await start();
        for (const each of steps) {
          if (each.kind === "add") stub.addBlocks(...each.added);
          if (each.kind === "reorg") stub.reorg(Math.min(each.depth, stub.head - 9_960), ...each.added);
          if (each.kind === "lag") setVisible(stub, stub.head - each.behind);
          if (each.kind === "wait") await sync.advance(each.ms);
        }
        setVisible(stub);
        // Everything becomes final.
        stub.addBlocks(...Array(300).fill([]));
        stub.finalized = stub.head - 100;
        for (let tick = 0; tick < 12; tick++) await sync.advance(60_000);
        expect(await coverage()).toMatchObject({ toBlock: stub.head, finalizedBlock: stub.finalized });
        await sync.stop();
        expect(await readEvents(index)).toEqual(await readEventsOfFreshIndex(stub));
      }),
      { numRuns: 40 },
    );
  });
});
