import { createFairSemaphore } from "../../../spend/fair-semaphore.js";
import type { TransferIndexReader } from "../transfer-index.js";
import { PostgresFailure } from "./connection/failures.js";
import type { IndexMonitor } from "./index-monitor.js";
import type { PostgresReader } from "./postgres-reader.js";

/** An index that is not in this process: reading it takes time, and fails while its server is away. */
export interface RemoteIndex {
  /**
   * Runs a query, perhaps several times, and returns its result, which is of one state of the index; undefined when the index
   * does not answer in time. Callers take turns.
   */
  read<T>(query: (reader: TransferIndexReader) => T, reading: Reading): Promise<{ readonly value: T } | undefined>;
}

/** Who reads, and until when. */
export interface Reading {
  /** Key that tells callers apart. */
  readonly caller: string;
  readonly signal: AbortSignal;
}

/** Longest time that a read takes once it has a connection; lookups then ask the chains. */
const READ_TIMEOUT_MS = 1_000;

/**
 * Creates reads that never wait for a server that is known to be away.
 * @param poolSize connections that reads may use: one caller alone takes half of them
 */
export function createRemoteIndex(
  reader: PostgresReader,
  monitor: Pick<IndexMonitor, "isAvailable" | "reportFailure">,
  poolSize: number,
): RemoteIndex {
  const semaphore = createFairSemaphore(Math.max(1, Math.floor(poolSize / 2)));

  async function readInTime<T>(query: (reader: TransferIndexReader) => T): Promise<{ readonly value: T } | undefined> {
    // It may have gone away while this read waited for its turn.
    if (!monitor.isAvailable()) return undefined;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new PostgresFailure("ETIMEDOUT")), READ_TIMEOUT_MS);
    });
    const result = reader.read(query);
    result.catch(() => {});
    try {
      return { value: await Promise.race([result, timeout]) };
    } catch (error) {
      if (!(error instanceof PostgresFailure)) throw error;
      monitor.reportFailure(error);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async read(query, { caller, signal }) {
      return monitor.isAvailable() ? semaphore.acquire(caller, signal, () => readInTime(query)) : undefined;
    },
  };
}
