import { setTimeout as sleep } from "node:timers/promises";
import type { Network } from "../../../hop/networks.js";
import { createIndexStore, type IndexStore } from "./index-store.js";
import { migrate, type Tables } from "./schema.js";
import { openSqlite, queriesOn, transactionsOn } from "./sqlite.js";
import { createTransferIndex, type TransferIndex } from "./transfer-index.js";

/** The index of one file. */
export interface OpenIndex {
  readonly file: string;
  readonly reader: TransferIndex;
  readonly store: IndexStore;
  close(): void;
}

/**
 * Opens a file, makes it where there is none, and brings its tables up to date. Any number of processes may have it open.
 * @throws IndexUnavailable when the driver is missing or the file cannot be used
 */
export async function openIndex(file: string, network: Network): Promise<OpenIndex> {
  const writing = await openSqlite(file);
  try {
    await migrate(writing, file, process.pid, (ms) => sleep(ms));
    // Of its own: reads on the writing one would see what is not committed.
    const reading = await openSqlite(file, { readonly: true });
    const reader = createTransferIndex(reading, network);
    const db = queriesOn<Tables>(writing);
    return {
      file,
      reader,
      store: createIndexStore(
        db,
        transactionsOn(writing, db, (ms) => sleep(ms)),
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
