import type { TransferIndexReader } from "../transfer-index.js";
import { PostgresFailure } from "./failures.js";
import type { IndexMonitor } from "./index-monitor.js";
import type { PostgresReader } from "./postgres-reader.js";

/** An index that is not in this process: reading it takes time, and fails while its server is away. */
export interface RemoteIndex {
  /**
   * Runs a query, perhaps several times, and returns its result, which is of one state of the index; undefined when the index
   * does not answer in time.
   */
  read<T>(query: (reader: TransferIndexReader) => T): Promise<{ readonly value: T } | undefined>;
}

/** Longest time that a lookup waits for the index before it asks the chains. */
const READ_TIMEOUT_MS = 1_000;

/** Creates reads that never wait for a server that is known to be away. */
export function createRemoteIndex(
  reader: PostgresReader,
  monitor: Pick<IndexMonitor, "isAvailable" | "reportFailure">,
): RemoteIndex {
  return {
    async read(query) {
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
    },
  };
}
