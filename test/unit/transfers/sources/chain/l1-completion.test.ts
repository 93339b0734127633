import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { decodeReceivedEvent } from "../../../../../src/hop/transfer-events.js";
import {
  type EqualTransferGroup,
  findL1Completion,
  findSendOfL1Completion,
} from "../../../../../src/transfers/sources/chain/l1-completion.js";
import {
  type ChainEvent,
  createChainAccess,
  createLookupContext,
  createTransferChainStub,
  flushEventLoop,
  getChain,
  type TransferChainStub,
  toLog,
} from "../../../../support/stubs/transfer-fixtures.js";
import { mainnetNetwork, transferFromL1CompletedEvent, transferSentToL2Event } from "../../index/support/hop-events.js";
import { createSearch } from "./search-fixtures.js";

const contracts = new ContractRegistry(mainnetNetwork);
const to = "arbitrum";
const unavailable = { reason: "UPSTREAM_UNAVAILABLE" };
const BLOCKS_PER_DAY = 24 * 3600;

/** Returns the event with another amount, which is the first word of its data. */
const withAnotherAmount = (event: ChainEvent): ChainEvent => ({
  ...event,
  data: `0x${"0".repeat(63)}1${event.data.slice(66)}`,
});

/** Adds the events of a block, which the chain does not return in their order. */
function add(chain: TransferChainStub, block: number, events: readonly ChainEvent[], firstIndex = 0): void {
  chain.events.push(...events.map((event, at) => ({ event, block, index: firstIndex + at })).reverse());
}

/** Two chains with transfers of equal values, and functions to add and find them. */
function setup({
  sourceMaxLogBlocks = Number.POSITIVE_INFINITY,
  destinationMaxLogBlocks = Number.POSITIVE_INFINITY,
} = {}) {
  const head = 20 * BLOCKS_PER_DAY;
  const source = createTransferChainStub("ethereum", { maxLogBlocks: sourceMaxLogBlocks, head });
  const destination = createTransferChainStub(to, { maxLogBlocks: destinationMaxLogBlocks, head });
  const { caches, toSearch } = createSearch();
  const values = decodeReceivedEvent(toLog(transferFromL1CompletedEvent("equal", "any", { to }), 1));
  if (values?.kind !== "l1") throw new Error("no completion");
  const group: EqualTransferGroup = {
    source: getChain("ethereum"),
    destination: getChain(to),
    sourceBridge: contracts.findBridge("ETH", getChain("ethereum")) ?? "",
    destinationBridge: contracts.findBridge("ETH", getChain(to)) ?? "",
    values,
  };
  const searchWith = (custom: readonly string[] = []) =>
    toSearch(createLookupContext({ chains: createChainAccess([source, destination], custom) }));
  return {
    source,
    destination,
    caches,
    /** Adds a send to each of these blocks of L1, along with sends whose values differ. */
    send(...blocks: number[]): void {
      for (const block of blocks) {
        const less = withAnotherAmount(transferSentToL2Event("equal", `less ${block}`, { to }));
        const other = transferSentToL2Event("other", `other ${block}`, { to });
        const event = transferSentToL2Event("equal", `send ${block}`, { to });
        const elsewhere = transferSentToL2Event("equal", `elsewhere ${block}`, { to: "base" });
        add(source, block, [less, other, event, elsewhere]);
      }
    },
    complete(...blocks: number[]): void {
      for (const block of blocks) {
        const less = withAnotherAmount(transferFromL1CompletedEvent("equal", `less ${block}`, { to }));
        const other = transferFromL1CompletedEvent("other", `other ${block}`, { to });
        add(destination, block, [less, other, transferFromL1CompletedEvent("equal", `completion ${block}`, { to })], 2);
      }
    },
    /** Returns the block of the completion of the send in a block. */
    async findCompletionBlock(block: number, { custom = [] as readonly string[], logIndex = 2 } = {}) {
      const { transactionHash } = transferSentToL2Event("equal", `send ${block}`, { to });
      const position = { transactionHash, blockNumber: block, logIndex };
      const sentAt = Promise.resolve(source.timestampOf(block));
      return (await findL1Completion(group, position, sentAt, searchWith(custom)))?.blockNumber;
    },
    /** Returns the block of the send of the completion in a block. */
    async findSendBlock(block: number, logIndex = 4) {
      const log = toLog(transferFromL1CompletedEvent("equal", `completion ${block}`, { to }), block, logIndex);
      const readTime = async () => destination.timestampOf(block);
      return (await findSendOfL1Completion(group, log, readTime, searchWith()))?.blockNumber;
    },
  };
}

const endpointLimits = [
  ["whole chains", {}],
  ["a part of the source", { sourceMaxLogBlocks: 3_000 }],
  ["a part of the destination", { destinationMaxLogBlocks: 3_000 }],
  ["parts of both", { sourceMaxLogBlocks: 5_000, destinationMaxLogBlocks: 2_000 }],
] as const;

describe.each(endpointLimits)("with endpoints that search %s", (_, maxLogBlocks) => {
  const day = 12 * BLOCKS_PER_DAY;

  test("finds a completion that appears after the first lookup", async () => {
    const { send, complete, findCompletionBlock } = setup(maxLogBlocks);
    const recent = 20 * BLOCKS_PER_DAY - 2_000;
    send(recent, recent + 1);
    expect(await findCompletionBlock(recent)).toBeUndefined();
    complete(recent + 500);
    expect(await findCompletionBlock(recent)).toBe(recent + 500);
    expect(await findCompletionBlock(recent + 1)).toBeUndefined();
    complete(recent + 501);
    expect(await findCompletionBlock(recent + 1)).toBe(recent + 501);
  });

  test("is not affected by an equal transfer of long ago", async () => {
    const { send, complete, findCompletionBlock, findSendBlock } = setup(maxLogBlocks);
    send(3 * BLOCKS_PER_DAY, day);
    complete(3 * BLOCKS_PER_DAY + 900, day + 900);
    expect(await findCompletionBlock(day)).toBe(day + 900);
    expect(await findSendBlock(day + 900)).toBe(day);
  });

  test("is unavailable while the source's logs lack the send", async () => {
    const { send, findCompletionBlock, complete } = setup(maxLogBlocks);
    send(day - 50);
    complete(day + 50);
    const message = expect.stringContaining("ethereum");
    await expect(findCompletionBlock(day)).rejects.toMatchObject({ ...unavailable, message });
  });

  test("is unavailable while the destination's logs lack the completion", async () => {
    const { send, findSendBlock } = setup(maxLogBlocks);
    send(day);
    const message = expect.stringContaining(to);
    await expect(findSendBlock(day + 50)).rejects.toMatchObject({ ...unavailable, message });
  });

  test("tells equal sends of one transaction apart by their logs", async () => {
    const { send, complete, source, findCompletionBlock } = setup(maxLogBlocks);
    send(day);
    source.events.push({ event: transferSentToL2Event("equal", `send ${day}`, { to }), block: day, index: 9 });
    complete(day + 700, day + 800);
    expect(await findCompletionBlock(day)).toBe(day + 700);
    expect(await findCompletionBlock(day, { logIndex: 9 })).toBe(day + 800);
  });

  test("tells equal completions of one transaction apart by their logs", async () => {
    const { send, complete, destination, findSendBlock } = setup(maxLogBlocks);
    send(day, day + 100);
    complete(day + 700);
    const event = transferFromL1CompletedEvent("equal", `completion ${day + 700}`, { to });
    destination.events.push({ event, block: day + 700, index: 9 });
    expect(await findSendBlock(day + 700)).toBe(day);
    expect(await findSendBlock(day + 700, 9)).toBe(day + 100);
  });

  test("ignores logs that cannot be decoded", async () => {
    const { send, complete, source, destination, findCompletionBlock, findSendBlock } = setup(maxLogBlocks);
    const broken = { data: "0x" };
    source.events.push({ event: { ...transferSentToL2Event("equal", "broken", { to }), ...broken }, block: day - 9 });
    const completion = { ...transferFromL1CompletedEvent("equal", "broken", { to }), ...broken };
    destination.events.push({ event: completion, block: day + 600 });
    send(day);
    complete(day + 700);
    expect(await findCompletionBlock(day)).toBe(day + 700);
    expect(await findSendBlock(day + 700)).toBe(day);
  });

  test("matches any ordered sends and completions", async () => {
    const step = fc.record({ gap: fc.integer({ min: 1, max: 9_000 }), transit: fc.integer({ min: 300, max: 4_000 }) });
    const gaps = fc.array(step, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(gaps, fc.nat(4), async (steps, missing) => {
        const { send, complete, findCompletionBlock, findSendBlock } = setup(maxLogBlocks);
        let [sentAt, completedAt] = [day, 0];
        const pairs = steps.map(({ gap, transit }) => {
          sentAt += gap;
          completedAt = Math.max(completedAt + 1, sentAt + transit);
          return [sentAt, completedAt] as const;
        });
        const completed = pairs.slice(0, Math.max(0, pairs.length - missing));
        send(...pairs.map(([block]) => block));
        complete(...completed.map(([, block]) => block));
        for (const [index, [sent]] of pairs.entries())
          expect(await findCompletionBlock(sent)).toBe(completed[index]?.[1]);
        for (const [sent, completion] of completed) expect(await findSendBlock(completion)).toBe(sent);
      }),
      { numRuns: 15 },
    );
  });
});

describe("a search for the completion", () => {
  const day = 12 * BLOCKS_PER_DAY;

  test("sends one log request per chain when whole chains are searched", async () => {
    const { send, complete, findCompletionBlock, source, destination } = setup();
    send(day);
    complete(day + 900);
    await findCompletionBlock(day);
    expect([...source.methods, ...destination.methods]).toEqual(["eth_getLogs", "eth_getLogs"]);
  });

  test("searches back a week on L1, and no further", async () => {
    const { send, findCompletionBlock, source } = setup({ sourceMaxLogBlocks: 50_000 });
    send(day);
    await findCompletionBlock(day);
    const first = Math.min(...source.searchedRanges.map(({ from }) => from));
    expect(first).toBeLessThanOrEqual(day - 7 * BLOCKS_PER_DAY);
    expect(first).toBeGreaterThan(day - 7 * BLOCKS_PER_DAY - 1_001);
  });

  // The newest page has the blocks from 2,999 before the event to the event.
  test.each([2_998, 2_999, 3_000, 3_001])("counts an equal transfer %d blocks earlier once", async (distance) => {
    const pages = { sourceMaxLogBlocks: 3_000, destinationMaxLogBlocks: 3_000 };
    const { send, complete, findCompletionBlock, findSendBlock } = setup(pages);
    send(day, day + distance, day + distance + 1);
    complete(day + 5_000, day + 5_000 + distance, day + 5_001 + distance);
    expect(await findCompletionBlock(day + distance)).toBe(day + 5_000 + distance);
    expect(await findSendBlock(day + 5_000 + distance)).toBe(day + distance);
  });

  test("searches the only block between the first send and the newest page", async () => {
    const { send, complete, findSendBlock, caches } = setup({ destinationMaxLogBlocks: 3_000 });
    send(day, day + 100);
    complete(day + 1_000, day + 4_000);
    caches.blockTimes = { findBlockAt: async () => day + 1_000 };
    expect(await findSendBlock(day + 4_000)).toBe(day + 100);
  });

  test("needs one page of an L1 that searches more than a week at once", async () => {
    const { send, complete, findCompletionBlock, source } = setup({ sourceMaxLogBlocks: 10 * BLOCKS_PER_DAY });
    send(day - 8 * BLOCKS_PER_DAY, day);
    complete(day - 8 * BLOCKS_PER_DAY + 900, day + 900);
    expect(await findCompletionBlock(day)).toBe(day + 900);
    expect(source.searchedRanges).toEqual([{ from: day - 10 * BLOCKS_PER_DAY + 1, to: day }]);
  });

  // The endpoints of one chain have different limits, and change them.
  test.each([
    ["the whole chain first, and then a part", Number.POSITIVE_INFINITY, 50_000],
    ["a part first, and then the whole chain", 50_000, Number.POSITIVE_INFINITY],
  ])("gives the same result on an L1 that searches %s", async (_, before, after) => {
    const { send, complete, findCompletionBlock, source } = setup({
      sourceMaxLogBlocks: before,
      destinationMaxLogBlocks: 50_000,
    });
    send(2 * BLOCKS_PER_DAY, day);
    complete(2 * BLOCKS_PER_DAY + 900, day + 900);
    expect(await findCompletionBlock(day)).toBe(day + 900);
    source.maxLogBlocks = after;
    expect(await findCompletionBlock(day)).toBe(day + 900);
  });

  test("stores nothing that was read from a custom endpoint", async () => {
    for (const slug of ["ethereum", to]) {
      const { send, complete, findCompletionBlock, destination } = setup({ destinationMaxLogBlocks: 3_000 });
      send(day);
      complete(day + 900);
      expect(await findCompletionBlock(day, { custom: [slug] })).toBe(day + 900);
      destination.events = [];
      expect(await findCompletionBlock(day)).toBeUndefined();
    }
  });

  test("stores its result, also where the start block is estimated differently later", async () => {
    const { send, complete, findCompletionBlock, destination, caches } = setup({ destinationMaxLogBlocks: 3_000 });
    send(day);
    complete(day + 900);
    await findCompletionBlock(day);
    await flushEventLoop();
    const { blockTimes } = caches;
    caches.blockTimes = { findBlockAt: async (...args) => (await blockTimes.findBlockAt(...args)) - 100 };
    const before = destination.searchedRanges.length;
    expect(await findCompletionBlock(day)).toBe(day + 900);
    // Only the newest page is read again.
    expect(destination.searchedRanges.length - before).toBe(1);
  });
});
