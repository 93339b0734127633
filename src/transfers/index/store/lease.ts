import { isSqliteBusy, openSqlite, type SqliteConnection } from "./sqlite.js";

/** The right to do something that one process at a time may do. */
export interface Lease {
  release(): void;
}

/** Who has a lease that was asked for: its process id. */
export interface LeaseHolder {
  readonly pid: number;
}

export interface LeaseOptions {
  readonly pid: number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called once when another process holds the lease. */
  readonly onLeaseHeld: (holder: LeaseHolder) => void;
  /** Called once when reading the lease fails; the attempt is repeated. */
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/** How often a lease that another process holds is asked for again. */
const RETRY_INTERVAL_MS = 3_000;

/**
 * Takes a lease, or says who holds it. It is a lock on a small file of its own, which the operating system lets go when
 * the process ends, however it ends.
 */
export async function acquireLease(file: string, pid: number): Promise<Lease | LeaseHolder> {
  const connection = await openSqlite(file, { timeout: 0 });
  try {
    // Readers are let in beside this lock, so that they can see the number.
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
  return { release: () => connection.close() };
}

/**
 * Works under a lease: waits for it while another process holds it, and gives it back in the end.
 * @returns once the work is done, or the signal fires
 */
export async function runWithLease(file: string, options: LeaseOptions, work: () => Promise<void>): Promise<void> {
  const { pid, sleep, onLeaseHeld, onError, signal } = options;
  let isHeldTold = false;
  let isTroubleTold = false;
  while (!signal.aborted) {
    const lease = await acquireLease(file, pid).catch((error: unknown) => {
      if (!isTroubleTold) onError(error);
      isTroubleTold = true;
    });
    if (lease !== undefined && "release" in lease) {
      try {
        return await work();
      } finally {
        lease.release();
      }
    }
    if (lease !== undefined && !isHeldTold) onLeaseHeld(lease);
    isHeldTold ||= lease !== undefined;
    await sleep(RETRY_INTERVAL_MS, signal);
  }
}

function readLeaseHolder(connection: SqliteConnection): LeaseHolder {
  try {
    return { pid: Number(connection.pragma("user_version", { simple: true })) };
  } catch (error) {
    // Just now it is being written.
    if (isSqliteBusy(error)) return { pid: 0 };
    throw error;
  }
}
