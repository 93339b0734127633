import { readFile } from "node:fs/promises";
import { sql } from "kysely";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { bytesToHex } from "../../../../src/chain/hex.js";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import { backfillIndex, syncIndex } from "../../../../src/transfers/index/sync/index-sync.js";
import type { TreeQuery } from "../../../../src/transfers/index/transfer-tree.js";
import { type FileIndex, useTestIndexes } from "../../../support/index/open-index.js";
import { createRandom, createRandomEvents } from "../../../support/index/random-events.js";
import { listExpectedTrees } from "../../../support/index/transfer-trees.js";
import { writeEvents } from "../../../support/index/write-events.js";
import type { ChainStub, StubEvent } from "../../../support/stubs/chain-stub.js";
import { createIndexWriter, readCursor } from "./list/list-harness.js";
import {
  getChain,
  hashFromName,
  mainnetNetwork,
  transferSentEvent,
  transfersCommittedEvent,
} from "./support/hop-events.js";
import { createFinalChain, createSyncOptions, startSync } from "./support/sync-harness.js";

const indexes = useTestIndexes();

const LEG = { from: "optimism", to: "base" };
const sent = (id: string, index: number, leg = {}): StubEvent => transferSentEvent(id, { ...LEG, ...leg }, index);
const committed = (root: string, leg = {}): StubEvent => transfersCommittedEvent(root, { ...LEG, ...leg });
const other = transferSentEvent("other", { from: "optimism", to: "arbitrum" }, 7);

/** Optimism at block 10,000, finalized to 9,900; its blocks from 9,901 on have the events. */
function createOptimism(...blocks: readonly (readonly StubEvent[])[]): ChainStub {
  const stub = createFinalChain("optimism", 10_000, 9_900);
  for (const [i, events] of blocks.entries()) stub.setBlock(9_901 + i, events);
  return stub;
}

async function follow(stub: ChainStub, index?: FileIndex) {
  const followed = index ?? (await indexes.open());
  const sync = startSync(followed, stub);
  onTestFinished(() => sync.stop());
  await sync.waitUntilIdle();
  return { index: followed, ...sync };
}

const toQuery = (id: string, blockNumber: number, logIndex: number, more: Partial<TreeQuery> = {}): TreeQuery => ({
  id: hashFromName(id),
  token: "ETH",
  source: getChain("optimism"),
  destination: getChain("base"),
  blockNumber,
  logIndex,
  ...more,
});

/** Reads the tree of a transfer in a short form: the names of its leaves, its place and its root. */
async function readTree({ reader }: FileIndex, names: readonly string[], ...query: Parameters<typeof toQuery>) {
  const tree = await reader.readTree(toQuery(...query));
  const nameOf = (hash = "") => names.find((name) => hashFromName(name) === hash) ?? hash;
  if (tree === undefined) return undefined;
  const { leaves, treeIndex, commit } = tree;
  return [leaves.map(({ transferId }) => nameOf(transferId)).join(""), treeIndex, commit && nameOf(commit.rootHash)];
}

const NAMES = ["a", "b", "c", "d", "R", "S"];

describe("the tree of a transfer", () => {
  test("has the leaves since the commit before, the place, the nonce and the commit", async () => {
    const { index } = await follow(
      createOptimism([sent("a", 0)], [sent("b", 1), other], [committed("R")], [sent("c", 0)]),
    );
    expect(await readTree(index, NAMES, "a", 9_901, 0)).toEqual(["ab", 0, "R"]);
    expect(await readTree(index, NAMES, "c", 9_904, 0)).toEqual(["c", 0, undefined]);
    expect(await index.reader.readTree(toQuery("b", 9_902, 0))).toEqual({
      leaves: ["a", "b"].map((name) => ({ transferId: hashFromName(name), amount: 1_000n })),
      treeIndex: 1,
      transferNonce: hashFromName("nonce b"),
      commit: {
        rootHash: hashFromName("R"),
        totalAmount: 2_000n,
        committedAt: 1_700_000_000,
        transactionHash: hashFromName("transaction commit R"),
        blockNumber: 9_903,
        logIndex: 0,
      },
    });
  });

  test("ends before a send that commits a full collection first", async () => {
    const full = { transaction: "full" };
    const { index } = await follow(createOptimism([sent("a", 0)], [committed("R", full), sent("b", 0, full)]));
    expect(await readTree(index, NAMES, "a", 9_901, 0)).toEqual(["a", 0, "R"]);
    expect(await readTree(index, NAMES, "b", 9_902, 1)).toEqual(["b", 0, undefined]);
  });

  test("is told apart from others of the same block, and of the same transaction", async () => {
    const block = [sent("a", 0), committed("R"), sent("b", 0), sent("c", 1), committed("S"), sent("d", 0)];
    const { index } = await follow(createOptimism(block));
    expect(await readTree(index, NAMES, "a", 9_901, 0)).toEqual(["a", 0, "R"]);
    expect(await readTree(index, NAMES, "b", 9_901, 2)).toEqual(["bc", 0, "S"]);
    expect(await readTree(index, NAMES, "c", 9_901, 3)).toEqual(["bc", 1, "S"]);
    expect(await readTree(index, NAMES, "d", 9_901, 5)).toEqual(["d", 0, undefined]);
  });

  test("is unknown if it begins before the index, if a leaf is missing, and for another transfer", async () => {
    const { index } = await follow(createOptimism([sent("b", 1)], [committed("R")], [sent("c", 0), sent("d", 2)]));
    expect(await readTree(index, NAMES, "b", 9_901, 0)).toBeUndefined();
    expect(await readTree(index, NAMES, "d", 9_903, 1)).toBeUndefined();
    const whole = await follow(createOptimism([sent("a", 0)]));
    expect(await readTree(whole.index, NAMES, "a", 9_901, 0)).toBeDefined();
    expect(await readTree(whole.index, NAMES, "b", 9_901, 0)).toBeUndefined();
    expect(await readTree(whole.index, NAMES, "a", 9_901, 1)).toBeUndefined();
    expect(await readTree(whole.index, NAMES, "a", 9_901, 0, { token: "USDT" })).toBeUndefined();
    expect(await readTree(whole.index, NAMES, "a", 9_901, 0, { source: getChain("nova") })).toBeUndefined();
  });

  test("follows a reorg that moves its commit, and one that removes it", async () => {
    const stub = createOptimism();
    const { index, advance } = await follow(stub);
    stub.addBlocks([sent("a", 0)], [committed("R")]);
    await advance();
    expect(await readTree(index, NAMES, "a", 10_001, 0)).toEqual(["a", 0, "R"]);
    stub.reorg(1, [sent("b", 1), committed("S")]);
    for (const _ of "23") await advance();
    expect(await readTree(index, NAMES, "a", 10_001, 0)).toEqual(["ab", 0, "S"]);
    stub.reorg(1, [sent("b", 1)]);
    for (const _ of "23") await advance();
    expect(await readTree(index, NAMES, "b", 10_002, 0)).toEqual(["ab", 1, undefined]);
  });

  test.each([1, 2])("is as the events say, whatever wrote the index, seed %i", async (seed) => {
    const { chainIds, ...events } = createRandomEvents(createRandom(seed), 500);
    const index = await indexes.open();
    await writeEvents(index.store, events, chainIds);
    const trees = listExpectedTrees(events);
    expect(trees.filter(({ tree }) => tree?.commit !== undefined).length).toBeGreaterThan(50);
    for (const { query, tree } of trees) expect(await index.reader.readTree(query)).toEqual(tree);
  });
});

describe("an index of a version without commits", () => {
  const OLD_BLOCK = [
    transferSentEvent("bonded", { from: "optimism", to: "arbitrum", token: "USDT" }, 0),
    transferSentEvent("pending", { from: "optimism", to: "arbitrum", token: "USDT" }, 1),
  ];
  const OLD = { token: "USDT", destination: getChain("arbitrum") };

  /** An index of the first version, with two transfers in block 1 of Optimism; the chain has gone on and committed them. */
  async function openOldIndex() {
    const file = indexes.createPath();
    const connection = await openSqlite(file);
    connection.exec(await readFile(new URL("./support/first-version.sql", import.meta.url), "utf8"));
    const block = connection.prepare("select hash from blocks where chain_id = 10").all() as { hash: Uint8Array }[];
    connection.close();
    const stub = createFinalChain("optimism", 20, 1);
    stub.setBlock(1, OLD_BLOCK);
    stub.setBlock(15, [transfersCommittedEvent("R", { from: "optimism", to: "arbitrum", token: "USDT" })]);
    const { call } = stub;
    // The block that the index knows.
    stub.call = (method, params) => {
      const result = call(method, params);
      const isFirst = method === "eth_getBlockByNumber" && result !== null && Number(params[0]) === 1;
      return isFirst ? { ...(result as object), hash: bytesToHex(block[0]?.hash ?? Buffer.alloc(0)) } : result;
    };
    return { index: await indexes.open(file), stub };
  }

  const createOptions = (index: FileIndex, stub: ChainStub) =>
    createSyncOptions(index, new Map([["optimism", stub]]), 1);

  const readOldTree = (index: FileIndex) => readTree(index, ["bonded", "pending", "R"], "pending", 1, 1, OLD);
  const readSend = ({ reader }: FileIndex) => reader.findByTransferId(hashFromName("pending"));

  test("tells no tree, and is filled in beside the service", async () => {
    const { index, stub } = await openOldIndex();
    const send = await readSend(index);
    expect(send).toHaveLength(1);
    expect(await readOldTree(index)).toBeUndefined();
    const { options, events, stop } = createOptions(index, stub);
    const done = syncIndex(options);
    onTestFinished(() => done);
    onTestFinished(() => stop());
    await vi.waitFor(async () => expect(await readOldTree(index)).toEqual(["bondedpending", 1, "R"]), {
      timeout: 60_000,
    });
    expect(await readSend(index)).toMatchObject([{ sent: { logIndex: 1 } }]);
    expect(events.onError.mock.calls).toEqual([]);
  });

  test("is filled in by the command, by log searches alone", async () => {
    const { index, stub } = await openOldIndex();
    const { options } = createOptions(index, stub);
    await backfillIndex(options);
    expect(await readOldTree(index)).toEqual(["bondedpending", 1, undefined]);
    expect(new Set(stub.requests.flat())).toEqual(new Set(["eth_getLogs", "eth_getBlockByNumber"]));
    expect(options.events.onBackfillProgress).toHaveBeenLastCalledWith(
      expect.objectContaining({ chain: "optimism", blocksDone: 1, blocksTotal: 1, events: 2 }),
    );
    const { length } = stub.requests;
    await backfillIndex(options);
    expect(stub.requests).toHaveLength(length);
  });

  test("tells no tree while a process of that version follows the chain, and after it only what was filled in again", async () => {
    const { index, stub } = await openOldIndex();
    const { options } = createOptions(index, stub);
    await backfillIndex(options);
    const { builder } = index.database;
    const pollOfOldVersion = () => sql`update cursors set to_block = to_block + 1 where chain_id = 10`.execute(builder);
    await pollOfOldVersion();
    expect(await readOldTree(index)).toBeUndefined();
    await sql`insert into commits values (10, 2, 0, x'00', 'USDT', 42161, x'00', '1', 1)`.execute(builder);
    await sql`insert into blocks select 10, 2, hash, timestamp from blocks where chain_id = 10`.execute(builder);
    await createIndexWriter(index).advance(10, 3, {});
    expect(await index.store.readCursor(10)).toMatchObject({ commits_from_block: 3, commits_to_block: 3 });
    expect(await readOldTree(index)).toBeUndefined();
    await backfillIndex(options);
    expect(await readOldTree(index)).toEqual(["bondedpending", 1, undefined]);
  });

  test("is not searched before Hop's first contract", async () => {
    const { index, stub } = await openOldIndex();
    const deployment = Math.min(
      ...[...mainnetNetwork.contracts.values()].flatMap((byChain) => {
        const { bridgeDeployedBlockNumber: block } = byChain.get("optimism") ?? {};
        return typeof block === "number" ? [block] : [];
      }),
    );
    stub.head = deployment + 1_000;
    await sql`update cursors set from_block = 0, to_block = ${stub.head} where chain_id = 10`.execute(
      index.database.builder,
    );
    const searched: number[] = [];
    const { call } = stub;
    stub.call = (method, params) => {
      if (method === "eth_getLogs") searched.push(Number((params[0] as { readonly fromBlock: string }).fromBlock));
      return call(method, params);
    };
    const { options } = createOptions(index, stub);
    await backfillIndex(options);
    expect(searched.at(-1)).toBe(deployment);
    expect(await index.store.readCursor(10)).toMatchObject({ commits_from_block: 0, commits_to_block: stub.head });
  });

  test("is not filled in over what another process has moved meanwhile", async () => {
    const { index } = await openOldIndex();
    await index.store.beginCommits(10);
    const cursor = await readCursor(index, 10);
    await sql`update cursors set to_block = to_block + 1 where chain_id = 10`.execute(index.database.builder);
    await expect(index.store.fillCommits(cursor, 1, [], [])).rejects.toThrow("another process has moved");
    await index.store.beginCommits(10);
    await expect(index.store.fillCommits(cursor, 1, [], [])).rejects.toThrow("another process has moved");
    await index.store.fillCommits(await readCursor(index, 10), 1, [], []);
    expect(await index.store.readCursor(10)).toMatchObject({ commits_from_block: 1, commits_to_block: 2 });
  });
});
