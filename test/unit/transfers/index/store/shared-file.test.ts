import { mkdir } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { hexToBytes } from "../../../../../src/transfers/index/store/hex.js";
import { acquireLease, runWithLease } from "../../../../../src/transfers/index/store/lease.js";
import { type IndexHandle, openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite.js";
import { type IndexSyncListener, syncIndex } from "../../../../../src/transfers/index/sync/index-sync.js";
import { createChainStub } from "../../../../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { hashFromName, mainnetNetwork, transferSentEvent } from "../support/hop-events.js";

// Several connections to one file, as several processes have them.

const folder = useTemporaryFolder();
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
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

const known = (id: string, { reader }: IndexHandle): boolean => reader.findByTransferId(hashFromName(id)).length > 0;

/** A process that follows: its pauses are over at once. */
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
    pid: process.pid,
    events,
    signal: stopping.signal,
  });
  const stop = async (): Promise<void> => {
    stopping.abort();
    await done;
  };
  ends.push(index.close, stop);
  return { index, events, stop };
}

describe("processes on one file", () => {
  test("of two one follows and fills; both see it; the other takes over", async () => {
    const file = `${folder()}/two`;
    const first = await launch(file);
    await vi.waitFor(() => expect(known("new", first.index) && known("old", first.index)).toBe(true), {
      timeout: 60_000,
    });
    const second = await launch(file);
    expect(known("new", second.index) && known("old", second.index)).toBe(true);
    await vi.waitFor(() => expect(second.events.onLeaseHeld).toHaveBeenCalledWith("all", { pid: process.pid }), {
      timeout: 60_000,
    });
    expect(first.events.onLeaseHeld).not.toHaveBeenCalled();
    optimism.addBlocks([transferSentEvent("next", { from: "optimism", to: "base" })]);
    await vi.waitFor(() => expect(known("next", second.index)).toBe(true), { timeout: 60_000 });
    await first.stop();
    optimism.addBlocks([transferSentEvent("after", { from: "optimism", to: "base" })]);
    await vi.waitFor(() => expect(known("after", second.index)).toBe(true), { timeout: 60_000 });
    for (const { events } of [first, second]) expect(events.onError).not.toHaveBeenCalled();
  });

  test("a lease is one process's at a time, and says whose", async () => {
    const file = `${folder()}/lease`;
    const first = await acquireLease(file, 17);
    expect(await acquireLease(file, 18)).toEqual({ pid: 17 });
    if ("release" in first) first.release();
    const second = await acquireLease(file, 18);
    expect(second).toHaveProperty("release");
    if ("release" in second) second.release();
  });

  test("a lease that cannot be asked for is told of once, and asked for again", async () => {
    const missing = `${folder()}/missing`;
    const onError = vi.fn();
    let pauses = 0;
    const work = vi.fn(async () => {});
    await runWithLease(
      `${missing}/lease`,
      {
        pid: process.pid,
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

  test("while another process writes nothing stands still, and what is to be written waits", async () => {
    const file = `${folder()}/busy`;
    const { store, close } = await openIndex(file, mainnetNetwork);
    const other = await openSqlite(file);
    ends.push(close, () => other.close());
    other.exec("BEGIN IMMEDIATE");
    const written = store.initializeCursor(10, { number: 1, hash: hashFromName("1"), timestamp: 1 });
    await setImmediate();
    expect(await store.readCursor(10)).toBeUndefined();
    other.exec("ROLLBACK");
    await written;
    expect(await store.readCursor(10)).toMatchObject({ to_block: 1 });
  });

  test("readers see a transaction as a whole or not at all, and never wait for it", async () => {
    const file = `${folder()}/readers`;
    const writing = await openIndex(file, mainnetNetwork);
    const readers = await Promise.all(Array.from({ length: 4 }, () => openIndex(file, mainnetNetwork)));
    ends.push(writing.close, ...readers.map((each) => each.close));
    const block = { number: 1, hash: hashFromName("1"), timestamp: 1 };
    await writing.store.initializeCursor(10, block);
    const cursor = await writing.store.readCursor(10);
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
    const isIn = ({ reader }: IndexHandle, place: number) =>
      reader.findByTransactionHash(hashFromName(`${place}`)).length === 1;
    let isDone = false;
    const to = { number: 2, hash: hashFromName("2"), timestamp: 2 };
    const written = writing.store
      .advance(cursor, { sends, deliveries: [] }, { to, isFinal: false, observedAtMs: 2 })
      .then(() => {
        isDone = true;
      });
    const seen = new Set<string>();
    let reads = 0;
    while (!isDone) {
      for (const each of readers) {
        // On the way through the event loop the writer is in the middle of its transaction.
        const isThere = [0, 1_000, 4_999].map((place) => isIn(each, place));
        seen.add(`${isThere}, ${each.reader.getCoverage("optimism")?.observedAtMs}`);
        reads += 1;
      }
      await setImmediate();
    }
    await written;
    for (const each of readers) expect([0, 1_000, 4_999].map((place) => isIn(each, place))).toEqual([true, true, true]);
    expect(reads).toBeGreaterThan(100);
    expect([...seen].filter((each) => each !== "false,false,false, 1000" && each !== "true,true,true, 2")).toEqual([]);
  });

  test("two that write the same at a time are told, and nothing is there twice", async () => {
    const file = `${folder()}/both`;
    const [first, second] = await Promise.all([openIndex(file, mainnetNetwork), openIndex(file, mainnetNetwork)]);
    ends.push(first.close, second.close);
    await first.store.initializeCursor(10, { number: 1, hash: hashFromName("1"), timestamp: 1 });
    await second.store.initializeCursor(10, { number: 5, hash: hashFromName("5"), timestamp: 5 });
    const cursor = await second.store.readCursor(10);
    if (cursor === undefined) throw new Error("no cursor");
    expect(cursor).toMatchObject({ from_block: 2, to_block: 1 });
    const next = { to: { number: 2, hash: hashFromName("2"), timestamp: 2 }, isFinal: false, observedAtMs: 2 };
    const nothing = { sends: [], deliveries: [] };
    await first.store.advance(cursor, nothing, next);
    await expect(second.store.advance(cursor, nothing, next)).rejects.toThrow("another process");
    await expect(second.store.rollBack(cursor, next.to)).rejects.toThrow("another process");
    // History and head do not disturb each other.
    await second.store.prepend(cursor, 0, 0, nothing);
    await expect(first.store.prepend(cursor, 0, 0, nothing)).rejects.toThrow("another process");
    expect(await first.store.readCursor(10)).toMatchObject({ from_block: 0, to_block: 2 });
  });
});
