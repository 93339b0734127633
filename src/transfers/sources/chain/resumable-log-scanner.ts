import { LRUCache } from "lru-cache";
import type { ChainClient } from "../../../chain/chain-client.js";
import { type Log, type LogFilter, readLatestBlockHeader } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import { ServiceError } from "../../../errors.js";
import { createAbortScope, raceAbort } from "../../../resilience/abort-scope.js";
import { createSemaphore, type Semaphore } from "../../../resilience/semaphore.js";

export interface LogScanOptions {
  readonly client: ChainClient;
  readonly filter: LogFilter;
  /** Finds the first block of the scan; called only when the scan begins. */
  readonly findStartBlock: (signal: AbortSignal) => Promise<number>;
  /** Average block time of the chain, in milliseconds. */
  readonly blockMs: number;
  /** Selects the matching logs among those of the filter. */
  readonly isMatch: (log: Log) => boolean;
  /** Number of matching logs after which the scan stops. */
  readonly targetCount: number;
}

/** Runs long log scans that outlive the lookup that began them and resume where they stopped. */
export interface ResumableLogScanner {
  /**
   * Returns the matching logs from the start block to the head, or the first `targetCount` of them. When the signal fires,
   * the wait ends while the scan continues in the background.
   * @param key identifies the scan; undefined for a private scan, which ends with its signal and is not kept
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer, or not in time
   */
  resume(key: string | undefined, options: LogScanOptions, signal: AbortSignal): Promise<readonly Log[]>;
}

interface LogScan {
  /** Matching logs before `nextBlock`. */
  logs: readonly Log[];
  /** First block that has not been searched; undefined when the scan has not begun. */
  nextBlock: number | undefined;
  running: Promise<readonly Log[]> | undefined;
}

const MAX_SCANS = 1_000;
const MAX_CONCURRENT_SCANS_PER_CHAIN = 8;
/** Time limit of one run of a scan, including the wait for the semaphore. */
const SCAN_TIMEOUT_MS = 10 * 60_000;
/** The first step is small because most matches are near the start; the results of a step survive a failure of the next. */
const INITIAL_STEP_BLOCKS = 10_000;
const MAX_STEP_BLOCKS = 1_000_000;
/** Blocks younger than this can be reorged, so they are searched again. */
const REORG_WINDOW_MS = 30 * 60_000;

/** @param closing stops all scans */
export function createResumableLogScanner(closing: AbortSignal): ResumableLogScanner {
  const scans = new LRUCache<string, LogScan>({ max: MAX_SCANS });
  const semaphores = new Map<string, Semaphore>();

  function getSemaphore({ slug }: ChainClient): Semaphore {
    const semaphore = semaphores.get(slug) ?? createSemaphore(MAX_CONCURRENT_SCANS_PER_CHAIN);
    semaphores.set(slug, semaphore);
    return semaphore;
  }

  async function runInBackground(scan: LogScan, options: LogScanOptions): Promise<readonly Log[]> {
    const scope = createAbortScope(closing, SCAN_TIMEOUT_MS);
    try {
      return await getSemaphore(options.client).acquire(scope.signal, () => continueScan(scan, options, scope.signal));
    } finally {
      scope.cancel();
    }
  }

  return {
    async resume(key, options, signal) {
      if (key === undefined) return continueScan(createScan(), options, signal);
      const scan = scans.get(key) ?? createScan();
      scans.set(key, scan);
      if (scan.logs.length >= options.targetCount) return scan.logs;
      if (scan.running === undefined) {
        scan.running = runInBackground(scan, options).finally(() => {
          scan.running = undefined;
        });
        // Every waiting lookup may have left before the scan fails.
        scan.running.catch(() => {});
      }
      try {
        return await raceAbort(scan.running, signal);
      } catch (error) {
        if (error !== signal.reason) throw error;
        const message = `the logs of ${options.client.slug} could not be searched in time`;
        throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
      }
    },
  };
}

function createScan(): LogScan {
  return { logs: [], nextBlock: undefined, running: undefined };
}

async function continueScan(scan: LogScan, options: LogScanOptions, signal: AbortSignal): Promise<readonly Log[]> {
  const { client, filter, findStartBlock, blockMs, isMatch, targetCount } = options;
  const from = scan.nextBlock ?? (await findStartBlock(signal));
  const head = await readLatestBlockHeader(client, signal);
  const lastStableBlock = head.number - Math.ceil(REORG_WINDOW_MS / blockMs);
  const isComplete = (matches: readonly Log[]): boolean => matches.filter(isMatch).length >= targetCount;
  let logs = scan.logs;
  let step = INITIAL_STEP_BLOCKS;
  for (let next = from; next <= head.number && !isComplete(logs); step = Math.min(step * 2, MAX_STEP_BLOCKS)) {
    const to = Math.min(next + step - 1, head.number);
    const stepLogs = await searchLogs(client, filter, { from: next, to }, { newestFirst: false, isComplete }, signal);
    logs = [...logs, ...stepLogs.filter(isMatch)];
    next = to + 1;
    scan.nextBlock = Math.min(next, Math.max(from, lastStableBlock + 1));
    scan.logs = logs.filter((log) => log.blockNumber < (scan.nextBlock ?? 0));
  }
  return logs;
}
