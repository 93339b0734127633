import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { headerIn } from "../../../../../src/chain/json-rpc/parse-results.js";
import { type OpenIndex, openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { type ChainStub, createChainStub, type StubEvent } from "../../../../support/stubs/chain-stub.js";
import { temporaryFolder } from "../../../../support/temporary-folder.js";
import { hashOf, mainnet, transferSent, withdrawalBonded, withdrew } from "../support/hop-events.js";
import { contentsOf, type Following, follow } from "../support/sync-harness.js";

const folder = temporaryFolder();
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

let files = 0;
async function openNew(file = `${folder()}/index-${files++}`): Promise<OpenIndex> {
  const index = await openIndex(file, mainnet);
  ends.push(() => index.close());
  return index;
}

/** Optimism at block 10,000, final to 9,900, followed on a new file unless there is one. */
async function start(file?: string, stub = optimism()) {
  const index = await openNew(file);
  const following = follow(index, stub);
  ends.push(() => following.stop());
  await following.idle();
  const coverage = async () => ({
    ...index.reader.coverage("optimism"),
    to: (await index.store.cursor(10))?.to_block,
  });
  return { ...following, index, stub, coverage };
}

function optimism(): ChainStub {
  const stub = createChainStub({ slug: "optimism", chainId: 10, head: 10_000 });
  stub.finalized = 9_900;
  return stub;
}

const sent = (id: string): StubEvent => transferSent(id, { from: "optimism", to: "base" });
const bonded = (id: string): StubEvent => withdrawalBonded(id, { to: "optimism" });
const isThere = ({ reader }: OpenIndex, id: string): boolean => reader.byTransferId(hashOf(id)).length > 0;

/** What an index holds that has seen nothing but the chain as it is now. */
async function clean(stub: ChainStub) {
  stub.finalized = 9_900;
  const { index, ...following } = await start(undefined, stub);
  await following.stop();
  return eventsOf(index);
}

async function eventsOf({ file }: OpenIndex) {
  const { sends, deliveries } = await contentsOf(file);
  return { sends, deliveries };
}

describe("an index that follows a chain", () => {
  test("begins at the newest block that nothing can undo, and takes all from there on", async () => {
    const stub = optimism();
    stub.put(9_900, [sent("before")]);
    stub.put(9_901, [sent("a")]);
    stub.put(10_000, [sent("b"), bonded("c")]);
    const { index, coverage } = await start(undefined, stub);
    expect(await coverage()).toEqual({
      from: 9_901,
      fromTimestamp: 1_700_019_800,
      to: 10_000,
      observedAt: 1_800_000_000_000,
      finalTo: 9_900,
    });
    expect(["before", "a", "b"].map((id) => isThere(index, id))).toEqual([false, true, true]);
    expect(index.reader.byTransferId(hashOf("a"))).toMatchObject([{ isFinal: false }]);
    expect((await eventsOf(index)).deliveries).toHaveLength(1);
  });

  test("asks once a poll when nothing happened, twice when something did", async () => {
    const { tick, stub, index, coverage } = await start();
    await tick();
    stub.requests.length = 0;
    await tick();
    expect(await coverage()).toMatchObject({ to: 10_000, observedAt: 1_800_000_004_000 });
    stub.grow([], []);
    await tick();
    const poll = ["eth_getBlockByNumber", "eth_getLogs", "eth_getBlockByNumber", "eth_getBlockByNumber"];
    expect(stub.requests).toEqual([poll, poll]);
    expect(await coverage()).toMatchObject({ to: 10_002, observedAt: 1_800_000_006_000 });
    stub.grow([sent("a")], [bonded("b"), sent("c")]);
    await tick();
    const facts = [...Array(3).fill("eth_getTransactionByHash"), ...Array(2).fill("eth_getBlockByHash")];
    expect(stub.requests.slice(2)).toEqual([poll, facts]);
    expect(isThere(index, "c")).toBe(true);
    // What is read again is not asked for again.
    await tick();
    expect(stub.requests.slice(4)).toEqual([poll]);
  });

  test("looks every block, or every 2 s where blocks are faster", async () => {
    const { pauses } = await start();
    expect(pauses).toEqual([2_000]);
    const ethereum = createChainStub({ slug: "ethereum", chainId: 1, head: 1_000 });
    const slow = await start(undefined, ethereum);
    expect(slow.pauses).toEqual([12_000]);
  });

  test("goes on where it ended, in pages, oldest first", async () => {
    const first = await start();
    await first.stop();
    const { stub, index } = first;
    const ids = Array.from({ length: 30 }, (_, number) => `${number}`);
    for (const id of ids) {
      stub.grow(...Array(300).fill([]));
      stub.grow([sent(id)]);
    }
    stub.finalized = stub.head - 1_000;
    stub.maxLogBlocks = 500;
    stub.requests.length = 0;
    const { coverage } = await start(index.file, stub);
    expect(ids.filter((id) => !isThere(index, id))).toEqual([]);
    expect(await coverage()).toMatchObject({ from: 9_901, to: stub.head, finalTo: stub.finalized });
    // What is final is not read twice.
    expect(stub.requests.filter((calls) => calls[0] === "eth_getLogs").length).toBeLessThan(25);
  });

  test("falls back to pages when more has been missed than an endpoint gives at once", async () => {
    const { tick, stub, index, coverage } = await start();
    await tick();
    stub.maxLogBlocks = 500;
    stub.grow([sent("a")], ...Array(1_500).fill([]));
    await tick();
    await tick();
    expect((await coverage()).to).toBe(stub.head);
    expect(isThere(index, "a")).toBe(true);
  });

  test("waits longer after each failure, up to a minute, and goes on afterwards", async () => {
    const { tick, stub, pauses, troubles, index } = await start();
    stub.onRequest = () => {
      throw new Error("down");
    };
    for (let failure = 0; failure < 8; failure++) await tick();
    expect(pauses.slice(1)).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    expect(troubles).toHaveLength(8);
    stub.onRequest = () => {};
    stub.grow([sent("a")]);
    await tick();
    expect(isThere(index, "a")).toBe(true);
    expect(pauses.at(-1)).toBe(2_000);
  });
});

describe("endpoints that are behind", () => {
  test("a head that goes back is no reorg", async () => {
    const { tick, stub, index, reorgs, coverage } = await start();
    stub.grow([sent("a")]);
    await tick();
    stub.knowsUpTo = stub.head - 5;
    stub.logsUpTo = stub.knowsUpTo;
    await tick();
    await tick();
    expect(reorgs).toEqual([]);
    expect((await coverage()).to).toBe(10_001);
    expect(isThere(index, "a")).toBe(true);
    // What is not seen does not count as seen now.
    expect((await coverage()).observedAt).toBe(1_800_000_002_000);
  });

  test("logs beyond the head of the same answer are left for the next one", async () => {
    const { tick, stub, index, coverage } = await start();
    await tick();
    stub.grow([sent("a")], [sent("b")]);
    stub.knowsUpTo = 10_001;
    await tick();
    expect((await coverage()).to).toBe(10_001);
    expect([isThere(index, "a"), isThere(index, "b")]).toEqual([true, false]);
    stub.knowsUpTo = Number.POSITIVE_INFINITY;
    await tick();
    expect(isThere(index, "b")).toBe(true);
  });

  test("of blocks that the endpoint does not have nothing is believed, neither forwards", async () => {
    const { index, stub, stop } = await start();
    await stop();
    stub.grow(...Array(5_000).fill([]), [sent("a")]);
    let asked = 0;
    // The head comes from one that has it, the logs from one that does not.
    stub.onRequest = () => {
      asked += 1;
      stub.knowsUpTo = stub.requests.at(-1)?.includes("eth_getLogs") ? 10_000 : Number.POSITIVE_INFINITY;
      stub.logsUpTo = stub.knowsUpTo;
    };
    const { troubles, coverage, tick } = await start(index.file, stub);
    expect(asked).toBeGreaterThan(0);
    expect(troubles).toHaveLength(1);
    expect((await coverage()).to).toBe(10_000);
    stub.onRequest = () => {};
    stub.knowsUpTo = Number.POSITIVE_INFINITY;
    stub.logsUpTo = Number.POSITIVE_INFINITY;
    await tick();
    expect(isThere(index, "a")).toBe(true);
  });

  test("what was missed, or was not so, is put right once it is final", async () => {
    const { tick, stub, index, coverage } = await start();
    await tick();
    stub.grow([sent("missed")], [sent("kept")], [sent("undone")]);
    stub.logsUpTo = 10_000;
    await tick();
    stub.grow(...Array(20).fill([]));
    await tick();
    stub.logsUpTo = Number.POSITIVE_INFINITY;
    stub.grow([sent("late")]);
    await tick();
    expect(["missed", "kept", "undone", "late"].map((id) => isThere(index, id))).toEqual([false, false, false, true]);
    // Undone by a reorg that no poll has seen.
    stub.put(10_003, []);
    stub.put(10_024, []);
    stub.grow(...Array(100).fill([]));
    stub.finalized = 10_070;
    await tick(60_000);
    // Settled: final, and two minutes old.
    expect((await coverage()).finalTo).toBe(10_064);
    expect(["missed", "kept", "undone", "late"].map((id) => isThere(index, id))).toEqual([true, true, false, false]);
    expect(index.reader.byTransferId(hashOf("kept"))).toMatchObject([{ isFinal: true }]);
  });

  test("also what was missed before a stop", async () => {
    const { tick, stub, index, stop } = await start();
    await tick();
    stub.grow([sent("missed")], ...Array(20).fill([]));
    stub.logsUpTo = 10_000;
    await tick();
    await stop();
    expect(isThere(index, "missed")).toBe(false);
    stub.logsUpTo = Number.POSITIVE_INFINITY;
    stub.grow(...Array(5_000).fill([]));
    stub.finalized = stub.head;
    const { coverage } = await start(index.file, stub);
    expect((await coverage()).to).toBe(stub.head);
    expect((await coverage()).finalTo).toBe(stub.head - 60);
    expect(isThere(index, "missed")).toBe(true);
  });

  test("where the chain does not know what is final, an hour counts as final", async () => {
    const unknowing = createChainStub({ slug: "optimism", chainId: 10, head: 10_000 });
    const { tick, stub, coverage } = await start(undefined, unknowing);
    expect(await coverage()).toMatchObject({ from: 8_201, finalTo: 8_200 });
    await tick();
    stub.grow(...Array(50).fill([]));
    await tick(60_000);
    expect(await coverage()).toMatchObject({ to: 10_050, finalTo: 10_050 - 1_800 });
  });

  test("an endpoint that does not know it says nothing of a chain that has said it", async () => {
    const { tick, stub, coverage, troubles, index } = await start();
    stub.finalized = undefined;
    stub.grow(...Array(1_850).fill([]), [sent("a")]);
    await tick(60_000);
    expect(await coverage()).toMatchObject({ to: 11_851, finalTo: 9_900 });
    expect(troubles).toEqual([]);
    expect(isThere(index, "a")).toBe(true);
  });

  test("nothing counts as final where the question for it fails", async () => {
    const stub = optimism();
    const { answer } = stub;
    stub.answer = (method, params) => {
      if (params[0] === "finalized") throw new Error("busy");
      return answer(method, params);
    };
    const { tick, coverage, troubles } = await start(undefined, stub);
    expect(troubles).toHaveLength(1);
    expect((await coverage()).to).toBeUndefined();
    stub.answer = answer;
    await tick();
    expect(await coverage()).toMatchObject({ to: 10_000, finalTo: 9_900 });
  });

  test("logs that come later than their block are taken as soon as they are there", async () => {
    const { tick, stub, index } = await start();
    await tick();
    stub.grow([sent("a")]);
    stub.logsUpTo = 10_000;
    await tick();
    stub.grow([], []);
    await tick();
    expect(isThere(index, "a")).toBe(false);
    stub.logsUpTo = Number.POSITIVE_INFINITY;
    // Whether there is a new block or not.
    await tick();
    expect(isThere(index, "a")).toBe(true);
  });

  test("a chain that stays shorter than the index is told of, once each time", async () => {
    const { tick, stub, troubles } = await start();
    stub.grow([], []);
    await tick();
    for (let time = 1; time <= 2; time++) {
      stub.knowsUpTo = 10_001;
      await tick();
      await tick(30_000);
      expect(troubles).toHaveLength(time - 1);
      for (let tickAfter = 0; tickAfter < 3; tickAfter++) await tick(60_000);
      expect(troubles).toHaveLength(time);
      expect(troubles.at(-1)).toMatchObject({ message: "optimism has fewer blocks than before" });
      stub.knowsUpTo = Number.POSITIVE_INFINITY;
      await tick();
    }
  });
});

describe("reorgs", () => {
  const depths = Array.from({ length: 20 }, (_, index) => index + 1);

  test.each(depths)("of %i blocks, with events that moved, went, came and stayed", async (depth) => {
    const { tick, stub, index, reorgs, coverage } = await start();
    for (let block = 0; block < 25; block++) {
      stub.grow([sent(`${depth}-${block}`), bonded(`${depth}-${block}`)]);
      // Some polls take several blocks.
      if (block % 3 === 0) await tick();
    }
    await tick();
    const undone = Array.from({ length: depth }, (_, place) => `${depth}-${25 - depth + place}`);
    const blocks = undone.map((id, place) => {
      if (place % 3 === 0) return [sent(`${id}-new`)];
      return place % 3 === 1 ? [] : [bonded(`${id}-first`), sent(id)];
    });
    stub.reorg(depth, ...blocks, [sent("after")]);
    await tick();
    expect(reorgs).toHaveLength(1);
    expect(reorgs[0]).toBeGreaterThanOrEqual(depth);
    expect((await coverage()).to).toBe(stub.head);
    expect(await eventsOf(index)).toEqual(await clean(stub));
  });

  test("leave less known until it has been read again", async () => {
    const { tick, stub, index, coverage } = await start();
    stub.grow([]);
    await tick();
    stub.grow([sent("a")]);
    await tick();
    stub.reorg(1, [sent("b")]);
    let requests = 0;
    stub.onRequest = () => {
      requests += 1;
      // The poll sees it, the next request finds the fork, and then there is silence.
      if (requests > 2) throw new Error("down");
    };
    await tick();
    expect(await coverage()).toMatchObject({ to: 10_001, observedAt: (1_700_000_000 + 10_001 * 2) * 1_000 });
    expect(isThere(index, "a")).toBe(false);
  });

  test("to a shorter chain are seen when it has grown", async () => {
    const { tick, stub, index, reorgs } = await start();
    stub.grow([sent("a")], [sent("b")], [sent("c")]);
    await tick();
    stub.reorg(3, [sent("d")]);
    await tick();
    expect(reorgs).toEqual([]);
    stub.grow([], [], [sent("a")]);
    await tick();
    await tick();
    expect(reorgs).toEqual([3]);
    expect(await eventsOf(index)).toEqual(await clean(stub));
  });

  test("below what was final are not followed: the endpoint is on another chain", async () => {
    const { tick, stub, index, troubles } = await start();
    stub.grow([sent("a")]);
    await tick();
    stub.reorg(200, ...Array(300).fill([]));
    await tick();
    expect(troubles).toMatchObject([{ reason: "UPSTREAM_UNAVAILABLE" }]);
    expect(isThere(index, "a")).toBe(true);
  });

  /** Undoes the newest block when a call of that kind has been answered, so that the answers are of two chains. */
  function reorgAfter(stub: ChainStub, method: string, ...blocks: readonly (readonly StubEvent[])[]): void {
    const { answer } = stub;
    stub.answer = (asked, params) => {
      const answered = answer(asked, params);
      if (asked === method) {
        stub.answer = answer;
        stub.reorg(1, ...blocks);
      }
      return answered;
    };
  }

  test("between the answers of a poll, to another block, are no reason to believe either", async () => {
    const { tick, stub, index, troubles } = await start();
    await tick();
    stub.grow([sent("gone")]);
    reorgAfter(stub, "eth_getBlockByNumber", [sent("new")]);
    await tick();
    expect(troubles).toMatchObject([{ reason: "UPSTREAM_UNAVAILABLE" }]);
    await tick();
    expect([isThere(index, "gone"), isThere(index, "new")]).toEqual([false, true]);
    expect(await eventsOf(index)).toEqual(await clean(stub));
  });

  test("between the answers of a poll are seen by the next one, wherever the last block comes from", async () => {
    const { tick, stub, index, reorgs } = await start();
    await tick();
    stub.grow([]);
    await tick();
    // Nothing more is asked about such an event.
    stub.grow([withdrew("gone", { to: "optimism" })]);
    reorgAfter(stub, "eth_getLogs", [], []);
    await tick();
    expect((await eventsOf(index)).deliveries).toHaveLength(1);
    await tick();
    expect(reorgs).toHaveLength(1);
    expect(await eventsOf(index)).toEqual(await clean(stub));
  });

  test("below the last block are followed as well", async () => {
    const { tick, stub, index, reorgs, coverage } = await start();
    await tick();
    stub.grow([sent("gone")]);
    await tick();
    stub.reorg(1, [sent("new")], []);
    // As a poll leaves it whose answers about blocks were of two chains.
    const [cursor, known] = [
      await index.store.cursor(10),
      await stub.client.send("eth_getBlockByNumber", ["latest"], new AbortController().signal),
    ];
    if (cursor === undefined) throw new Error("no cursor");
    const to = headerIn(stub.client, known);
    if (to === undefined) throw new Error("no head");
    await index.store.advance(cursor, { sends: [], deliveries: [] }, { to, isFinal: false, observedAt: 0 });
    await tick();
    await tick();
    expect(reorgs).toEqual([2]);
    expect((await coverage()).to).toBe(10_002);
    expect(await eventsOf(index)).toEqual(await clean(stub));
  });

  test("and all else that happens to a chain leave nothing wrong behind", async () => {
    const event = fc.nat(30).map((id) => (id % 2 === 0 ? sent(`p${id}`) : bonded(`p${id}`)));
    const blocks = fc.array(fc.array(event, { maxLength: 3 }), { maxLength: 6 });
    const step = fc.oneof(
      blocks.map(
        (some) =>
          ({ stub }: Run) =>
            stub.grow(...some),
      ),
      fc.tuple(fc.integer({ min: 1, max: 20 }), blocks).map(
        ([depth, some]) =>
          ({ stub }: Run) =>
            stub.reorg(Math.min(depth, stub.head - 9_960), ...some),
      ),
      fc.nat(4).map((behind) => ({ stub }: Run) => {
        stub.knowsUpTo = stub.head - behind;
        stub.logsUpTo = stub.head - behind;
      }),
      fc.constantFrom(2_000, 60_000).map(
        (ms) =>
          ({ following }: Run) =>
            following.tick(ms),
      ),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { index, stub, coverage, ...following } = await start();
        for (const run of steps) await run({ stub, following });
        stub.knowsUpTo = Number.POSITIVE_INFINITY;
        stub.logsUpTo = Number.POSITIVE_INFINITY;
        // All of it becomes final.
        stub.grow(...Array(300).fill([]));
        stub.finalized = stub.head - 100;
        for (let tick = 0; tick < 12; tick++) await following.tick(60_000);
        expect(await coverage()).toMatchObject({ to: stub.head, finalTo: stub.finalized });
        await following.stop();
        expect(await eventsOf(index)).toEqual(await clean(stub));
      }),
      { numRuns: 40 },
    );
  });
});

interface Run {
  readonly stub: ChainStub;
  readonly following: Pick<Following, "tick">;
}
