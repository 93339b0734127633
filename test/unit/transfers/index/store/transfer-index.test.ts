import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type IndexHandle, openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite.js";
import { backfillIndex } from "../../../../../src/transfers/index/sync/index-sync.js";
import { createChainStub } from "../../../../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
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
} from "../support/hop-events.js";

const folder = useTemporaryFolder();
const open: IndexHandle[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

let files = 0;
async function openNew(file = `${folder()}/index-${files++}`): Promise<IndexHandle> {
  const index = await openIndex(file, mainnetNetwork);
  open.push(index);
  return index;
}

/** Chains of 1,000 blocks, all final, with the events that are put into them. */
function createChains() {
  const stubs = new Map(
    [...mainnetNetwork.chains.values()].map(({ slug, chainId }) => [
      slug,
      createChainStub({ slug, chainId, head: 100_000 }),
    ]),
  );
  for (const stub of stubs.values()) stub.finalized = 100_000;
  const of = (slug: string) => {
    const stub = stubs.get(slug);
    if (stub === undefined) throw new Error(`no chain ${slug}`);
    return stub;
  };
  return { of, access: { getClient: (slug: string) => of(slug).client, hasCustomEndpoint: () => false } };
}

/** An index with all that stands on the chains from a block on. */
async function fill(
  chains: ReturnType<typeof createChains>,
  from = 0,
  onBackfillProgress = vi.fn(),
  blocks: ReadonlyMap<string, number> = new Map(),
): Promise<IndexHandle> {
  const index = await openNew();
  const problems: unknown[] = [];
  await backfillIndex({
    index,
    network: mainnetNetwork,
    chains: chains.access,
    blockAt: async () => from,
    from: { timestamp: 0, blocks },
    sleep: (ms) => sleep(ms),
    pid: process.pid,
    events: {
      onError: (...trouble) => problems.push(trouble),
      onLeaseHeld: () => {},
      onBackfillProgress,
    },
    signal: new AbortController().signal,
  });
  expect(problems).toEqual([]);
  return index;
}

describe("what is found", () => {
  test("a transfer over L2 bridges: by hash, by id, by the bonding hash, in any case", async () => {
    const chains = createChains();
    chains.of("optimism").setBlock(100, [transferSentEvent("a", { from: "optimism", to: "arbitrum", token: "USDT" })]);
    chains.of("arbitrum").setBlock(200, [withdrawalBondedEvent("a", { to: "arbitrum", token: "USDT" })]);
    const { reader } = await fill(chains);
    const [found, ...more] = reader.findByTransferId(hashFromName("a"));
    expect(more).toEqual([]);
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
        bonder: addressFromName("by bond a"),
      },
      isFinal: true,
      isUnambiguous: true,
      otherTransferIds: [],
      sourceCoverage: reader.getCoverage("optimism"),
      destinationCoverage: reader.getCoverage("arbitrum"),
    });
    expect(reader.findByTransactionHash(hashFromName("transaction send a"))).toEqual([found]);
    expect(reader.findByTransactionHash(hashFromName("transaction bond a"))).toEqual([found]);
    const upper = `0x${hashFromName("a").slice(2).toUpperCase()}`;
    expect(reader.findByTransferId(upper)).toEqual([found]);
  });

  test("a transfer that nobody bonded is pending; one that was withdrawn has no bonder", async () => {
    const chains = createChains();
    const leg = { from: "base", to: "ethereum" };
    chains.of("base").setBlock(5, [transferSentEvent("p", leg), transferSentEvent("w", leg)]);
    chains.of("ethereum").setBlock(7, [withdrewEvent("w", leg)]);
    const { reader } = await fill(chains);
    expect(reader.findByTransferId(hashFromName("p"))).toMatchObject([{ delivery: undefined, isFinal: true }]);
    expect(reader.findByTransferId(hashFromName("w"))).toMatchObject([
      { delivery: { transactionHash: hashFromName("transaction withdraw w"), blockNumber: 7, bonder: undefined } },
    ]);
  });

  test("what another token's bridge, or another chain's, delivered under the same ID is not this transfer's arrival", async () => {
    const chains = createChains();
    chains.of("optimism").setBlock(1, [transferSentEvent("a", { from: "optimism", to: "arbitrum" })]);
    chains.of("arbitrum").setBlock(2, [withdrawalBondedEvent("a", { to: "arbitrum", token: "USDT" })]);
    chains.of("polygon").setBlock(3, [withdrawalBondedEvent("a", { to: "polygon" })]);
    const { reader } = await fill(chains);
    expect(reader.findByTransferId(hashFromName("a"))).toMatchObject([{ delivery: undefined }]);
    expect(reader.findByTransactionHash(hashFromName("transaction bond a"))).toEqual([]);
  });

  test("several transfers of a transaction, in log order; their arrivals in one", async () => {
    const chains = createChains();
    const leg = { from: "optimism", to: "gnosis" };
    const ids = ["c", "a", "b"];
    chains.of("optimism").setBlock(
      9,
      ids.map((id) => transferSentEvent(id, { ...leg, transaction: "many" })),
    );
    chains.of("gnosis").setBlock(
      9,
      ids.map((id) => withdrawalBondedEvent(id, { ...leg, transaction: "bonds" })),
    );
    const { reader } = await fill(chains);
    for (const hash of ["transaction many", "transaction bonds"]) {
      const found = reader.findByTransactionHash(hashFromName(hash));
      expect(found.map(({ sent }) => sent.id)).toEqual(ids.map(hashFromName));
      expect(found[1]?.otherTransferIds).toEqual([hashFromName("c"), hashFromName("b")]);
    }
    expect(reader.findByTransferId(hashFromName("b"))).toMatchObject([
      { otherTransferIds: [hashFromName("c"), hashFromName("a")] },
    ]);
  });

  test("nothing of a transaction of which not all that it delivered is known: another may be meant", async () => {
    const chains = createChains();
    const leg = { from: "optimism", to: "gnosis" };
    chains.of("optimism").setBlock(9, [transferSentEvent("a", leg)]);
    chains.of("gnosis").setBlock(
      9,
      ["before", "a"].map((id) => withdrawalBondedEvent(id, { ...leg, transaction: "bonds" })),
    );
    const { reader } = await fill(chains);
    expect(reader.findByTransactionHash(hashFromName("transaction bonds"))).toEqual([]);
    expect(reader.findByTransferId(hashFromName("a"))).toMatchObject([
      { delivery: { transactionHash: hashFromName("transaction bonds") } },
    ]);
  });

  test("CCTP: by nonce from each source that has it, by hash of both transactions", async () => {
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
      chains.of(leg.from).setBlock(10, [first, second]);
    }
    chains.of("base").setBlock(20, [messageReceivedEvent(77n, { from: "ethereum", to: "base" })]);
    const { reader } = await fill(chains);
    const found = reader.findByTransferId("77");
    expect(found).toMatchObject([
      {
        sent: { source: { slug: "ethereum" }, id: "77", kind: "cctp", token: "USDC", event: { transferId: "77" } },
        delivery: { transactionHash: hashFromName("transaction mint ethereum 77") },
        otherTransferIds: ["501"],
      },
      { sent: { source: { slug: "arbitrum" } }, delivery: undefined, otherTransferIds: ["502"] },
    ]);
    expect(reader.findByTransactionHash(hashFromName("transaction mint ethereum 77"))).toMatchObject([
      { sent: { id: "77" }, otherTransferIds: [] },
    ]);
    expect(reader.findByTransactionHash(hashFromName("transaction burn arbitrum 77"))[0]).toEqual(found[1]);
  });

  test("of CCTP's arrivals only those that Hop's own contract sent are kept", async () => {
    const chains = createChains();
    const leg = { from: "arbitrum", to: "base" };
    chains.of("arbitrum").setBlock(10, [cctpTransferSentEvent(78n, leg)]);
    chains.of("base").setBlock(20, [messageReceivedEvent(78n, leg, addressFromName("somebody else"))]);
    const { reader } = await fill(chains);
    expect(reader.findByTransferId("78")).toMatchObject([{ delivery: undefined }]);
  });

  test("nothing, for what is not there or is no id at all", async () => {
    const chains = createChains();
    chains.of("optimism").setBlock(1, [transferSentEvent("a", { from: "optimism", to: "arbitrum" })]);
    const { reader } = await fill(chains);
    for (const id of [hashFromName("b"), "79", "0x1", "", "18446744073709551616", hashFromName("transaction send a")]) {
      expect(reader.findByTransferId(id), id).toEqual([]);
    }
    for (const hash of [hashFromName("a"), "0x", "77"]) expect(reader.findByTransactionHash(hash), hash).toEqual([]);
  });
});

describe("transfers from L1", () => {
  const leg = { to: "optimism" };
  const deliveredBy = (index: IndexHandle, hash: string) =>
    index.reader
      .findByTransactionHash(hashFromName(`transaction ${hash}`))
      .map(({ delivery }) => delivery?.transactionHash);

  test("are found by their transaction's hash as id, with their values", async () => {
    const chains = createChains();
    chains.of("ethereum").setBlock(10, [transferSentToL2Event("v", "s1", leg)]);
    chains.of("optimism").setBlock(30, [transferFromL1CompletedEvent("v", "c1", leg)]);
    const { reader } = await fill(chains);
    const hash = hashFromName("transaction s1");
    const [found] = reader.findByTransferId(hash);
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
    expect(reader.findByTransactionHash(hash)).toEqual([found]);
    expect(reader.findByTransactionHash(hashFromName("transaction c1"))).toEqual([found]);
  });

  test("of two alike the earlier one has arrived", async () => {
    const chains = createChains();
    chains.of("ethereum").setBlock(10, [transferSentToL2Event("v", "s1", leg), transferSentToL2Event("v", "s2", leg)]);
    chains
      .of("optimism")
      .setBlock(30, [transferFromL1CompletedEvent("v", "c1", leg), transferFromL1CompletedEvent("other", "c2", leg)]);
    const index = await fill(chains);
    expect(deliveredBy(index, "s1")).toEqual([hashFromName("transaction c1")]);
    expect(deliveredBy(index, "s2")).toEqual([undefined]);
    expect(deliveredBy(index, "c1")).toEqual([hashFromName("transaction c1")]);
    expect(deliveredBy(index, "c2")).toEqual([]);
  });

  test("an arrival from before the first one that is known belongs to one that is not", async () => {
    const chains = createChains();
    // Before the index's first block on L1.
    chains.of("ethereum").setBlock(999, [transferSentToL2Event("v", "s0", leg)]);
    chains.of("optimism").setBlock(1_010, [transferFromL1CompletedEvent("v", "c0", leg)]);
    chains.of("ethereum").setBlock(2_000, [transferSentToL2Event("v", "s1", leg)]);
    const index = await fill(chains, 1_000);
    expect(deliveredBy(index, "s1")).toEqual([undefined]);
    expect(deliveredBy(index, "c0")).toEqual([]);
    chains.of("optimism").setBlock(2_100, [transferFromL1CompletedEvent("v", "c1", leg)]);
    const later = await fill(chains, 1_000);
    expect(deliveredBy(later, "s1")).toEqual([hashFromName("transaction c1")]);
  });

  const certainty = ({ reader }: IndexHandle, of: string) =>
    reader
      .findByTransferId(hashFromName(`transaction ${of}`))
      .map(({ isUnambiguous, isFinal, delivery }) => ({ isUnambiguous, isFinal, by: delivery?.transactionHash }));
  const unknown = [{ isUnambiguous: false, isFinal: true, by: undefined }];
  const arrivedBy = (of: string) => [{ isUnambiguous: true, isFinal: true, by: hashFromName(`transaction ${of}`) }];

  test("are not told apart where the arrival of one may have been before the index begins on its destination", async () => {
    const chains = createChains();
    chains.of("ethereum").setBlock(1_000, [transferSentToL2Event("v", "s1", leg)]);
    chains.of("optimism").setBlock(1_500, [transferFromL1CompletedEvent("v", "c1", leg)]);
    chains
      .of("ethereum")
      .setBlock(60_000, [transferSentToL2Event("v", "s2", leg), transferSentToL2Event("w", "s3", leg)]);
    chains
      .of("optimism")
      .setBlock(60_500, [transferFromL1CompletedEvent("v", "c2", leg), transferFromL1CompletedEvent("w", "c3", leg)]);
    const index = await fill(chains, 50_000, undefined, new Map([["ethereum", 500]]));
    expect(certainty(index, "s1")).toEqual(unknown);
    expect(certainty(index, "s2")).toEqual(unknown);
    expect(certainty(index, "s3")).toEqual(arrivedBy("c3"));
    expect(deliveredBy(index, "c2")).toEqual([]);
  });

  test.each([
    ["none", 0n],
    ["a far one", 1_800_000_000n],
  ])(
    "of which others may be alike, with %s as deadline, are told apart a week after the index begins",
    async (_, deadline) => {
      const alike = { ...leg, deadline };
      const chains = createChains();
      const week = (7 * 86_400) / 2;
      for (const stub of [chains.of("ethereum"), chains.of("optimism")]) {
        stub.head += week;
        stub.finalized = stub.head;
      }
      // It was sent before the index begins, and arrives after another like it has been sent.
      chains.of("ethereum").setBlock(9_990, [transferSentToL2Event("v", "s1", alike)]);
      chains
        .of("ethereum")
        .setBlock(10_010, [transferSentToL2Event("v", "s2", alike), transferSentToL2Event("w", "near", leg)]);
      chains.of("optimism").setBlock(10_300, [transferFromL1CompletedEvent("v", "c1", alike)]);
      chains.of("ethereum").setBlock(10_000 + week, [transferSentToL2Event("u", "s3", alike)]);
      chains.of("optimism").setBlock(10_300 + week, [transferFromL1CompletedEvent("u", "c3", alike)]);
      const index = await fill(chains, 10_000);
      expect(certainty(index, "s2")).toEqual(unknown);
      expect(deliveredBy(index, "c1")).toEqual([]);
      expect(certainty(index, "near")).toEqual([{ isUnambiguous: true, isFinal: true, by: undefined }]);
      expect(certainty(index, "s3")).toEqual(arrivedBy("c3"));
      expect(certainty(await fill(chains), "s2")).toEqual([{ isUnambiguous: true, isFinal: true, by: undefined }]);
    },
  );

  test("where nothing is missing order alone decides, since clocks may differ", async () => {
    const chains = createChains();
    chains.of("ethereum").setBlock(1_000, [transferSentToL2Event("v", "s1", leg)]);
    chains.of("optimism").setBlock(10, [transferFromL1CompletedEvent("v", "c1", leg)]);
    const index = await fill(chains);
    expect(deliveredBy(index, "s1")).toEqual([hashFromName("transaction c1")]);
  });
});

describe("coverage", () => {
  test("says which blocks are there", async () => {
    const chains = createChains();
    const { reader } = await fill(chains, 500);
    // The newest blocks are left for the following.
    expect(reader.getCoverage("optimism")).toEqual({
      fromBlock: 500,
      toBlock: 99_940,
      fromTimestamp: 1_700_001_000,
      finalizedBlock: 99_940,
      observedAtMs: (1_700_000_000 + 99_940 * 2) * 1_000,
    });
    expect(reader.getCoverage("nowhere")).toBeUndefined();
    const empty = await openNew();
    expect(empty.reader.getCoverage("optimism")).toBeUndefined();
  });

  test("ends at the block in which a chain's first contract was made", async () => {
    const chains = createChains();
    // By the SDK's address book the first one there is in block 1,397,238.
    const base = chains.of("base");
    base.head = 1_400_000;
    base.finalized = 1_400_000;
    const onHistory = vi.fn();
    const { reader } = await fill(chains, 0, onHistory);
    expect(reader.getCoverage("base")).toMatchObject({ fromBlock: 0, fromTimestamp: 0 });
    const total = 1_399_941 - 1_397_238;
    expect(onHistory).toHaveBeenCalledWith({ chain: "base", blocksDone: total, blocksTotal: total, events: 0 });
    const searched = base.requests.flat().filter((method) => method === "eth_getLogs").length;
    expect(searched).toBeLessThan(5);
  });
});

describe("the file", () => {
  test("is made with its tables, and opened again with what is in it", async () => {
    const chains = createChains();
    chains.of("optimism").setBlock(1, [transferSentEvent("a", { from: "optimism", to: "arbitrum" })]);
    const { file, reader } = await fill(chains);
    const found = reader.findByTransferId(hashFromName("a"));
    expect(found).toHaveLength(1);
    for (const each of open.splice(0)) each.close();
    expect(existsSync(file)).toBe(true);
    const again = await openNew(file);
    expect(again.reader.findByTransferId(hashFromName("a"))).toEqual(found);
  });

  test("may be opened by many at a time before it is there", async () => {
    const file = `${folder()}/at-once`;
    const all = await Promise.all(Array.from({ length: 8 }, () => openNew(file)));
    for (const { reader } of all) expect(reader.findByTransferId("1")).toEqual([]);
  });

  test.each([
    ["it is of another version", "insert into kysely_migration values ('2999-01-other', '2999')"],
    [
      "views may not be indexed",
      "drop table sends; create view sends as select 1 as transaction_hash; delete from kysely_migration",
    ],
  ])("that cannot be brought up to date is said why: %s", async (why, change) => {
    const { file } = await openNew();
    const connection = await openSqlite(file);
    connection.exec(change);
    connection.close();
    await expect(openIndex(file, mainnetNetwork)).rejects.toMatchObject({
      name: "IndexUnavailableError",
      message: `the index's file ${file} cannot be used: ${why}`,
    });
  });

  test.each([
    ["nowhere/index", /^the index's file \S+nowhere\/index cannot be opened/],
    ["text", /^the index's file \S+text cannot be used/],
  ])("that cannot be used is said so: %s", async (name, message) => {
    await writeFile(`${folder()}/text`, "this is no database at all, but it has some length".repeat(20));
    const opening = openIndex(`${folder()}/${name}`, mainnetNetwork);
    await expect(opening).rejects.toMatchObject({
      name: "IndexUnavailableError",
      message: expect.stringMatching(message),
    });
  });
});
