import { setTimeout as sleep } from "node:timers/promises";
import type { Network } from "../../../hop/networks.js";
import { createIndexStore, type IndexStore } from "./index-store.js";
import { type IndexTables, migrateIndex } from "./schema.js";
import { createQueryBuilder, createTransactionRunner, openSqlite } from "./sqlite.js";
import { createTransferIndex, type TransferIndex } from "./transfer-index.js";

/** The index of one file. */
export interface IndexHandle {
  readonly file: string;
  readonly reader: TransferIndex;
  readonly store: IndexStore;
  close(): void;
}

/**
 * Opens a file, makes it where there is none, and brings its tables up to date. Any number of processes may have it open.
 * @throws IndexUnavailable when the driver is missing or the file cannot be used
 */
export async function openIndex(file: string, network: Network): Promise<IndexHandle> {
  const writing = await openSqlite(file);
  try {
    await migrateIndex(writing, file, process.pid, (ms) => sleep(ms));
    // Of its own: reads on the writing one would see what is not committed.
    const reading = await openSqlite(file, { readonly: true });
    const reader = createTransferIndex(reading, network);
    const db = createQueryBuilder<IndexTables>(writing);
    return {
      file,
      reader,
      store: createIndexStore(
        db,
        createTransactionRunner(writing, db, (ms) => sleep(ms)),
      ),
      close() {
        reader.close();
        writing.close();
      },
    };
  } catch (error) {
    writing.close();
    throw error;
  }
}
