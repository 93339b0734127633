import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import { backfillIndex } from "../../../../src/transfers/index/sync/index-sync.js";
import { type FileIndex, openIndex } from "../../../support/index/open-index.js";
import { createChainStub } from "../../../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";
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

const folder = useTemporaryFolder();
const open: FileIndex[] = [];
afterEach(() => {
  for (const index of open.splice(0)) index.close();
});

let fileCount = 0;
async function openTestIndex(file = `${folder()}/index-${fileCount++}`): Promise<FileIndex> {
  const index = await openIndex(file);
  open.push(index);
  return index;
}

/** Chains of 100,000 final blocks. */
function createChains() {
  const stubs = new Map(
    [...mainnetNetwork.chains.values()].map(({ slug, chainId }) => [
      slug,
      createChainStub({ slug, chainId, head: 100_000 }),
    ]),
  );
  for (const stub of stubs.values()) stub.finalized = 100_000;
  const getStub = (slug: string) => {
    const stub = stubs.get(slug);
    if (stub === undefined) throw new Error(`no chain ${slug}`);
    return stub;
  };
  return { getStub, access: { getClient: (slug: string) => getStub(slug).client, hasCustomEndpoint: () => false } };
}

/** Backfills a new index with the events of the chains from a block on. */
async function fill(
  chains: ReturnType<typeof createChains>,
  from = 0,
  onBackfillProgress = vi.fn(),
  blocks: ReadonlyMap<string, number> = new Map(),
): Promise<FileIndex> {
  const index = await openTestIndex();
  const errors: unknown[] = [];
  await backfillIndex({
    index,
    network: mainnetNetwork,
    chains: chains.access,
    blockAt: async () => from,
    from: { timestamp: 0, blocks },
    sleep: (ms) => sleep(ms),
    events: {
      onError: (...args) => errors.push(args),
      onLeaseHeld: () => {},
      onBackfillProgress,
    },
    signal: new AbortController().signal,
  });
  expect(errors).toEqual([]);
  return index;
}

async function getCoverageTimes(reader: FileIndex["reader"], slug: string) {
  const { fromBlock, fromTimestamp, observedAtMs } = (await reader.readCoverage()).get(slug) ?? {};
  return { fromBlock, fromTimestamp, observedAtMs };
}

describe("a lookup", () => {
  test("finds a transfer over L2 bridges by hash, by ID, by the bonding hash, in either case", async () => {
    const chains = createChains();
    chains
      .getStub("optimism")
      .setBlock(100, [transferSentEvent("a", { from: "optimism", to: "arbitrum", token: "USDT" })]);
    chains.getStub("arbitrum").setBlock(200, [withdrawalBondedEvent("a", { to: "arbitrum", token: "USDT" })]);
    const { reader } = await fill(chains);
    const [found, ...others] = await reader.findByTransferId(hashFromName("a"));
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
      sourceCoverage: await getCoverageTimes(reader, "optimism"),
      destinationCoverage: await getCoverageTimes(reader, "arbitrum"),
    });
    expect(await reader.findByTransactionHash(hashFromName("transaction send a"))).toEqual([found]);
    expect(await reader.findByTransactionHash(hashFromName("transaction bond a"))).toEqual([found]);
    const upper = `0x${hashFromName("a").slice(2).toUpperCase()}`;
    expect(await reader.findByTransferId(upper)).toEqual([found]);
  });

  test("finds no delivery of a pending transfer, and no bonder of a withdrawn one", async () => {
    const chains = createChains();
    const leg = { from: "base", to: "ethereum" };
    chains.getStub("base").setBlock(5, [transferSentEvent("p", leg), transferSentEvent("w", leg)]);
    chains.getStub("ethereum").setBlock(7, [withdrewEvent("w", leg)]);
    const { reader } = await fill(chains);
    expect(await reader.findByTransferId(hashFromName("p"))).toMatchObject([{ delivery: undefined, isFinal: true }]);
    expect(await reader.findByTransferId(hashFromName("w"))).toMatchObject([
      { delivery: { transactionHash: hashFromName("transaction withdraw w"), blockNumber: 7, bonder: undefined } },
    ]);
  });

  test("ignores deliveries with the same ID by the bridge of another token or chain", async () => {
    const chains = createChains();
    chains.getStub("optimism").setBlock(1, [transferSentEvent("a", { from: "optimism", to: "arbitrum" })]);
    chains.getStub("arbitrum").setBlock(2, [withdrawalBondedEvent("a", { to: "arbitrum", token: "USDT" })]);
    chains.getStub("polygon").setBlock(3, [withdrawalBondedEvent("a", { to: "polygon" })]);
    const { reader } = await fill(chains);
    expect(await reader.findByTransferId(hashFromName("a"))).toMatchObject([{ delivery: undefined }]);
    expect(await reader.findByTransactionHash(hashFromName("transaction bond a"))).toEqual([]);
  });

  test("finds several transfers of one sending or delivering transaction in log order", async () => {
    const chains = createChains();
    const leg = { from: "optimism", to: "gnosis" };
    const ids = ["c", "a", "b"];
    chains.getStub("optimism").setBlock(
      9,
      ids.map((id) => transferSentEvent(id, { ...leg, transaction: "many" })),
    );
    chains.getStub("gnosis").setBlock(
      9,
      ids.map((id) => withdrawalBondedEvent(id, { ...leg, transaction: "bonds" })),
    );
    const { reader } = await fill(chains);
    for (const hash of ["transaction many", "transaction bonds"]) {
      const found = await reader.findByTransactionHash(hashFromName(hash));
      expect(found.map(({ sent }) => sent.id)).toEqual(ids.map(hashFromName));
      expect(found[1]?.otherTransferIds).toEqual([hashFromName("c"), hashFromName("b")]);
    }
    expect(await reader.findByTransferId(hashFromName("b"))).toMatchObject([
      { otherTransferIds: [hashFromName("c"), hashFromName("a")] },
    ]);
  });

  test("finds nothing by a delivering transaction while one of its sends is not indexed", async () => {
    const chains = createChains();
    const leg = { from: "optimism", to: "gnosis" };
    chains.getStub("optimism").setBlock(9, [transferSentEvent("a", leg)]);
    chains.getStub("gnosis").setBlock(
      9,
      ["before", "a"].map((id) => withdrawalBondedEvent(id, { ...leg, transaction: "bonds" })),
    );
    const { reader } = await fill(chains);
    expect(await reader.findByTransactionHash(hashFromName("transaction bonds"))).toEqual([]);
    expect(await reader.findByTransferId(hashFromName("a"))).toMatchObject([
      { delivery: { transactionHash: hashFromName("transaction bonds") } },
    ]);
  });

  test("finds CCTP transfers by nonce from every source that uses it, and by either hash", async () => {
    const chains = createChains();
    const legs = [
      { from: "arbitrum", to: "base" },
      { from: "ethereum", to: "base" },
    ];
    for (const leg of legs) {
      const first = cctpTransferSentEvent(77n, leg);
      const second = {
        ...cctpTransferSentEvent(leg.from === "ethereum" ? 501n : 502n, leg),
        transactionHash: first.transactionHash,
      };
      chains.getStub(leg.from).setBlock(10, [first, second]);
    }
    chains.getStub("base").setBlock(20, [messageReceivedEvent(77n, { from: "ethereum", to: "base" })]);
    const { reader } = await fill(chains);
    const found = await reader.findByTransferId("77");
    expect(found).toMatchObject([
      {
        sent: { source: { slug: "ethereum" }, id: "77", kind: "cctp", token: "USDC", event: { transferId: "77" } },
        delivery: { transactionHash: hashFromName("transaction mint ethereum 77") },
        otherTransferIds: ["501"],
      },
      { sent: { source: { slug: "arbitrum" } }, delivery: undefined, otherTransferIds: ["502"] },
    ]);
    expect(await reader.findByTransactionHash(hashFromName("transaction mint ethereum 77"))).toMatchObject([
      { sent: { id: "77" }, otherTransferIds: [] },
    ]);
    expect((await reader.findByTransactionHash(hashFromName("transaction burn arbitrum 77")))[0]).toEqual(found[1]);
  });

  test("ignores CCTP deliveries that Hop's contract did not send", async () => {
    const chains = createChains();
    const leg = { from: "arbitrum", to: "base" };
    chains.getStub("arbitrum").setBlock(10, [cctpTransferSentEvent(78n, leg)]);
    chains.getStub("base").setBlock(20, [messageReceivedEvent(78n, leg, addressFromName("somebody else"))]);
    const { reader } = await fill(chains);
    expect(await reader.findByTransferId("78")).toMatchObject([{ delivery: undefined }]);
  });

  test("finds nothing for an unknown or malformed ID", async () => {
    const chains = createChains();
    chains.getStub("optimism").setBlock(1, [transferSentEvent("a", { from: "optimism", to: "arbitrum" })]);
    const { reader } = await fill(chains);
    for (const id of [hashFromName("b"), "79", "0x1", "", "18446744073709551616", hashFromName("transaction send a")]) {
      expect(await reader.findByTransferId(id), id).toEqual([]);
    }
    for (const hash of [hashFromName("a"), "0x", "77"])
      expect(await reader.findByTransactionHash(hash), hash).toEqual([]);
  });
});

describe("transfers from L1", () => {
  const leg = { to: "optimism" };
  const findDeliveryHashes = async ({ reader }: FileIndex, hash: string) => {
    const found = await reader.findByTransactionHash(hashFromName(`transaction ${hash}`));
    return found.map(({ delivery }) => delivery?.transactionHash);
  };

  test("are found by their transaction's hash as ID, with their values", async () => {
    const chains = createChains();
    chains.getStub("ethereum").setBlock(10, [transferSentToL2Event("v", "s1", leg)]);
    chains.getStub("optimism").setBlock(30, [transferFromL1CompletedEvent("v", "c1", leg)]);
    const { reader } = await fill(chains);
    const hash = hashFromName("transaction s1");
    const [found] = await reader.findByTransferId(hash);
    expect(found).toMatchObject({
      otherTransferIds: [],
      sent: {
        kind: "l1",
        id: hash,
        event: {
          transferId: undefined,
          recipient: addressFromName("to v"),
          relayer: addressFromName("relayer"),
          amount: 2_000n,
          bonderFee: 5n,
        },
      },
      delivery: { transactionHash: hashFromName("transaction c1"), blockNumber: 30, bonder: undefined },
    });
    expect(await reader.findByTransactionHash(hash)).toEqual([found]);
    expect(await reader.findByTransactionHash(hashFromName("transaction c1"))).toEqual([found]);
  });

  test("with equal values are delivered in the order of sending", async () => {
    const chains = createChains();
    chains
      .getStub("ethereum")
      .setBlock(10, [transferSentToL2Event("v", "s1", leg), transferSentToL2Event("v", "s2", leg)]);
    chains
      .getStub("optimism")
      .setBlock(30, [transferFromL1CompletedEvent("v", "c1", leg), transferFromL1CompletedEvent("other", "c2", leg)]);
    const index = await fill(chains);
    expect(await findDeliveryHashes(index, "s1")).toEqual([hashFromName("transaction c1")]);
    expect(await findDeliveryHashes(index, "s2")).toEqual([undefined]);
    expect(await findDeliveryHashes(index, "c1")).toEqual([hashFromName("transaction c1")]);
    expect(await findDeliveryHashes(index, "c2")).toEqual([]);
  });

  test("are not matched to a completion that precedes the first indexed send", async () => {
    const chains = createChains();
    // Before the first indexed block of L1.
    chains.getStub("ethereum").setBlock(999, [transferSentToL2Event("v", "s0", leg)]);
    chains.getStub("optimism").setBlock(1_010, [transferFromL1CompletedEvent("v", "c0", leg)]);
    chains.getStub("ethereum").setBlock(2_000, [transferSentToL2Event("v", "s1", leg)]);
    const index = await fill(chains, 1_000);
    expect(await findDeliveryHashes(index, "s1")).toEqual([undefined]);
    expect(await findDeliveryHashes(index, "c0")).toEqual([]);
    chains.getStub("optimism").setBlock(2_100, [transferFromL1CompletedEvent("v", "c1", leg)]);
    const later = await fill(chains, 1_000);
    expect(await findDeliveryHashes(later, "s1")).toEqual([hashFromName("transaction c1")]);
  });

  const summarize = async ({ reader }: FileIndex, transaction: string) => {
    const found = await reader.findByTransferId(hashFromName(`transaction ${transaction}`));
    return found.map(({ isUnambiguous, isFinal, delivery }) => {
      return { isUnambiguous, isFinal, by: delivery?.transactionHash };
    });
  };
  const ambiguous = [{ isUnambiguous: false, isFinal: true, by: undefined }];
  const deliveredBy = (transaction: string) => [
    { isUnambiguous: true, isFinal: true, by: hashFromName(`transaction ${transaction}`) },
  ];

  test("with equal values are ambiguous if a delivery may precede the index on the destination", async () => {
    const chains = createChains();
    chains.getStub("ethereum").setBlock(1_000, [transferSentToL2Event("v", "s1", leg)]);
    chains.getStub("optimism").setBlock(1_500, [transferFromL1CompletedEvent("v", "c1", leg)]);
    chains
      .getStub("ethereum")
      .setBlock(60_000, [transferSentToL2Event("v", "s2", leg), transferSentToL2Event("w", "s3", leg)]);
    chains
      .getStub("optimism")
      .setBlock(60_500, [transferFromL1CompletedEvent("v", "c2", leg), transferFromL1CompletedEvent("w", "c3", leg)]);
    const index = await fill(chains, 50_000, undefined, new Map([["ethereum", 500]]));
    expect(await summarize(index, "s1")).toEqual(ambiguous);
    expect(await summarize(index, "s2")).toEqual(ambiguous);
    expect(await summarize(index, "s3")).toEqual(deliveredBy("c3"));
    expect(await findDeliveryHashes(index, "c2")).toEqual([]);
  });

  test.each([
    ["no deadline", 0n],
    ["a distant deadline", 1_800_000_000n],
  ])("with %s are ambiguous until a week after the index begins", async (_, deadline) => {
    const values = { ...leg, deadline };
    const chains = createChains();
    const week = (7 * 86_400) / 2;
    for (const stub of [chains.getStub("ethereum"), chains.getStub("optimism")]) {
      stub.head += week;
      stub.finalized = stub.head;
    }
    // Sent before the index begins, and delivered after an equal one has been sent.
    chains.getStub("ethereum").setBlock(9_990, [transferSentToL2Event("v", "s1", values)]);
    chains
      .getStub("ethereum")
      .setBlock(10_010, [transferSentToL2Event("v", "s2", values), transferSentToL2Event("w", "near", leg)]);
    chains.getStub("optimism").setBlock(10_300, [transferFromL1CompletedEvent("v", "c1", values)]);
    chains.getStub("ethereum").setBlock(10_000 + week, [transferSentToL2Event("u", "s3", values)]);
    chains.getStub("optimism").setBlock(10_300 + week, [transferFromL1CompletedEvent("u", "c3", values)]);
    const index = await fill(chains, 10_000);
    expect(await summarize(index, "s2")).toEqual(ambiguous);
    expect(await findDeliveryHashes(index, "c1")).toEqual([]);
    expect(await summarize(index, "near")).toEqual([{ isUnambiguous: true, isFinal: true, by: undefined }]);
    expect(await summarize(index, "s3")).toEqual(deliveredBy("c3"));
    expect(await summarize(await fill(chains), "s2")).toEqual([{ isUnambiguous: true, isFinal: true, by: undefined }]);
  });

  test("are matched by order alone when both histories are complete, since clocks may differ", async () => {
    const chains = createChains();
    chains.getStub("ethereum").setBlock(1_000, [transferSentToL2Event("v", "s1", leg)]);
    chains.getStub("optimism").setBlock(10, [transferFromL1CompletedEvent("v", "c1", leg)]);
    const index = await fill(chains);
    expect(await findDeliveryHashes(index, "s1")).toEqual([hashFromName("transaction c1")]);
    const [found] = await index.reader.findByTransactionHash(hashFromName("transaction s1"));
    expect(found?.delivery?.timestamp).toBeLessThan(found?.sent.timestamp ?? 0);
  });
});

describe("coverage", () => {
  test("tells which blocks are indexed", async () => {
    const chains = createChains();
    const { reader } = await fill(chains, 500);
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
    const empty = await openTestIndex();
    expect((await empty.reader.readCoverage()).get("optimism")).toBeUndefined();
  });

  test("is complete from the block in which Hop's first contract was deployed", async () => {
    const chains = createChains();
    // In the SDK's address book the first contract on Base is from block 1,397,238.
    const base = chains.getStub("base");
    base.head = 1_400_000;
    base.finalized = 1_400_000;
    const onBackfillProgress = vi.fn();
    const { reader } = await fill(chains, 0, onBackfillProgress);
    expect((await reader.readCoverage()).get("base")).toMatchObject({
      fromBlock: 0,
      // Of the block with the contract: the blocks before are not read.
      fromTimestamp: 1_700_000_000 + 1_397_238 * 2,
    });
    const total = 1_399_941 - 1_397_238;
    expect(onBackfillProgress).toHaveBeenCalledWith({
      chain: "base",
      blocksDone: total,
      blocksTotal: total,
      events: 0,
    });
    const searched = base.requests.flat().filter((method) => method === "eth_getLogs").length;
    expect(searched).toBeLessThan(5);
  });
});

describe("the index file", () => {
  test("is created with its tables and keeps its content when it is opened again", async () => {
    const chains = createChains();
    chains.getStub("optimism").setBlock(1, [transferSentEvent("a", { from: "optimism", to: "arbitrum" })]);
    const { file, reader } = await fill(chains);
    const found = await reader.findByTransferId(hashFromName("a"));
    expect(found).toHaveLength(1);
    for (const index of open.splice(0)) index.close();
    expect(existsSync(file)).toBe(true);
    const reopened = await openTestIndex(file);
    expect(await reopened.reader.findByTransferId(hashFromName("a"))).toEqual(found);
  });

  test("can be created by several processes at the same time", async () => {
    const file = `${folder()}/at-once`;
    const all = await Promise.all(Array.from({ length: 8 }, () => openTestIndex(file)));
    for (const { reader } of all) expect(await reader.findByTransferId("1")).toEqual([]);
  });

  test.each([
    [
      "views may not be indexed",
      "drop table sends; create view sends as select 1 as transaction_hash; delete from index_migrations",
    ],
  ])("fails to migrate with the reason: %s", async (reason, change) => {
    const { file } = await openTestIndex();
    const connection = await openSqlite(file);
    connection.exec(change);
    connection.close();
    await expect(openIndex(file)).rejects.toMatchObject({
      name: "IndexUnavailableError",
      message: `the index file ${file} cannot be used: ${reason}`,
    });
  });

  test.each([
    ["nowhere/index", /^the index file \S+nowhere\/index cannot be opened/],
    ["text", /^the index file \S+text cannot be used/],
  ])("fails to open with the reason: %s", async (name, message) => {
    await writeFile(`${folder()}/text`, "this is no database at all, but it has some length".repeat(20));
    const opening = openIndex(`${folder()}/${name}`);
    await expect(opening).rejects.toMatchObject({
      name: "IndexUnavailableError",
      message: expect.stringMatching(message),
    });
  });
});
