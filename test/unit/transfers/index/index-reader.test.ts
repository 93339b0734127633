import { writeFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import { backfillIndex } from "../../../../src/transfers/index/sync/index-sync.js";
import { openIndex, useTestIndexes } from "../../../support/index/open-index.js";
import type { StubEvent } from "../../../support/stubs/chain-stub.js";
import {
  addressFromName,
  cctpTransferSentEvent,
  getChain,
  hashFromName,
  mainnetNetwork,
  messageReceivedEvent,
  transferFromL1CompletedEvent,
  transferSentEvent,
  transferSentToL2Event,
  withdrawalBondedEvent,
  withdrewEvent,
} from "./support/hop-events.js";
import { createFinalChain, createSyncOptions } from "./support/sync-harness.js";

const indexes = useTestIndexes();

/** The events of a block. */
type Block = readonly [slug: string, number: number, ...events: StubEvent[]];

/** Backfills a new index from a block of its chains on, whose newest and final block is `head`. */
async function fill(
  blocks: readonly Block[],
  { from = 0, head = 100_000, starts = {} }: { from?: number; head?: number; starts?: Record<string, number> } = {},
) {
  const index = await indexes.open();
  const chains = new Map([...mainnetNetwork.chains.keys()].map((slug) => [slug, createFinalChain(slug, head)]));
  for (const [slug, number, ...events] of blocks) chains.get(slug)?.setBlock(number, events);
  const { options, events } = createSyncOptions(index, chains, from);
  const startBlocks = new Map(Object.entries(starts));
  await backfillIndex({ ...options, from: { timestamp: 0, blocks: startBlocks } });
  expect(events.onError).not.toHaveBeenCalled();
  const { reader } = index;
  return {
    ...{ index, reader, chains, events },
    byId: async (name: string) => reader.findByTransferId(hashFromName(name)),
    byTransaction: async (name: string) => reader.findByTransactionHash(hashFromName(`transaction ${name}`)),
  };
}

async function getCoverageTimes({ reader }: Awaited<ReturnType<typeof fill>>, slug: string) {
  const { fromBlock, fromTimestamp, observedAtMs } = (await reader.readCoverage()).get(slug) ?? {};
  return { fromBlock, fromTimestamp, observedAtMs };
}

describe("a lookup", () => {
  test("finds a transfer over L2 bridges by hash, by ID, by the bonding hash, in either case", async () => {
    const filled = await fill([
      ["optimism", 100, transferSentEvent("a", { from: "optimism", to: "arbitrum", token: "USDT" })],
      ["arbitrum", 200, withdrawalBondedEvent("a", { to: "arbitrum", token: "USDT" })],
    ]);
    const [found, ...others] = await filled.byId("a");
    expect(others).toEqual([]);
    expect(found).toEqual({
      sent: {
        kind: "l2",
        id: hashFromName("a"),
        token: "USDT",
        source: getChain("optimism"),
        destination: getChain("arbitrum"),
        transactionHash: hashFromName("transaction send a"),
        blockNumber: 100,
        timestamp: 1_700_000_200,
        logIndex: 0,
        account: addressFromName("by send a"),
        event: {
          transferId: hashFromName("a"),
          destinationChainId: 42161,
          recipient: addressFromName("to a"),
          amount: 1_000n,
          amountOutMin: 900n,
          deadline: 1_800_000_000n,
          bonderFee: 10n,
          relayer: undefined,
        },
      },
      delivery: {
        transactionHash: hashFromName("transaction bond a"),
        blockNumber: 200,
        timestamp: 1_700_000_400,
        bonder: addressFromName("by bond a"),
      },
      isFinal: true,
      isUnambiguous: true,
      otherTransferIds: [],
      sourceCoverage: await getCoverageTimes(filled, "optimism"),
      destinationCoverage: await getCoverageTimes(filled, "arbitrum"),
    });
    expect(await filled.byTransaction("send a")).toEqual([found]);
    expect(await filled.byTransaction("bond a")).toEqual([found]);
    const upper = `0x${hashFromName("a").slice(2).toUpperCase()}`;
    expect(await filled.reader.findByTransferId(upper)).toEqual([found]);
  });

  test("finds no delivery of a pending transfer, and no bonder of a withdrawn one", async () => {
    const leg = { from: "base", to: "ethereum" };
    const { byId } = await fill([
      ["base", 5, transferSentEvent("p", leg), transferSentEvent("w", leg)],
      ["ethereum", 7, withdrewEvent("w", leg)],
    ]);
    expect(await byId("p")).toMatchObject([{ delivery: undefined, isFinal: true }]);
    const delivery = { transactionHash: hashFromName("transaction withdraw w"), blockNumber: 7, bonder: undefined };
    expect(await byId("w")).toMatchObject([{ delivery }]);
  });

  test("ignores deliveries with the same ID by the bridge of another token or chain", async () => {
    const { byId, byTransaction } = await fill([
      ["optimism", 1, transferSentEvent("a", { from: "optimism", to: "arbitrum" })],
      ["arbitrum", 2, withdrawalBondedEvent("a", { to: "arbitrum", token: "USDT" })],
      ["polygon", 3, withdrawalBondedEvent("a", { to: "polygon" })],
    ]);
    expect(await byId("a")).toMatchObject([{ delivery: undefined }]);
    expect(await byTransaction("bond a")).toEqual([]);
  });

  test("finds several transfers of one sending or delivering transaction in log order", async () => {
    const leg = { from: "optimism", to: "gnosis" };
    const ids = ["c", "a", "b"];
    const { byId, byTransaction } = await fill([
      ["optimism", 9, ...ids.map((id) => transferSentEvent(id, { ...leg, transaction: "many" }))],
      ["gnosis", 9, ...ids.map((id) => withdrawalBondedEvent(id, { ...leg, transaction: "bonds" }))],
    ]);
    for (const transaction of ["many", "bonds"]) {
      const found = await byTransaction(transaction);
      expect(found.map(({ sent }) => sent.id)).toEqual(ids.map(hashFromName));
      expect(found[1]?.otherTransferIds).toEqual([hashFromName("c"), hashFromName("b")]);
    }
    expect(await byId("b")).toMatchObject([{ otherTransferIds: [hashFromName("c"), hashFromName("a")] }]);
  });

  test("finds nothing by a delivering transaction while one of its sends is not indexed", async () => {
    const leg = { from: "optimism", to: "gnosis" };
    const { byId, byTransaction } = await fill([
      ["optimism", 9, transferSentEvent("a", leg)],
      ["gnosis", 9, ...["before", "a"].map((id) => withdrawalBondedEvent(id, { ...leg, transaction: "bonds" }))],
    ]);
    expect(await byTransaction("bonds")).toEqual([]);
    expect(await byId("a")).toMatchObject([{ delivery: { transactionHash: hashFromName("transaction bonds") } }]);
  });

  test("finds CCTP transfers by nonce from every source that uses it, and by either hash", async () => {
    const burn = (from: string, other: bigint): Block => {
      const first = cctpTransferSentEvent(77n, { from, to: "base" });
      const second = cctpTransferSentEvent(other, { from, to: "base" });
      return [from, 10, first, { ...second, transactionHash: first.transactionHash }];
    };
    const { reader, byTransaction } = await fill([
      burn("arbitrum", 502n),
      burn("ethereum", 501n),
      ["base", 20, messageReceivedEvent(77n, { from: "ethereum", to: "base" })],
    ]);
    const found = await reader.findByTransferId("77");
    expect(found).toMatchObject([
      {
        sent: { source: { slug: "ethereum" }, id: "77", kind: "cctp", token: "USDC", event: { transferId: "77" } },
        delivery: { transactionHash: hashFromName("transaction mint ethereum 77") },
        otherTransferIds: ["501"],
      },
      { sent: { source: { slug: "arbitrum" } }, delivery: undefined, otherTransferIds: ["502"] },
    ]);
    expect(await byTransaction("mint ethereum 77")).toMatchObject([{ sent: { id: "77" }, otherTransferIds: [] }]);
    expect((await byTransaction("burn arbitrum 77"))[0]).toEqual(found[1]);
  });

  test("ignores CCTP deliveries that Hop's contract did not send", async () => {
    const leg = { from: "arbitrum", to: "base" };
    const { reader } = await fill([
      ["arbitrum", 10, cctpTransferSentEvent(78n, leg)],
      ["base", 20, messageReceivedEvent(78n, leg, addressFromName("somebody else"))],
    ]);
    expect(await reader.findByTransferId("78")).toMatchObject([{ delivery: undefined }]);
  });

  test("finds nothing for an unknown or malformed ID", async () => {
    const { reader } = await fill([["optimism", 1, transferSentEvent("a", { from: "optimism", to: "arbitrum" })]]);
    for (const id of [hashFromName("b"), "79", "0x1", "", "18446744073709551616", hashFromName("transaction send a")])
      expect(await reader.findByTransferId(id), id).toEqual([]);
    for (const hash of [hashFromName("a"), "0x", "77"])
      expect(await reader.findByTransactionHash(hash), hash).toEqual([]);
  });
});

describe("transfers from L1", () => {
  const leg = { to: "optimism" };
  type Named = readonly [values: string, transaction: string, more?: object];
  const send = (block: number, ...named: readonly Named[]): Block => {
    const events = named.map(([values, name, more]) => transferSentToL2Event(values, name, { ...leg, ...more }));
    return ["ethereum", block, ...events];
  };
  const complete = (block: number, ...named: readonly Named[]): Block => {
    const events = named.map(([values, name, more]) => transferFromL1CompletedEvent(values, name, { ...leg, ...more }));
    return ["optimism", block, ...events];
  };
  /** Returns what the transfers are, by the names of their transactions. */
  const summarize = async (filled: Awaited<ReturnType<typeof fill>>, ...names: readonly string[]) => {
    const found = await Promise.all(names.map((name) => filled.byId(`transaction ${name}`)));
    return found.map(([transfer]) => {
      if (transfer?.isUnambiguous === false) return "ambiguous";
      return transfer?.delivery?.transactionHash ?? "pending";
    });
  };
  const by = (name: string) => hashFromName(`transaction ${name}`);

  test("are found by their transaction's hash as ID, with their values", async () => {
    const { byId, byTransaction } = await fill([send(10, ["v", "s1"]), complete(30, ["v", "c1"])]);
    const id = hashFromName("transaction s1");
    const [found] = await byId("transaction s1");
    expect(found).toMatchObject({
      otherTransferIds: [],
      sent: {
        kind: "l1",
        id,
        event: {
          transferId: undefined,
          recipient: addressFromName("to v"),
          relayer: addressFromName("relayer"),
          amount: 2_000n,
          bonderFee: 5n,
        },
      },
      delivery: { transactionHash: by("c1"), blockNumber: 30, bonder: undefined },
    });
    expect(await byTransaction("s1")).toEqual([found]);
    expect(await byTransaction("c1")).toEqual([found]);
  });

  test("with equal values are delivered in the order of sending", async () => {
    const filled = await fill([send(10, ["v", "s1"], ["v", "s2"]), complete(30, ["v", "c1"], ["other", "c2"])]);
    expect(await summarize(filled, "s1", "s2")).toEqual([by("c1"), "pending"]);
    expect(await filled.byTransaction("c1")).toMatchObject([{ sent: { id: by("s1") } }]);
    expect(await filled.byTransaction("c2")).toEqual([]);
  });

  test("are not matched to a completion that precedes the first indexed send", async () => {
    const blocks = [
      // Before the first indexed block of L1.
      send(999, ["v", "s0"]),
      complete(1_010, ["v", "c0"]),
      send(2_000, ["v", "s1"]),
    ];
    const filled = await fill(blocks, { from: 1_000 });
    expect(await summarize(filled, "s1")).toEqual(["pending"]);
    expect(await filled.byTransaction("c0")).toEqual([]);
    const later = await fill([...blocks, complete(2_100, ["v", "c1"])], { from: 1_000 });
    expect(await summarize(later, "s1")).toEqual([by("c1")]);
  });

  test("with equal values are ambiguous if a delivery may precede the index on the destination", async () => {
    const blocks = [
      send(1_000, ["v", "s1"]),
      complete(1_500, ["v", "c1"]),
      send(60_000, ["v", "s2"], ["w", "s3"]),
      complete(60_500, ["v", "c2"], ["w", "c3"]),
    ];
    const filled = await fill(blocks, { from: 50_000, starts: { ethereum: 500 } });
    expect(await summarize(filled, "s1", "s2", "s3")).toEqual(["ambiguous", "ambiguous", by("c3")]);
    expect(await filled.byTransaction("c2")).toEqual([]);
    expect(await filled.byId("transaction s1")).toMatchObject([{ isFinal: true, delivery: undefined }]);
  });

  test.each([
    ["no deadline", 0n],
    ["a distant deadline", 1_800_000_000n],
  ])("with %s are ambiguous until a week after the index begins", async (_, deadline) => {
    const week = (7 * 86_400) / 2;
    const values = { deadline };
    const blocks = [
      // Sent before the index begins, and delivered after an equal one has been sent.
      send(9_990, ["v", "s1", values]),
      send(10_010, ["v", "s2", values], ["w", "near"]),
      complete(10_300, ["v", "c1", values]),
      send(10_000 + week, ["u", "s3", values]),
      complete(10_300 + week, ["u", "c3", values]),
    ];
    const head = 100_000 + week;
    const filled = await fill(blocks, { from: 10_000, head });
    expect(await summarize(filled, "s2", "near", "s3")).toEqual(["ambiguous", "pending", by("c3")]);
    expect(await filled.byTransaction("c1")).toEqual([]);
    expect(await summarize(await fill(blocks, { head }), "s2")).toEqual(["pending"]);
  });

  test("are matched by order alone when both histories are complete, since clocks may differ", async () => {
    const filled = await fill([send(1_000, ["v", "s1"]), complete(10, ["v", "c1"])]);
    const [found] = await filled.byTransaction("s1");
    expect(found?.delivery?.transactionHash).toBe(by("c1"));
    expect(found?.delivery?.timestamp).toBeLessThan(found?.sent.timestamp ?? 0);
  });
});

describe("coverage", () => {
  test("tells which blocks are indexed", async () => {
    const { reader } = await fill([], { from: 500 });
    // The newest blocks are left to the realtime sync.
    expect((await reader.readCoverage()).get("optimism")).toEqual({
      fromBlock: 500,
      toBlock: 99_940,
      toTimestamp: 1_700_000_000 + 99_940 * 2,
      fromTimestamp: 1_700_001_000,
      finalizedBlock: 99_940,
      observedAtMs: (1_700_000_000 + 99_940 * 2) * 1_000,
    });
    expect((await reader.readCoverage()).get("nowhere")).toBeUndefined();
    const empty = await indexes.open();
    expect((await empty.reader.readCoverage()).get("optimism")).toBeUndefined();
  });

  test("is complete from the block in which Hop's first contract was deployed", async () => {
    // In the SDK's address book the first contract on Base is from block 1,397,238.
    const { reader, chains, events } = await fill([], { head: 1_400_000 });
    expect((await reader.readCoverage()).get("base")).toMatchObject({
      fromBlock: 0,
      // Of the block with the contract: the blocks before are not read.
      fromTimestamp: 1_700_000_000 + 1_397_238 * 2,
    });
    const blocks = 1_399_941 - 1_397_238;
    const progress = { chain: "base", blocksDone: blocks, blocksTotal: blocks, events: 0 };
    expect(events.onBackfillProgress).toHaveBeenCalledWith(progress);
    const searches = chains
      .get("base")
      ?.requests.flat()
      .filter((method) => method === "eth_getLogs");
    expect(searches?.length).toBeLessThan(5);
  });
});

describe("the index file", () => {
  test("keeps its content when it is opened again", async () => {
    const { index, byId } = await fill([["optimism", 1, transferSentEvent("a", { from: "optimism", to: "arbitrum" })]]);
    const found = await byId("a");
    expect(found).toHaveLength(1);
    const reopened = await indexes.open(index.file);
    expect(await reopened.reader.findByTransferId(hashFromName("a"))).toEqual(found);
  });

  test("can be created by several processes at the same time", async () => {
    const file = indexes.createPath();
    const all = await Promise.all(Array.from({ length: 8 }, () => indexes.open(file)));
    for (const { reader } of all) expect(await reader.findByTransferId("1")).toEqual([]);
  });

  test("fails to migrate with the reason", async () => {
    const { file } = await indexes.open();
    const connection = await openSqlite(file);
    connection.exec(
      "drop table sends; create view sends as select 1 as transaction_hash; delete from index_migrations",
    );
    connection.close();
    await expect(openIndex(file)).rejects.toMatchObject({
      name: "IndexUnavailableError",
      message: `the index file ${file} cannot be used: views may not be indexed`,
    });
  });

  test.each([
    ["nowhere/index", /^the index file \S+nowhere\/index cannot be opened/],
    ["text", /^the index file \S+text cannot be used/],
  ])("fails to open with the reason: %s", async (name, message) => {
    await writeFile(`${indexes.folder()}/text`, "this is no database at all, but it has some length".repeat(20));
    await expect(openIndex(`${indexes.folder()}/${name}`)).rejects.toMatchObject({
      name: "IndexUnavailableError",
      message: expect.stringMatching(message),
    });
  });
});
