import { setTimeout as sleep } from "node:timers/promises";
import type { Network } from "../../../hop/networks.js";
import type { IndexChangeFeed } from "./changes/index-changes.js";
import { createIndexStore, type IndexStore } from "./index-store.js";
import type { Leases } from "./lease.js";
import type { DeliveredReader } from "./pages/delivered-statement.js";
import type { IndexTables } from "./schema.js";
import { createFileLeases } from "./sqlite/file-lease.js";
import { migrateIndex } from "./sqlite/migrate-file.js";
import { createKysely, createTransactionRunner, openSqlite } from "./sqlite/sqlite.js";
import { createSqliteChangeFeed } from "./sqlite/sqlite-change-feed.js";
import { createDeliveredReader, createSqliteSource } from "./sqlite/sqlite-statements.js";
import { createTransferIndex, type TransferIndexReader } from "./transfer-index.js";

/** An open index file. */
export interface IndexHandle {
  readonly file: string;
  readonly reader: TransferIndexReader;
  readonly store: IndexStore;
  readonly changes: IndexChangeFeed;
  readonly readDelivered: DeliveredReader;
  /** Leases of the work that one process does for all that share the index. */
  readonly leases: Leases;
  close(): void;
}

/**
 * Opens an index file, creates it if it does not exist, and migrates its tables. Any number of processes may have it open.
 * @throws IndexUnavailableError when the driver is missing or the file cannot be used
 */
export async function openIndex(file: string, network: Network): Promise<IndexHandle> {
  const writer = await openSqlite(file);
  try {
    await migrateIndex(writer, file, process.pid, (ms) => sleep(ms));
    // A separate connection: reads on the writing one would see uncommitted changes.
    const readConnection = await openSqlite(file, { readonly: true });
    const reader = createTransferIndex(createSqliteSource(readConnection, network), network);
    const db = createKysely<IndexTables>(writer);
    const listeners = new Set<{ readonly onWrite: () => void }>();
    const notify = (): void => {
      for (const { onWrite } of listeners) onWrite();
    };
    const subscribe = (onWrite: () => void): (() => void) => {
      const listener = { onWrite };
      listeners.add(listener);
      return () => listeners.delete(listener);
    };
    return {
      file,
      reader,
      store: createIndexStore(
        db,
        createTransactionRunner(writer, db, (ms) => sleep(ms)),
        notify,
      ),
      changes: createSqliteChangeFeed(readConnection, subscribe),
      readDelivered: createDeliveredReader(readConnection),
      leases: createFileLeases(file, process.pid),
      close() {
        reader.close();
        writer.close();
      },
    };
  } catch (error) {
    writer.close();
    throw error;
  }
}
