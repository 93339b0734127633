import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { hexToBytes } from "../../../../src/chain/hex.js";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import { type IndexSyncListener, syncIndex } from "../../../../src/transfers/index/sync/index-sync.js";
import type { TransferIndex } from "../../../../src/transfers/index/transfer-index.js";
import { openIndex } from "../../../support/index/open-index.js";
import { createChainStub } from "../../../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";
import { hashFromName, mainnetNetwork, transferSentEvent } from "./support/hop-events.js";

// Several connections to one file stand for several processes.

const folder = useTemporaryFolder();
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

const stubs = new Map(
  [...mainnetNetwork.chains.values()].map(({ slug, chainId }) => {
    const stub = createChainStub({ slug, chainId, head: 10_000 });
    stub.finalized = 9_900;
    return [slug, stub];
  }),
);
const optimism = stubs.get("optimism");
if (optimism === undefined) throw new Error("no optimism");
optimism.setBlock(9_000, [transferSentEvent("old", { from: "optimism", to: "base" })]);
optimism.setBlock(9_999, [transferSentEvent("new", { from: "optimism", to: "base" })]);

const isIndexed = async (id: string, { reader }: TransferIndex): Promise<boolean> =>
  (await reader.findByTransferId(hashFromName(id))).length > 0;

/** A process that syncs the index; its pauses end at once. */
async function launch(file: string) {
  const index = await openIndex(file);
  const stopping = new AbortController();
  const events = {
    onError: vi.fn(),
    onReorg: vi.fn(),
    onLeaseHeld: vi.fn(),
    onBackfillProgress: vi.fn(),
  } satisfies IndexSyncListener;
  const done = syncIndex({
    index,
    network: mainnetNetwork,
    chains: { getClient: (slug) => stubs.get(slug)?.client as never, hasCustomEndpoint: () => false },
    blockAt: async () => 0,
    from: { timestamp: 0, blocks: new Map() },
    wallNow: () => 1_800_000_000_000,
    monotonicNow: () => 0,
    sleep: async () => {
      await setImmediate();
    },
    events,
    signal: stopping.signal,
  });
  const stop = async (): Promise<void> => {
    stopping.abort();
    await done;
  };
  cleanups.push(() => index.close(), stop);
  return { index, events, stop };
}

describe("processes on one file", () => {
  test("one of two processes syncs, both read, and the other takes over", async () => {
    const file = `${folder()}/two`;
    const first = await launch(file);
    await vi.waitFor(
      async () =>
        expect([await isIndexed("new", first.index), await isIndexed("old", first.index)]).toEqual([true, true]),
      {
        timeout: 60_000,
      },
    );
    const second = await launch(file);
    expect([await isIndexed("new", second.index), await isIndexed("old", second.index)]).toEqual([true, true]);
    await vi.waitFor(() => expect(second.events.onLeaseHeld).toHaveBeenCalledWith("all", { pid: process.pid }), {
      timeout: 60_000,
    });
    expect(first.events.onLeaseHeld).not.toHaveBeenCalled();
    optimism.addBlocks([transferSentEvent("next", { from: "optimism", to: "base" })]);
    await vi.waitFor(async () => expect(await isIndexed("next", second.index)).toBe(true), { timeout: 60_000 });
    await first.stop();
    optimism.addBlocks([transferSentEvent("after", { from: "optimism", to: "base" })]);
    await vi.waitFor(async () => expect(await isIndexed("after", second.index)).toBe(true), { timeout: 60_000 });
    for (const { events } of [first, second]) expect(events.onError).not.toHaveBeenCalled();
  });

  test("a write waits for another process without blocking the event loop", async () => {
    const file = `${folder()}/busy`;
    const index = await openIndex(file);
    const { store } = index;
    const other = await openSqlite(file);
    cleanups.push(
      () => index.close(),
      () => other.close(),
    );
    other.exec("BEGIN IMMEDIATE");
    const written = store.initializeCursor(10, { number: 1, hash: hashFromName("1"), timestamp: 1 });
    await setImmediate();
    expect(await store.readCursor(10)).toBeUndefined();
    other.exec("ROLLBACK");
    await written;
    expect(await store.readCursor(10)).toMatchObject({ to_block: 1 });
  });

  test("readers see a transaction completely or not at all, and never wait for it", async () => {
    const file = `${folder()}/readers`;
    const writer = await openIndex(file);
    const readers = await Promise.all(Array.from({ length: 4 }, () => openIndex(file)));
    cleanups.push(...[writer, ...readers].map((index) => () => index.close()));
    const block = { number: 1, hash: hashFromName("1"), timestamp: 1 };
    await writer.store.initializeCursor(10, block);
    const cursor = await writer.store.readCursor(10);
    if (cursor === undefined) throw new Error("no cursor");
    const row = {
      chain_id: 10,
      block_number: 2,
      token: "ETH",
      arrival_key: Buffer.alloc(32),
      kind: "l2" as const,
      destination_chain_id: 8453,
      recipient: Buffer.alloc(20),
      amount: "1",
      amount_out_min: "1",
      deadline: "1",
      bonder_fee: "1",
      relayer: null,
      account: Buffer.alloc(20),
      timestamp: 2,
      transfer_nonce: null,
      tree_index: null,
    };
    const sends = Array.from({ length: 5_000 }, (_, log_index) => ({
      ...row,
      log_index,
      transaction_hash: hexToBytes(hashFromName(`${log_index}`)),
    }));
    const hasRow = async ({ reader }: TransferIndex, logIndex: number) =>
      (await reader.findByTransactionHash(hashFromName(`${logIndex}`))).length === 1;
    const hasRows = (index: TransferIndex) => Promise.all([0, 1_000, 4_999].map((logIndex) => hasRow(index, logIndex)));
    let isWritten = false;
    const to = { number: 2, hash: hashFromName("2"), timestamp: 2 };
    const written = writer.store
      .advance(cursor, { sends, deliveries: [], commits: [] }, { to, isFinal: false, observedAtMs: 2 })
      .then(() => {
        isWritten = true;
      });
    const observations = new Set<string>();
    let reads = 0;
    while (!isWritten) {
      for (const index of readers) {
        // Between two turns of the event loop the writer is in the middle of its transaction.
        observations.add(
          `${await hasRows(index)}, ${(await index.reader.readCoverage()).get("optimism")?.observedAtMs}`,
        );
        reads += 1;
      }
      await setImmediate();
    }
    await written;
    for (const index of readers) expect(await hasRows(index)).toEqual([true, true, true]);
    expect(reads).toBeGreaterThan(100);
    expect(
      [...observations].filter((text) => text !== "false,false,false, 1000" && text !== "true,true,true, 2"),
    ).toEqual([]);
  });

  test("two processes that move the same cursor fail instead of writing twice", async () => {
    const file = `${folder()}/both`;
    const [first, second] = await Promise.all([openIndex(file), openIndex(file)]);
    cleanups.push(...[first, second].map((index) => () => index.close()));
    await first.store.initializeCursor(10, { number: 1, hash: hashFromName("1"), timestamp: 1 });
    await second.store.initializeCursor(10, { number: 5, hash: hashFromName("5"), timestamp: 5 });
    const cursor = await second.store.readCursor(10);
    if (cursor === undefined) throw new Error("no cursor");
    expect(cursor).toMatchObject({ from_block: 2, to_block: 1 });
    const next = { to: { number: 2, hash: hashFromName("2"), timestamp: 2 }, isFinal: false, observedAtMs: 2 };
    const noRows = { sends: [], deliveries: [], commits: [] };
    await first.store.advance(cursor, noRows, next);
    await expect(second.store.advance(cursor, noRows, next)).rejects.toThrow("another process");
    await expect(second.store.rollBack(cursor, next.to)).rejects.toThrow("another process");
    // Backfill and realtime sync do not conflict.
    await second.store.prepend(cursor, { number: 0, timestamp: 0 }, noRows);
    await expect(first.store.prepend(cursor, { number: 0, timestamp: 0 }, noRows)).rejects.toThrow("another process");
    expect(await first.store.readCursor(10)).toMatchObject({ from_block: 0, to_block: 2 });
  });
});
