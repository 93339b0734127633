import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBlockFinder } from "../../../../../src/chain/read/block-finder.js";
import { createContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { decodeReceivedEvent } from "../../../../../src/hop/transfer-events.js";
import {
  type EqualTransferGroup,
  findL1Completion,
  findSendOfL1Completion,
} from "../../../../../src/transfers/sources/chain/l1-completion.js";
import { createResumableLogScanner } from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import {
  type ChainEvent,
  createChainAccess,
  createLookupContext,
  createTransferChainStub,
  flushEventLoop,
  getChain,
  toLog,
} from "../../../../support/stubs/transfer-fixtures.js";
import { mainnetNetwork, transferFromL1CompletedEvent, transferSentToL2Event } from "../../index/support/hop-events.js";

const book = createContractRegistry(mainnetNetwork);
const to = "arbitrum";
const isDown = { reason: "UPSTREAM_UNAVAILABLE" };
const dayBlocks = 24 * 3600;

/** The same for the same accounts, but not the same amount, which is the first word of each. */
const ofAnotherAmount = (event: ChainEvent): ChainEvent => ({
  ...event,
  data: `0x${"0".repeat(63)}1${event.data.slice(66)}`,
});

/** Everything about transfers with equal values: what is put on the chains, and how to find it. */
function setup({ sourceMost = Number.POSITIVE_INFINITY, destinationMost = Number.POSITIVE_INFINITY } = {}) {
  const head = 20 * dayBlocks;
  const source = createTransferChainStub("ethereum", { most: sourceMost, head });
  const destination = createTransferChainStub(to, { most: destinationMost, head });
  const closing = new AbortController();
  const memory = {
    blockTimes: createBlockFinder({ now: () => 0 }),
    logScanner: createResumableLogScanner(closing.signal),
  };
  const values = decodeReceivedEvent(toLog(transferFromL1CompletedEvent("equal", "any", { to }), 1));
  if (values?.kind !== "l1") throw new Error("no completion");
  const equal: EqualTransferGroup = {
    source: getChain("ethereum"),
    destination: getChain(to),
    sourceBridge: book.findBridge("ETH", getChain("ethereum")) ?? "",
    destinationBridge: book.findBridge("ETH", getChain(to)) ?? "",
    values,
  };
  const contextWith = (custom: readonly string[] = []) =>
    createLookupContext({ chains: createChainAccess([source, destination], custom) });
  return {
    source,
    destination,
    closing,
    memory,
    /** Puts sends in these blocks of L1; others' values are not equal. */
    send: (...blocks: number[]) => {
      for (const block of blocks) {
        const event = transferSentToL2Event("equal", `send ${block}`, { to });
        source.events.push({ event, block, index: 2 });
        source.events.push({ event: transferSentToL2Event("other", `other ${block}`, { to }), block, index: 1 });
        source.events.push({
          event: transferSentToL2Event("equal", `elsewhere ${block}`, { to: "base" }),
          block,
          index: 3,
        });
        const less = ofAnotherAmount(transferSentToL2Event("equal", `less ${block}`, { to }));
        source.events.push({ event: less, block, index: 0 });
      }
    },
    complete: (...blocks: number[]) => {
      for (const block of blocks) {
        destination.events.push({
          event: transferFromL1CompletedEvent("equal", `completion ${block}`, { to }),
          block,
          index: 4,
        });
        destination.events.push({
          event: transferFromL1CompletedEvent("other", `other ${block}`, { to }),
          block,
          index: 3,
        });
        const less = ofAnotherAmount(transferFromL1CompletedEvent("equal", `less ${block}`, { to }));
        destination.events.push({ event: less, block, index: 2 });
      }
    },
    /** Block of the completion of the send in a block. */
    async completionOf(block: number, { custom = [] as readonly string[] } = {}) {
      const { transactionHash } = transferSentToL2Event("equal", `send ${block}`, { to });
      const place = { transactionHash, blockNumber: block, logIndex: 2 };
      const log = await findL1Completion(
        equal,
        place,
        Promise.resolve(source.timestampOf(block)),
        memory,
        contextWith(custom),
      );
      return log?.blockNumber;
    },
    /** Block of the send that the completion in a block belongs to. */
    async completedBy(block: number) {
      const log = toLog(transferFromL1CompletedEvent("equal", `completion ${block}`, { to }), block, 4);
      const log2 = await findSendOfL1Completion(
        equal,
        log,
        async () => destination.timestampOf(block),
        memory,
        contextWith(),
      );
      return log2?.blockNumber;
    },
  };
}

const widths = [
  ["whole chains", {}],
  ["a part of the source", { sourceMost: 3_000 }],
  ["a part of the destination", { destinationMost: 3_000 }],
  ["parts of both", { sourceMost: 5_000, destinationMost: 2_000 }],
] as const;

describe.each(widths)("with endpoints that search %s", (_, most) => {
  const day = 12 * dayBlocks;
  const sends = [day, day + 4_000, day + 90_000];
  const arrivals = [day + 700, day + 4_600];

  test("sends and completions belong together in their order", async () => {
    const { send, complete, completionOf, completedBy } = setup(most);
    send(...sends);
    complete(...arrivals);
    expect(await Promise.all(sends.map((block) => completionOf(block)))).toEqual([...arrivals, undefined]);
    expect(await Promise.all(arrivals.map((block) => completedBy(block)))).toEqual(sends.slice(0, 2));
  });

  test("of two equal sends and one arrival the earlier one has arrived, whatever is asked first", async () => {
    const { send, complete, completionOf, completedBy } = setup(most);
    send(day, day + 100);
    complete(day + 5_000);
    expect(await completionOf(day + 100)).toBeUndefined();
    expect(await completionOf(day)).toBe(day + 5_000);
    expect(await completedBy(day + 5_000)).toBe(day);
  });

  test("an arrival that comes while nobody looks is found later", async () => {
    const { send, complete, completionOf } = setup(most);
    const late = 20 * dayBlocks - 2_000;
    send(late, late + 1);
    expect(await completionOf(late)).toBeUndefined();
    complete(late + 500);
    expect(await completionOf(late)).toBe(late + 500);
    expect(await completionOf(late + 1)).toBeUndefined();
    complete(late + 501);
    expect(await completionOf(late + 1)).toBe(late + 501);
  });

  test("an equal transfer of long before takes no part", async () => {
    const { send, complete, completionOf, completedBy } = setup(most);
    send(3 * dayBlocks, day);
    complete(3 * dayBlocks + 900, day + 900);
    expect(await completionOf(day)).toBe(day + 900);
    expect(await completedBy(day + 900)).toBe(day);
  });

  test("a source that does not have the send in its logs cannot tell", async () => {
    const { send, completionOf, complete } = setup(most);
    send(day - 50);
    complete(day + 50);
    await expect(completionOf(day)).rejects.toMatchObject({ ...isDown, message: expect.stringContaining("ethereum") });
  });

  test("a destination that does not have the completion in its logs cannot tell", async () => {
    const { send, completedBy } = setup(most);
    send(day);
    await expect(completedBy(day + 50)).rejects.toMatchObject({ ...isDown, message: expect.stringContaining(to) });
  });

  test("a completion that nobody sent belongs to nothing", async () => {
    const { complete, completedBy } = setup(most);
    complete(day);
    expect(await completedBy(day)).toBeUndefined();
  });

  test("any sends and completions in order are paired", async () => {
    const gaps = fc.array(
      fc.record({ gap: fc.integer({ min: 1, max: 9_000 }), takes: fc.integer({ min: 300, max: 4_000 }) }),
      {
        minLength: 1,
        maxLength: 4,
      },
    );
    await fc.assert(
      fc.asyncProperty(gaps, fc.nat(4), async (steps, missing) => {
        const { send, complete, completionOf, completedBy } = setup(most);
        let [sentAt, arrivesAt] = [day, 0];
        const pairs = steps.map(({ gap, takes }) => {
          sentAt += gap;
          arrivesAt = Math.max(arrivesAt + 1, sentAt + takes);
          return [sentAt, arrivesAt] as const;
        });
        const arrived = pairs.slice(0, Math.max(0, pairs.length - missing));
        send(...pairs.map(([block]) => block));
        complete(...arrived.map(([, block]) => block));
        for (const [index, [sent]] of pairs.entries()) expect(await completionOf(sent)).toBe(arrived[index]?.[1]);
        for (const [sent, arrival] of arrived) expect(await completedBy(arrival)).toBe(sent);
      }),
      { numRuns: 15 },
    );
  });
});

describe("a search for the completion", () => {
  const day = 12 * dayBlocks;

  test("reads no blocks, and each chain once, where the chains are searched whole", async () => {
    const { send, complete, completionOf, source, destination } = setup();
    send(day);
    complete(day + 900);
    await completionOf(day);
    expect([...source.methods, ...destination.methods]).toEqual(["eth_getLogs", "eth_getLogs"]);
  });

  test("looks back a week on L1, and no further", async () => {
    const { send, completionOf, source } = setup({ sourceMost: 50_000 });
    send(day);
    await completionOf(day);
    const first = Math.min(...source.searchedRanges.map(({ from }) => from));
    expect(first).toBeLessThanOrEqual(day - 7 * dayBlocks);
    expect(first).toBeGreaterThan(day - 7 * dayBlocks - 1_001);
  });

  // Endpoints of one chain differ, and change their minds.
  test.each([
    ["whole chains and then", Number.POSITIVE_INFINITY, 50_000],
    ["a part and then", 50_000, Number.POSITIVE_INFINITY],
  ])("comes to the same on an L1 that searches %s otherwise", async (_, before, after) => {
    const { send, complete, completionOf, source } = setup({ sourceMost: before, destinationMost: 50_000 });
    send(2 * dayBlocks, day);
    complete(2 * dayBlocks + 900, day + 900);
    expect(await completionOf(day)).toBe(day + 900);
    source.maxLogBlocks = after;
    expect(await completionOf(day)).toBe(day + 900);
  });

  test("goes on for others when one has left, but not on a caller's own endpoints", async () => {
    for (const slug of ["ethereum", to]) {
      const { send, complete, completionOf, destination } = setup({ destinationMost: 3_000 });
      send(day);
      complete(day + 900);
      expect(await completionOf(day, { custom: [slug] })).toBe(day + 900);
      destination.events = [];
      // Nothing is kept of what it said.
      expect(await completionOf(day)).toBeUndefined();
    }
  });

  test("keeps what it found", async () => {
    const { send, complete, completionOf, destination } = setup({ destinationMost: 3_000 });
    send(day);
    complete(day + 900);
    await completionOf(day);
    await flushEventLoop();
    const before = destination.searchedRanges.length;
    expect(await completionOf(day)).toBe(day + 900);
    // The newest page alone.
    expect(destination.searchedRanges.length - before).toBe(1);
  });

  test("keeps it when another block is found to be as good to begin at", async () => {
    const { send, complete, completionOf, destination, memory } = setup({ destinationMost: 3_000 });
    send(day);
    complete(day + 900);
    await completionOf(day);
    const { findBlockAt } = memory.blockTimes;
    memory.blockTimes = { findBlockAt: async (...asked) => (await findBlockAt(...asked)) - 100 };
    const before = destination.searchedRanges.length;
    expect(await completionOf(day)).toBe(day + 900);
    expect(destination.searchedRanges.length - before).toBe(1);
  });
});
