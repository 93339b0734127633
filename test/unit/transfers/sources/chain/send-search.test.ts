import { describe, expect, test, vi } from "vitest";
import type { Chain } from "../../../../../src/hop/networks.js";
import { estimateBlockAfter } from "../../../../../src/transfers/sources/chain/search-context.js";
import {
  findSendByNonce,
  findSendByTransferId,
  findTransaction,
} from "../../../../../src/transfers/sources/chain/send-search.js";
import {
  createChainAccess,
  createDeferred,
  createLookupContext,
  createTransferChainStub,
  flushEventLoop,
  getChain,
  repeatedByteHash,
  toLog,
  unavailableError,
} from "../../../../support/stubs/transfer-fixtures.js";
import { cctpTransferSentEvent, hashFromName, transferSentEvent } from "../../index/support/hop-events.js";
import { createSearch } from "./search-fixtures.js";

const unavailable = { reason: "UPSTREAM_UNAVAILABLE" };
const sent = transferSentEvent("a", { from: "base", to: "arbitrum" });

function setup({ maxLogBlocks = Number.POSITIVE_INFINITY, custom = [] as string[] } = {}) {
  const create = (slug: string) => createTransferChainStub(slug, { maxLogBlocks });
  const stubs = { optimism: create("optimism"), base: create("base"), gnosis: create("gnosis") };
  const chains = createChainAccess(Object.values(stubs), custom);
  const search = createSearch().toSearch(createLookupContext({ chains }));
  const sources = Object.keys(stubs).map((slug) => getChain(slug));
  const hints = (block?: number) =>
    block === undefined ? {} : { readDeliveryTime: async () => stubs.optimism.timestampOf(block) };
  const find = (id: string, more: Parameters<typeof findSendByTransferId>[3]) =>
    findSendByTransferId(id, sources, search, more);
  return {
    ...stubs,
    byId: (id = hashFromName("a"), deliveryBlock?: number) => find(id, hints(deliveryBlock)),
    byNonce: (deliveryBlock?: number) => findSendByNonce(77n, sources, search, hints(deliveryBlock)),
    byIdSince: (lastSearchedBlock: (chain: Chain) => number) => find(hashFromName("a"), { lastSearchedBlock }),
    byHash: (transactionHash: string) => findTransaction(transactionHash, search),
    /** Returns the ranges of Base that a search reads. */
    async readRanges(run: () => Promise<unknown>) {
      stubs.base.searchedRanges.length = 0;
      await run();
      return [...stubs.base.searchedRanges];
    },
  };
}
const fail = (): never => {
  throw unavailableError("this chain");
};
const hang = (): Promise<void> => createDeferred<void>().promise;

describe.each([
  ["whole chains", Number.POSITIVE_INFINITY],
  ["parts of chains", 3_000],
])("the send of a transfer ID, with endpoints that search %s", (_, maxLogBlocks) => {
  test("is located by its log", async () => {
    const { base, byId } = setup({ maxLogBlocks });
    base.events = [
      { event: transferSentEvent("b", { from: "base", to: "arbitrum" }), block: 60_000 },
      { event: sent, block: 61_000, index: 5 },
    ];
    expect(await byId()).toEqual({ chain: getChain("base"), log: toLog(sent, 61_000, 5) });
    expect(await byId(hashFromName("unknown"))).toBeUndefined();
  });

  test("must come from one of Hop's bridges of its chain", async () => {
    const { base, optimism, byId } = setup({ maxLogBlocks });
    base.events = [{ event: { ...sent, address: `0x${"99".repeat(20)}` }, block: 60_000 }];
    optimism.events = [{ event: sent, block: 60_000 }];
    expect(await byId()).toBeUndefined();
  });

  test("is found while other chains are down or hang, and aborts their searches", async () => {
    const { base, optimism, gnosis, byId } = setup({ maxLogBlocks });
    base.events = [{ event: sent, block: 61_000 }];
    optimism.beforeResponse = fail;
    gnosis.beforeResponse = hang;
    const getLogs = vi.spyOn(gnosis.client, "getLogs");
    expect(await byId()).toMatchObject({ chain: { slug: "base" } });
    expect(getLogs.mock.calls.map(([, { aborted }]) => aborted)).toEqual([true]);
  });

  test("is unavailable while a chain without it is down", async () => {
    const { gnosis, byId } = setup({ maxLogBlocks });
    gnosis.beforeResponse = fail;
    await expect(byId()).rejects.toMatchObject(unavailable);
  });
});

describe("a search with endpoints that limit the number of blocks", () => {
  test("goes backwards from the newest block and ends at the log", async () => {
    const { base, byId, readRanges } = setup({ maxLogBlocks: 10_000 });
    base.events = [{ event: sent, block: 95_000 }];
    expect(await readRanges(() => byId())).toEqual([{ from: 90_001, to: 100_000 }]);
    base.events = [{ event: sent, block: 85_000 }];
    expect((await readRanges(() => byId())).slice(1)).toEqual([{ from: 80_001, to: 90_000 }]);
  });

  test("skips blocks that another source has searched", async () => {
    const { base, optimism, byIdSince } = setup({ maxLogBlocks: 10_000 });
    base.events = [{ event: sent, block: 75_000 }];
    expect(await byIdSince(({ slug }) => (slug === "base" ? 75_000 : -1))).toBeUndefined();
    expect(Math.min(...base.searchedRanges.map(({ from }) => from))).toBe(75_001);
    expect(Math.min(...optimism.searchedRanges.map(({ from }) => from))).toBe(0);
    expect(await byIdSince(() => 74_999)).toMatchObject({ chain: { slug: "base" } });
  });

  test("begins shortly after the delivery when its time is known", async () => {
    const { base, optimism, gnosis, byId } = setup({ maxLogBlocks: 2_000 });
    base.events = [{ event: sent, block: 40_000 }];
    await byId(hashFromName("a"), 50_000);
    const [newest, next] = base.searchedRanges;
    expect(newest).toEqual({ from: 98_001, to: 100_000 });
    // Ten minutes and 1,000 blocks; a block found by its time may be five minutes earlier.
    expect(next?.to).toBeGreaterThanOrEqual(51_300);
    expect(next?.to).toBeLessThanOrEqual(51_600);
    for (const { searchedRanges } of [optimism, gnosis]) expect(searchedRanges[1]?.to).toBeLessThanOrEqual(51_600);
  });

  test("searches the blocks after the delivery last", async () => {
    const { base, byId } = setup({ maxLogBlocks: 2_000 });
    base.events = [{ event: sent, block: 70_000 }];
    expect(await byId(hashFromName("a"), 50_000)).toMatchObject({ chain: { slug: "base" } });
    const last = base.searchedRanges.at(-1);
    expect(base.searchedRanges.some(({ from }) => from === 0)).toBe(true);
    expect(last?.to).toBeLessThan(98_000);
  });

  test("finds a send just before its delivery, and a delivery at the head", async () => {
    for (const [block, deliveryBlock] of [
      [49_999, 50_000],
      [50_000, 50_000],
      [97_999, 99_990],
      [99_999, 100_000],
    ] as const) {
      const { base, byId } = setup({ maxLogBlocks: 2_000 });
      base.events = [{ event: sent, block }];
      expect(await byId(hashFromName("a"), deliveryBlock)).toMatchObject({ log: { blockNumber: block } });
    }
  });

  test("is skipped on a chain without a sending contract of that kind", async () => {
    const { gnosis, byNonce } = setup({ maxLogBlocks: 2_000 });
    expect(await byNonce()).toBeUndefined();
    expect(gnosis.methods).toEqual([]);
  });
});

describe("a search that finds nothing", () => {
  /** The block up to which reorgs leave Base as it is, half an hour before its head. */
  const LAST_STABLE = 100_000 - 900;
  const other = hashFromName("other");

  test.each([undefined, 50_000, 99_990])("searches each block once (delivery in block %s)", async (deliveryBlock) => {
    const { base, byId } = setup({ maxLogBlocks: 2_000 });
    expect(await byId(other, deliveryBlock)).toBeUndefined();
    const ranges = base.searchedRanges.toSorted((a, b) => a.from - b.from);
    const borders = ranges.map(({ from }, index) => [from, (ranges[index - 1]?.to ?? -1) + 1]);
    for (const [from, expected] of borders) expect(from).toBe(expected);
    expect(ranges.at(-1)?.to).toBe(100_000);
  });

  test("leaves to the next one the blocks that a reorg may change, and those that are new", async () => {
    const { base, byId, readRanges } = setup({ maxLogBlocks: 2_000 });
    await byId(other);
    expect(await readRanges(() => byId(other))).toEqual([{ from: LAST_STABLE + 1, to: 100_000 }]);
    base.head = 103_000;
    expect(await readRanges(() => byId(other))).toEqual([
      { from: 101_001, to: 103_000 },
      { from: LAST_STABLE + 1, to: 101_000 },
    ]);
  });

  test("is no reason to skip blocks for another transfer, or on another chain", async () => {
    const { base, optimism, byId, byNonce } = setup({ maxLogBlocks: 2_000 });
    await byId(other);
    await byNonce();
    base.events = [{ event: sent, block: 20_000 }];
    expect(await byId()).toMatchObject({ log: { blockNumber: 20_000 } });
    optimism.events = [{ event: cctpTransferSentEvent(78n, { from: "optimism", to: "arbitrum" }), block: 20_000 }];
    base.events = [{ event: cctpTransferSentEvent(77n, { from: "base", to: "arbitrum" }), block: 99_500 }];
    expect(await byNonce()).toMatchObject({ chain: { slug: "base" }, log: { blockNumber: 99_500 } });
  });

  test("is repeated by the next one over a custom endpoint, whose word counts for its caller alone", async () => {
    const { byId, readRanges } = setup({ maxLogBlocks: 2_000, custom: ["optimism"] });
    const first = await readRanges(() => byId(other));
    expect(await readRanges(() => byId(other))).toEqual(first);
  });

  test("reads no block times when the endpoint searches the whole chain at once", async () => {
    const { base, byId } = setup();
    expect(await byId(other, 50_000)).toBeUndefined();
    expect(base.methods).toEqual(["eth_getLogs"]);
  });
});

test.each([99_500, 60_000])("a send in block %i is found again by the next lookup", async (block) => {
  const { base, byId } = setup({ maxLogBlocks: 2_000 });
  base.events = [{ event: sent, block }];
  for (let lookup = 0; lookup < 3; lookup++) expect(await byId()).toMatchObject({ log: { blockNumber: block } });
});

describe.each([
  ["whole chains", Number.POSITIVE_INFINITY],
  ["parts of chains", 3_000],
])("the send of a CCTP nonce, with endpoints that search %s", (_, maxLogBlocks) => {
  const fromBase = cctpTransferSentEvent(77n, { from: "base", to: "arbitrum" });

  test("is found on the one chain that sent it", async () => {
    const { base, byNonce } = setup({ maxLogBlocks });
    base.events = [
      { event: fromBase, block: 60_000 },
      { event: cctpTransferSentEvent(78n, { from: "base", to: "arbitrum" }), block: 61_000 },
    ];
    expect(await byNonce()).toEqual({ chain: getChain("base"), log: toLog(fromBase, 60_000) });
    expect(await byNonce(60_100)).toEqual({ chain: getChain("base"), log: toLog(fromBase, 60_000) });
  });

  test("is ambiguous when two chains sent it", async () => {
    const { base, optimism, byNonce } = setup({ maxLogBlocks });
    base.events = [{ event: fromBase, block: 60_000 }];
    optimism.events = [{ event: cctpTransferSentEvent(77n, { from: "optimism", to: "arbitrum" }), block: 20_000 }];
    await expect(byNonce()).rejects.toMatchObject({ reason: "INVALID_PARAMETER", field: "transferId" });
  });

  test("is unavailable while another possible source chain is down", async () => {
    const { base, optimism, byNonce } = setup({ maxLogBlocks });
    base.events = [{ event: fromBase, block: 60_000 }];
    optimism.beforeResponse = fail;
    await expect(byNonce()).rejects.toMatchObject(unavailable);
  });
});

describe("a transaction", () => {
  test("is found on the chain that has its receipt while others are down", async () => {
    const { base, optimism, gnosis, byHash } = setup();
    base.events = [{ event: sent, block: 61_000 }];
    optimism.beforeResponse = fail;
    gnosis.beforeResponse = hang;
    const found = await byHash(sent.transactionHash);
    expect(found).toMatchObject({ chain: { slug: "base" }, receipt: { transactionHash: sent.transactionHash } });
  });

  test("is undefined when no chain has it, and unavailable when one is down", async () => {
    const { gnosis, byHash } = setup();
    expect(await byHash(repeatedByteHash("77"))).toBeUndefined();
    gnosis.beforeResponse = fail;
    await expect(byHash(repeatedByteHash("77"))).rejects.toMatchObject(unavailable);
    await flushEventLoop();
  });
});

test("a block after a time is after it also where the clocks of two chains differ by ten minutes", async () => {
  // Four blocks per second, and estimates that are a thousand blocks too low.
  const blockTimes = { findBlockAt: async (_: unknown, timestamp: number) => timestamp * 4 - 1_000 };
  const search = { ...createSearch().toSearch(createLookupContext()), blockTimes };
  const block = await estimateBlockAfter(getChain("arbitrum"), 1_700_000_000, search);
  expect(block).toBeGreaterThanOrEqual((1_700_000_000 + 600) * 4);
});
