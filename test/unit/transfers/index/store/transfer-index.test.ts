import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type OpenIndex, openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite.js";
import { fillIndex } from "../../../../../src/transfers/index/sync/index-sync.js";
import { createChainStub } from "../../../../support/stubs/chain-stub.js";
import { temporaryFolder } from "../../../../support/temporary-folder.js";
import {
  addressOf,
  cctpSent,
  chainOf,
  completed,
  hashOf,
  mainnet,
  messageReceived,
  sentToL2,
  transferSent,
  withdrawalBonded,
  withdrew,
} from "../support/hop-events.js";

const folder = temporaryFolder();
const open: OpenIndex[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

let files = 0;
async function openNew(file = `${folder()}/index-${files++}`): Promise<OpenIndex> {
  const index = await openIndex(file, mainnet);
  open.push(index);
  return index;
}

/** Chains of 1,000 blocks, all final, with the events that are put into them. */
function createChains() {
  const stubs = new Map(
    [...mainnet.chains.values()].map(({ slug, chainId }) => [slug, createChainStub({ slug, chainId, head: 100_000 })]),
  );
  for (const stub of stubs.values()) stub.finalized = 100_000;
  const of = (slug: string) => {
    const stub = stubs.get(slug);
    if (stub === undefined) throw new Error(`no chain ${slug}`);
    return stub;
  };
  return { of, access: { client: (slug: string) => of(slug).client, isCustom: () => false } };
}

/** An index with all that stands on the chains from a block on. */
async function fill(
  chains: ReturnType<typeof createChains>,
  from = 0,
  onHistory = vi.fn(),
  blocks: ReadonlyMap<string, number> = new Map(),
): Promise<OpenIndex> {
  const index = await openNew();
  const problems: unknown[] = [];
  await fillIndex({
    index,
    network: mainnet,
    chains: chains.access,
    blockAt: async () => from,
    from: { seconds: 0, blocks },
    sleep: (ms) => sleep(ms),
    pid: process.pid,
    events: {
      onTrouble: (...trouble) => problems.push(trouble),
      onHeld: () => {},
      onHistory,
    },
    signal: new AbortController().signal,
  });
  expect(problems).toEqual([]);
  return index;
}

describe("what is found", () => {
  test("a transfer over L2 bridges: by hash, by id, by the bonding hash, in any case", async () => {
    const chains = createChains();
    chains.of("optimism").put(100, [transferSent("a", { from: "optimism", to: "arbitrum", token: "USDT" })]);
    chains.of("arbitrum").put(200, [withdrawalBonded("a", { to: "arbitrum", token: "USDT" })]);
    const { reader } = await fill(chains);
    const [found, ...more] = reader.byTransferId(hashOf("a"));
    expect(more).toEqual([]);
    expect(found).toEqual({
      sent: {
        kind: "l2",
        id: hashOf("a"),
        token: "USDT",
        source: chainOf("optimism"),
        destination: chainOf("arbitrum"),
        transactionHash: hashOf("transaction send a"),
        blockNumber: 100,
        timestamp: 1_700_000_200,
        logIndex: 0,
        account: addressOf("by send a"),
        event: {
          transferId: hashOf("a"),
          destinationChainId: 42161,
          recipient: addressOf("to a"),
          amount: 1_000n,
          amountOutMin: 900n,
          deadline: 1_800_000_000n,
          bonderFee: 10n,
          relayer: undefined,
        },
      },
      delivery: {
        transactionHash: hashOf("transaction bond a"),
        blockNumber: 200,
        bonder: addressOf("by bond a"),
      },
      isFinal: true,
      isCertain: true,
      otherTransferIds: [],
      source: reader.coverage("optimism"),
      destination: reader.coverage("arbitrum"),
    });
    expect(reader.byTransactionHash(hashOf("transaction send a"))).toEqual([found]);
    expect(reader.byTransactionHash(hashOf("transaction bond a"))).toEqual([found]);
    const upper = `0x${hashOf("a").slice(2).toUpperCase()}`;
    expect(reader.byTransferId(upper)).toEqual([found]);
  });

  test("a transfer that nobody bonded is pending; one that was withdrawn has no bonder", async () => {
    const chains = createChains();
    const leg = { from: "base", to: "ethereum" };
    chains.of("base").put(5, [transferSent("p", leg), transferSent("w", leg)]);
    chains.of("ethereum").put(7, [withdrew("w", leg)]);
    const { reader } = await fill(chains);
    expect(reader.byTransferId(hashOf("p"))).toMatchObject([{ delivery: undefined, isFinal: true }]);
    expect(reader.byTransferId(hashOf("w"))).toMatchObject([
      { delivery: { transactionHash: hashOf("transaction withdraw w"), blockNumber: 7, bonder: undefined } },
    ]);
  });

  test("what another token's bridge, or another chain's, delivered under the same ID is not this transfer's arrival", async () => {
    const chains = createChains();
    chains.of("optimism").put(1, [transferSent("a", { from: "optimism", to: "arbitrum" })]);
    chains.of("arbitrum").put(2, [withdrawalBonded("a", { to: "arbitrum", token: "USDT" })]);
    chains.of("polygon").put(3, [withdrawalBonded("a", { to: "polygon" })]);
    const { reader } = await fill(chains);
    expect(reader.byTransferId(hashOf("a"))).toMatchObject([{ delivery: undefined }]);
    expect(reader.byTransactionHash(hashOf("transaction bond a"))).toEqual([]);
  });

  test("several transfers of a transaction, in log order; their arrivals in one", async () => {
    const chains = createChains();
    const leg = { from: "optimism", to: "gnosis" };
    const ids = ["c", "a", "b"];
    chains.of("optimism").put(
      9,
      ids.map((id) => transferSent(id, { ...leg, transaction: "many" })),
    );
    chains.of("gnosis").put(
      9,
      ids.map((id) => withdrawalBonded(id, { ...leg, transaction: "bonds" })),
    );
    const { reader } = await fill(chains);
    for (const hash of ["transaction many", "transaction bonds"]) {
      const found = reader.byTransactionHash(hashOf(hash));
      expect(found.map(({ sent }) => sent.id)).toEqual(ids.map(hashOf));
      expect(found[1]?.otherTransferIds).toEqual([hashOf("c"), hashOf("b")]);
    }
    expect(reader.byTransferId(hashOf("b"))).toMatchObject([{ otherTransferIds: [hashOf("c"), hashOf("a")] }]);
  });

  test("nothing of a transaction of which not all that it delivered is known: another may be meant", async () => {
    const chains = createChains();
    const leg = { from: "optimism", to: "gnosis" };
    chains.of("optimism").put(9, [transferSent("a", leg)]);
    chains.of("gnosis").put(
      9,
      ["before", "a"].map((id) => withdrawalBonded(id, { ...leg, transaction: "bonds" })),
    );
    const { reader } = await fill(chains);
    expect(reader.byTransactionHash(hashOf("transaction bonds"))).toEqual([]);
    expect(reader.byTransferId(hashOf("a"))).toMatchObject([
      { delivery: { transactionHash: hashOf("transaction bonds") } },
    ]);
  });

  test("CCTP: by nonce from each source that has it, by hash of both transactions", async () => {
    const chains = createChains();
    const legs = [
      { from: "arbitrum", to: "base" },
      { from: "ethereum", to: "base" },
    ];
    for (const leg of legs) {
      const first = cctpSent(77n, leg);
      const second = {
        ...cctpSent(leg.from === "ethereum" ? 501n : 502n, leg),
        transactionHash: first.transactionHash,
      };
      chains.of(leg.from).put(10, [first, second]);
    }
    chains.of("base").put(20, [messageReceived(77n, { from: "ethereum", to: "base" })]);
    const { reader } = await fill(chains);
    const found = reader.byTransferId("77");
    expect(found).toMatchObject([
      {
        sent: { source: { slug: "ethereum" }, id: "77", kind: "cctp", token: "USDC", event: { transferId: "77" } },
        delivery: { transactionHash: hashOf("transaction mint ethereum 77") },
        otherTransferIds: ["501"],
      },
      { sent: { source: { slug: "arbitrum" } }, delivery: undefined, otherTransferIds: ["502"] },
    ]);
    expect(reader.byTransactionHash(hashOf("transaction mint ethereum 77"))).toMatchObject([
      { sent: { id: "77" }, otherTransferIds: [] },
    ]);
    expect(reader.byTransactionHash(hashOf("transaction burn arbitrum 77"))[0]).toEqual(found[1]);
  });

  test("of CCTP's arrivals only those that Hop's own contract sent are kept", async () => {
    const chains = createChains();
    const leg = { from: "arbitrum", to: "base" };
    chains.of("arbitrum").put(10, [cctpSent(78n, leg)]);
    chains.of("base").put(20, [messageReceived(78n, leg, addressOf("somebody else"))]);
    const { reader } = await fill(chains);
    expect(reader.byTransferId("78")).toMatchObject([{ delivery: undefined }]);
  });

  test("nothing, for what is not there or is no id at all", async () => {
    const chains = createChains();
    chains.of("optimism").put(1, [transferSent("a", { from: "optimism", to: "arbitrum" })]);
    const { reader } = await fill(chains);
    for (const id of [hashOf("b"), "79", "0x1", "", "18446744073709551616", hashOf("transaction send a")]) {
      expect(reader.byTransferId(id), id).toEqual([]);
    }
    for (const hash of [hashOf("a"), "0x", "77"]) expect(reader.byTransactionHash(hash), hash).toEqual([]);
  });
});

describe("transfers from L1", () => {
  const leg = { to: "optimism" };
  const deliveredBy = (index: OpenIndex, hash: string) =>
    index.reader.byTransactionHash(hashOf(`transaction ${hash}`)).map(({ delivery }) => delivery?.transactionHash);

  test("are found by their transaction's hash as id, with their values", async () => {
    const chains = createChains();
    chains.of("ethereum").put(10, [sentToL2("v", "s1", leg)]);
    chains.of("optimism").put(30, [completed("v", "c1", leg)]);
    const { reader } = await fill(chains);
    const hash = hashOf("transaction s1");
    const [found] = reader.byTransferId(hash);
    expect(found).toMatchObject({
      otherTransferIds: [],
      sent: {
        kind: "l1",
        id: hash,
        event: {
          transferId: undefined,
          recipient: addressOf("to v"),
          relayer: addressOf("relayer"),
          amount: 2_000n,
          bonderFee: 5n,
        },
      },
      delivery: { transactionHash: hashOf("transaction c1"), blockNumber: 30, bonder: undefined },
    });
    expect(reader.byTransactionHash(hash)).toEqual([found]);
    expect(reader.byTransactionHash(hashOf("transaction c1"))).toEqual([found]);
  });

  test("of two alike the earlier one has arrived", async () => {
    const chains = createChains();
    chains.of("ethereum").put(10, [sentToL2("v", "s1", leg), sentToL2("v", "s2", leg)]);
    chains.of("optimism").put(30, [completed("v", "c1", leg), completed("other", "c2", leg)]);
    const index = await fill(chains);
    expect(deliveredBy(index, "s1")).toEqual([hashOf("transaction c1")]);
    expect(deliveredBy(index, "s2")).toEqual([undefined]);
    expect(deliveredBy(index, "c1")).toEqual([hashOf("transaction c1")]);
    expect(deliveredBy(index, "c2")).toEqual([]);
  });

  test("an arrival from before the first one that is known belongs to one that is not", async () => {
    const chains = createChains();
    // Before the index's first block on L1.
    chains.of("ethereum").put(999, [sentToL2("v", "s0", leg)]);
    chains.of("optimism").put(1_010, [completed("v", "c0", leg)]);
    chains.of("ethereum").put(2_000, [sentToL2("v", "s1", leg)]);
    const index = await fill(chains, 1_000);
    expect(deliveredBy(index, "s1")).toEqual([undefined]);
    expect(deliveredBy(index, "c0")).toEqual([]);
    chains.of("optimism").put(2_100, [completed("v", "c1", leg)]);
    const later = await fill(chains, 1_000);
    expect(deliveredBy(later, "s1")).toEqual([hashOf("transaction c1")]);
  });

  const certainty = ({ reader }: OpenIndex, of: string) =>
    reader
      .byTransferId(hashOf(`transaction ${of}`))
      .map(({ isCertain, isFinal, delivery }) => ({ isCertain, isFinal, by: delivery?.transactionHash }));
  const unknown = [{ isCertain: false, isFinal: true, by: undefined }];
  const arrivedBy = (of: string) => [{ isCertain: true, isFinal: true, by: hashOf(`transaction ${of}`) }];

  test("are not told apart where the arrival of one may have been before the index begins on its destination", async () => {
    const chains = createChains();
    chains.of("ethereum").put(1_000, [sentToL2("v", "s1", leg)]);
    chains.of("optimism").put(1_500, [completed("v", "c1", leg)]);
    chains.of("ethereum").put(60_000, [sentToL2("v", "s2", leg), sentToL2("w", "s3", leg)]);
    chains.of("optimism").put(60_500, [completed("v", "c2", leg), completed("w", "c3", leg)]);
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
      chains.of("ethereum").put(9_990, [sentToL2("v", "s1", alike)]);
      chains.of("ethereum").put(10_010, [sentToL2("v", "s2", alike), sentToL2("w", "near", leg)]);
      chains.of("optimism").put(10_300, [completed("v", "c1", alike)]);
      chains.of("ethereum").put(10_000 + week, [sentToL2("u", "s3", alike)]);
      chains.of("optimism").put(10_300 + week, [completed("u", "c3", alike)]);
      const index = await fill(chains, 10_000);
      expect(certainty(index, "s2")).toEqual(unknown);
      expect(deliveredBy(index, "c1")).toEqual([]);
      expect(certainty(index, "near")).toEqual([{ isCertain: true, isFinal: true, by: undefined }]);
      expect(certainty(index, "s3")).toEqual(arrivedBy("c3"));
      expect(certainty(await fill(chains), "s2")).toEqual([{ isCertain: true, isFinal: true, by: undefined }]);
    },
  );

  test("where nothing is missing order alone decides, since clocks may differ", async () => {
    const chains = createChains();
    chains.of("ethereum").put(1_000, [sentToL2("v", "s1", leg)]);
    chains.of("optimism").put(10, [completed("v", "c1", leg)]);
    const index = await fill(chains);
    expect(deliveredBy(index, "s1")).toEqual([hashOf("transaction c1")]);
  });
});

describe("coverage", () => {
  test("says which blocks are there", async () => {
    const chains = createChains();
    const { reader } = await fill(chains, 500);
    // The newest blocks are left for the following.
    expect(reader.coverage("optimism")).toEqual({
      from: 500,
      to: 99_940,
      fromTimestamp: 1_700_001_000,
      finalTo: 99_940,
      observedAt: (1_700_000_000 + 99_940 * 2) * 1_000,
    });
    expect(reader.coverage("nowhere")).toBeUndefined();
    const empty = await openNew();
    expect(empty.reader.coverage("optimism")).toBeUndefined();
  });

  test("ends at the block in which a chain's first contract was made", async () => {
    const chains = createChains();
    // By the SDK's address book the first one there is in block 1,397,238.
    const base = chains.of("base");
    base.head = 1_400_000;
    base.finalized = 1_400_000;
    const onHistory = vi.fn();
    const { reader } = await fill(chains, 0, onHistory);
    expect(reader.coverage("base")).toMatchObject({ from: 0, fromTimestamp: 0 });
    const total = 1_399_941 - 1_397_238;
    expect(onHistory).toHaveBeenCalledWith({ slug: "base", done: total, total, events: 0 });
    const searched = base.requests.flat().filter((method) => method === "eth_getLogs").length;
    expect(searched).toBeLessThan(5);
  });
});

describe("the file", () => {
  test("is made with its tables, and opened again with what is in it", async () => {
    const chains = createChains();
    chains.of("optimism").put(1, [transferSent("a", { from: "optimism", to: "arbitrum" })]);
    const { file, reader } = await fill(chains);
    const found = reader.byTransferId(hashOf("a"));
    expect(found).toHaveLength(1);
    for (const each of open.splice(0)) each.close();
    expect(existsSync(file)).toBe(true);
    const again = await openNew(file);
    expect(again.reader.byTransferId(hashOf("a"))).toEqual(found);
  });

  test("may be opened by many at a time before it is there", async () => {
    const file = `${folder()}/at-once`;
    const all = await Promise.all(Array.from({ length: 8 }, () => openNew(file)));
    for (const { reader } of all) expect(reader.byTransferId("1")).toEqual([]);
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
    await expect(openIndex(file, mainnet)).rejects.toMatchObject({
      name: "IndexUnavailable",
      message: `the index's file ${file} cannot be used: ${why}`,
    });
  });

  test.each([
    ["nowhere/index", /^the index's file \S+nowhere\/index cannot be opened/],
    ["text", /^the index's file \S+text cannot be used/],
  ])("that cannot be used is said so: %s", async (name, message) => {
    await writeFile(`${folder()}/text`, "this is no database at all, but it has some length".repeat(20));
    const opening = openIndex(`${folder()}/${name}`, mainnet);
    await expect(opening).rejects.toMatchObject({ name: "IndexUnavailable", message: expect.stringMatching(message) });
  });
});
