import type { Lease, LeaseHolder, Leases } from "../lease.js";
import { isSqliteBusy, openSqlite, type SqliteConnection } from "./sqlite.js";

/** Interval of the attempts while another process holds a lease. */
const RETRY_INTERVAL_MS = 3_000;
/** The operating system takes a lock from a process only when it ends. */
const NEVER = new AbortController().signal;

/** Creates the leases of an index file: each is a lock on a small file beside it. */
export function createFileLeases(file: string, pid: number): Leases {
  return {
    acquire: (name) => acquireFileLease(`${file}.${name}`, pid),
    waitForRelease: (sleep, signal) => sleep(RETRY_INTERVAL_MS, signal),
  };
}

/**
 * Acquires a lease, or returns its holder. The lease is a lock on a small file of its own, which the operating system
 * releases when the process ends, however it ends.
 * @param pid process ID that other processes see
 */
export async function acquireFileLease(file: string, pid: number): Promise<Lease | LeaseHolder> {
  const connection = await openSqlite(file, { timeout: 0 });
  try {
    // This lock admits readers, so that other processes can read the process ID.
    connection.exec("BEGIN IMMEDIATE");
    connection.pragma(`user_version = ${pid}`);
    connection.exec("COMMIT");
    connection.exec("BEGIN IMMEDIATE");
  } catch (error) {
    if (!isSqliteBusy(error)) {
      connection.close();
      throw error;
    }
    const holder = readLeaseHolder(connection);
    connection.close();
    return holder;
  }
  return { lost: NEVER, release: () => void connection.close() };
}

function readLeaseHolder(connection: SqliteConnection): LeaseHolder {
  try {
    return { pid: Number(connection.pragma("user_version", { simple: true })) };
  } catch (error) {
    // The holder is writing its process ID at this moment.
    if (isSqliteBusy(error)) return { pid: 0 };
    throw error;
  }
}
