import { setImmediate } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import { syncIndex } from "../../../../src/transfers/index/sync/index-sync.js";
import type { TransferIndex } from "../../../../src/transfers/index/transfer-index.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { useTestIndexes } from "../../../support/index/open-index.js";
import { createBlock, createIndexWriter, NO_ROWS, readCursor } from "./list/list-harness.js";
import { hashFromName, mainnetNetwork, transferSentEvent } from "./support/hop-events.js";
import { bytesFromName, createSendRow, OPTIMISM_CHAIN_ID } from "./support/index-rows.js";
import { createFinalChain, createSyncOptions } from "./support/sync-harness.js";

// Several connections to one file stand for several processes.

const indexes = useTestIndexes();

describe("processes on one file", () => {
  test("one of two processes syncs, both read, and the other takes over", async () => {
    const stubs = new Map(
      [...mainnetNetwork.chains.keys()].map((slug) => [slug, createFinalChain(slug, 10_000, 9_900)]),
    );
    const optimism = stubs.get("optimism") ?? createFinalChain("optimism", 0);
    const sent = (id: string) => transferSentEvent(id, { from: "optimism", to: "base" });
    optimism.setBlock(9_000, [sent("old")]);
    optimism.setBlock(9_999, [sent("new")]);
    const path = indexes.createPath();
    async function launch() {
      const index = await indexes.open(path);
      const { options, events, stop } = createSyncOptions(index, stubs);
      const done = syncIndex(options);
      const end = (): Promise<void> => {
        stop();
        return done;
      };
      onTestFinished(end);
      return { index, events, end };
    }
    const waitUntilIndexed = ({ reader }: TransferIndex, id: string) =>
      vi.waitFor(async () => expect(await reader.findByTransferId(hashFromName(id))).toHaveLength(1), {
        timeout: 60_000,
      });
    const first = await launch();
    for (const id of ["old", "new"]) await waitUntilIndexed(first.index, id);
    const second = await launch();
    for (const id of ["old", "new"])
      expect(await second.index.reader.findByTransferId(hashFromName(id))).toHaveLength(1);
    await vi.waitFor(() => expect(second.events.onLeaseHeld).toHaveBeenCalledWith("all", { pid: process.pid }), {
      timeout: 60_000,
    });
    expect(first.events.onLeaseHeld).not.toHaveBeenCalled();
    optimism.addBlocks([sent("next")]);
    await waitUntilIndexed(second.index, "next");
    await first.end();
    optimism.addBlocks([sent("after")]);
    await waitUntilIndexed(second.index, "after");
    for (const { events } of [first, second]) expect(events.onError).not.toHaveBeenCalled();
  });

  test("a write waits for another process without blocking the event loop", async () => {
    const { store, file } = await indexes.open();
    const other = closeAfterTest(await openSqlite(file));
    other.exec("BEGIN IMMEDIATE");
    const written = store.initializeCursor(OPTIMISM_CHAIN_ID, createBlock(1));
    await setImmediate();
    expect(await store.readCursor(OPTIMISM_CHAIN_ID)).toBeUndefined();
    other.exec("ROLLBACK");
    await written;
    expect(await store.readCursor(OPTIMISM_CHAIN_ID)).toMatchObject({ to_block: 1 });
  });

  test("readers see a transaction completely or not at all, and never wait for it", async () => {
    const index = await indexes.open();
    const readers = await Promise.all(Array.from({ length: 4 }, () => indexes.open(index.file)));
    const writer = createIndexWriter(index);
    await writer.initialize([OPTIMISM_CHAIN_ID]);
    const sends = Array.from({ length: 5_000 }, (_, number) =>
      createSendRow(bytesFromName(`${number}`), `${number}`, { block_number: 2 }),
    );
    const hasRow = async ({ reader }: TransferIndex, number: number) =>
      (await reader.findByTransactionHash(hashFromName(`${number}`))).length === 1;
    const hasRows = (reader: TransferIndex) => Promise.all([0, 1_000, 4_999].map((number) => hasRow(reader, number)));
    let isWritten = false;
    const written = writer.advance(OPTIMISM_CHAIN_ID, 2, { sends }).then(() => {
      isWritten = true;
    });
    const observations = new Set<string>();
    let reads = 0;
    while (!isWritten) {
      for (const each of readers) {
        // Between two turns of the event loop the writer is in the middle of its transaction.
        const coverage = (await each.reader.readCoverage()).get("optimism");
        observations.add(`${await hasRows(each)}, ${coverage?.toBlock}`);
        reads += 1;
      }
      await setImmediate();
    }
    await written;
    for (const reader of readers) expect(await hasRows(reader)).toEqual([true, true, true]);
    expect(reads).toBeGreaterThan(100);
    const consistent = ["false,false,false, 1", "true,true,true, 2"];
    expect([...observations].filter((text) => !consistent.includes(text))).toEqual([]);
  });

  test("two processes that move the same cursor fail instead of writing twice", async () => {
    const first = await indexes.open();
    const second = await indexes.open(first.file);
    await first.store.initializeCursor(10, createBlock(1));
    await second.store.initializeCursor(10, createBlock(5));
    const cursor = await readCursor(second, 10);
    expect(cursor).toMatchObject({ from_block: 2, to_block: 1 });
    const next = { to: createBlock(2), isFinal: false, observedAtMs: 2 };
    await first.store.advance(cursor, NO_ROWS, next);
    await expect(second.store.advance(cursor, NO_ROWS, next)).rejects.toThrow("another process");
    await expect(second.store.rollBack(cursor, next.to)).rejects.toThrow("another process");
    // Backfill and realtime sync do not conflict.
    await second.store.prepend(cursor, { number: 0, timestamp: 0 }, NO_ROWS);
    await expect(first.store.prepend(cursor, { number: 0, timestamp: 0 }, NO_ROWS)).rejects.toThrow("another process");
    expect(await first.store.readCursor(10)).toMatchObject({ from_block: 0, to_block: 2 });
  });
});
