import { mkdir } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { hexToBytes } from "../../../../../src/transfers/index/store/hex.js";
import { runWithLease } from "../../../../../src/transfers/index/store/lease.js";
import { type IndexHandle, openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { acquireFileLease, createFileLeases } from "../../../../../src/transfers/index/store/sqlite/file-lease.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite/sqlite.js";
import { type IndexSyncListener, syncIndex } from "../../../../../src/transfers/index/sync/index-sync.js";
import { createChainStub } from "../../../../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { hashFromName, mainnetNetwork, transferSentEvent } from "../support/hop-events.js";

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

const isIndexed = (id: string, { reader }: IndexHandle): boolean =>
  reader.findByTransferId(hashFromName(id)).length > 0;

/** A process that syncs the index; its pauses end at once. */
async function launch(file: string) {
  const index = await openIndex(file, mainnetNetwork);
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
  cleanups.push(index.close, stop);
  return { index, events, stop };
}

describe("processes on one file", () => {
  test("one of two processes syncs, both read, and the other takes over", async () => {
    const file = `${folder()}/two`;
    const first = await launch(file);
    await vi.waitFor(() => expect(isIndexed("new", first.index) && isIndexed("old", first.index)).toBe(true), {
      timeout: 60_000,
    });
    const second = await launch(file);
    expect(isIndexed("new", second.index) && isIndexed("old", second.index)).toBe(true);
    await vi.waitFor(() => expect(second.events.onLeaseHeld).toHaveBeenCalledWith("all", { pid: process.pid }), {
      timeout: 60_000,
    });
    expect(first.events.onLeaseHeld).not.toHaveBeenCalled();
    optimism.addBlocks([transferSentEvent("next", { from: "optimism", to: "base" })]);
    await vi.waitFor(() => expect(isIndexed("next", second.index)).toBe(true), { timeout: 60_000 });
    await first.stop();
    optimism.addBlocks([transferSentEvent("after", { from: "optimism", to: "base" })]);
    await vi.waitFor(() => expect(isIndexed("after", second.index)).toBe(true), { timeout: 60_000 });
    for (const { events } of [first, second]) expect(events.onError).not.toHaveBeenCalled();
  });

  test("a lease has one holder at a time and names it", async () => {
    const file = `${folder()}/lease`;
    const first = await acquireFileLease(file, 17);
    expect(await acquireFileLease(file, 18)).toEqual({ pid: 17 });
    if ("release" in first) first.release();
    const second = await acquireFileLease(file, 18);
    expect(second).toHaveProperty("release");
    if ("release" in second) second.release();
  });

  test("a lease that cannot be read is reported once and tried again", async () => {
    const missing = `${folder()}/missing`;
    const onError = vi.fn();
    let pauses = 0;
    const work = vi.fn(async () => {});
    await runWithLease(
      createFileLeases(`${missing}/index`, process.pid),
      "follow",
      {
        sleep: async () => {
          pauses += 1;
          if (pauses === 3) await mkdir(missing);
        },
        onLeaseHeld: vi.fn(),
        onError,
        signal: new AbortController().signal,
      },
      work,
    );
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ name: "IndexUnavailableError" }));
    expect(work).toHaveBeenCalledOnce();
  });

  test("a write waits for another process without blocking the event loop", async () => {
    const file = `${folder()}/busy`;
    const { store, close } = await openIndex(file, mainnetNetwork);
    const other = await openSqlite(file);
    cleanups.push(close, () => other.close());
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
    const writer = await openIndex(file, mainnetNetwork);
    const readers = await Promise.all(Array.from({ length: 4 }, () => openIndex(file, mainnetNetwork)));
    cleanups.push(writer.close, ...readers.map((reader) => reader.close));
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
    };
    const sends = Array.from({ length: 5_000 }, (_, log_index) => ({
      ...row,
      log_index,
      transaction_hash: hexToBytes(hashFromName(`${log_index}`)),
    }));
    const hasRow = ({ reader }: IndexHandle, logIndex: number) =>
      reader.findByTransactionHash(hashFromName(`${logIndex}`)).length === 1;
    let isWritten = false;
    const to = { number: 2, hash: hashFromName("2"), timestamp: 2 };
    const written = writer.store
      .advance(cursor, { sends, deliveries: [] }, { to, isFinal: false, observedAtMs: 2 })
      .then(() => {
        isWritten = true;
      });
    const observations = new Set<string>();
    let reads = 0;
    while (!isWritten) {
      for (const index of readers) {
        // Between two turns of the event loop the writer is in the middle of its transaction.
        const hasRows = [0, 1_000, 4_999].map((logIndex) => hasRow(index, logIndex));
        observations.add(`${hasRows}, ${index.reader.getCoverage("optimism")?.observedAtMs}`);
        reads += 1;
      }
      await setImmediate();
    }
    await written;
    for (const index of readers)
      expect([0, 1_000, 4_999].map((logIndex) => hasRow(index, logIndex))).toEqual([true, true, true]);
    expect(reads).toBeGreaterThan(100);
    expect(
      [...observations].filter((text) => text !== "false,false,false, 1000" && text !== "true,true,true, 2"),
    ).toEqual([]);
  });

  test("two processes that move the same cursor fail instead of writing twice", async () => {
    const file = `${folder()}/both`;
    const [first, second] = await Promise.all([openIndex(file, mainnetNetwork), openIndex(file, mainnetNetwork)]);
    cleanups.push(first.close, second.close);
    await first.store.initializeCursor(10, { number: 1, hash: hashFromName("1"), timestamp: 1 });
    await second.store.initializeCursor(10, { number: 5, hash: hashFromName("5"), timestamp: 5 });
    const cursor = await second.store.readCursor(10);
    if (cursor === undefined) throw new Error("no cursor");
    expect(cursor).toMatchObject({ from_block: 2, to_block: 1 });
    const next = { to: { number: 2, hash: hashFromName("2"), timestamp: 2 }, isFinal: false, observedAtMs: 2 };
    const noRows = { sends: [], deliveries: [] };
    await first.store.advance(cursor, noRows, next);
    await expect(second.store.advance(cursor, noRows, next)).rejects.toThrow("another process");
    await expect(second.store.rollBack(cursor, next.to)).rejects.toThrow("another process");
    // Backfill and realtime sync do not conflict.
    await second.store.prepend(cursor, 0, 0, noRows);
    await expect(first.store.prepend(cursor, 0, 0, noRows)).rejects.toThrow("another process");
    expect(await first.store.readCursor(10)).toMatchObject({ from_block: 0, to_block: 2 });
  });
});
