import { isSqliteBusy, openSqlite, type SqliteConnection } from "./sqlite.js";

/** The exclusive right of one process to a piece of work. */
export interface Lease {
  release(): void;
}

/** The process that holds a lease. */
export interface LeaseHolder {
  /** 0 while the holder is still writing its process ID. */
  readonly pid: number;
}

export interface LeaseOptions {
  /** Process ID that other processes see. */
  readonly pid: number;
  /** Resolves when the time has passed or the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called once when another process holds the lease. */
  readonly onLeaseHeld: (holder: LeaseHolder) => void;
  /** Called once when the state of the lease cannot be read; the attempt is repeated. */
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/** Interval of the attempts while another process holds the lease. */
const RETRY_INTERVAL_MS = 3_000;

/**
 * Acquires a lease, or returns its holder. The lease is a lock on a small file of its own, which the operating system
 * releases when the process ends, however it ends.
 */
export async function acquireLease(file: string, pid: number): Promise<Lease | LeaseHolder> {
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
  return { release: () => connection.close() };
}

/**
 * Runs work under a lease: waits while another process holds it, and releases it at the end.
 * @returns once the work is done or the signal fires
 */
export async function runWithLease(file: string, options: LeaseOptions, work: () => Promise<void>): Promise<void> {
  const { pid, sleep, onLeaseHeld, onError, signal } = options;
  let isHolderReported = false;
  let isErrorReported = false;
  while (!signal.aborted) {
    const lease = await acquireLease(file, pid).catch((error: unknown) => {
      if (!isErrorReported) onError(error);
      isErrorReported = true;
    });
    if (lease !== undefined && "release" in lease) {
      try {
        return await work();
      } finally {
        lease.release();
      }
    }
    if (lease !== undefined && !isHolderReported) onLeaseHeld(lease);
    isHolderReported ||= lease !== undefined;
    await sleep(RETRY_INTERVAL_MS, signal);
  }
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
