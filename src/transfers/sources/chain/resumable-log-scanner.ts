import { LRUCache } from "lru-cache";
import type { ChainClient } from "../../../chain/chain-client.js";
import { type Log, type LogFilter, type LogPage, readLatestBlockHeader } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import { ServiceError } from "../../../errors.js";
import { createAbortScope, raceAbort } from "../../../resilience/abort-scope.js";
import { createFairSemaphore, type FairSemaphore } from "../../spend/fair-semaphore.js";
import { isBudgetExhausted, searchTooLongError } from "../../spend/lookup-budget.js";
import { EXHAUSTED_PAUSE_MS } from "../../spend/spend-limits.js";
import { getLastStableBlock } from "./searched-blocks.js";

export interface LogScanOptions {
  /** Spends the budget of the lookup that runs the scan. */
  readonly client: ChainClient;
  /** Key that tells callers apart. */
  readonly caller: string;
  readonly filter: LogFilter;
  /** Finds the first block of the scan; called only when the scan begins. */
  readonly findStartBlock: (signal: AbortSignal) => Promise<number>;
  /** Last block of the scan; absent: the head. */
  readonly endBlock?: number;
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
   * Returns the matching logs from the start block to the end, or the first `targetCount` of them. When the signal fires,
   * the wait ends while the scan continues in the background.
   * @param key identifies the scan; undefined for a private scan, which ends with its signal and is not kept
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer, or not in time
   * @throws BudgetExhaustedError when the lookup has spent its budget; the scan then pauses
   */
  resume(key: string | undefined, options: LogScanOptions, signal: AbortSignal): Promise<readonly Log[]>;
}

interface LogScan {
  /** Matching logs before `nextBlock`. */
  logs: readonly Log[];
  /** First block that has not been searched; undefined when the scan has not begun. */
  nextBlock: number | undefined;
  running: Promise<readonly Log[]> | undefined;
  /** Until when the scan pauses because its lookup had spent its budget, in milliseconds on the monotonic clock. */
  pausedUntil: number;
}

const MAX_SCANS = 1_000;
/** Concurrent scans of one caller on one chain; all callers together get twice as many. */
const MAX_CONCURRENT_SCANS = 8;
/** Time limit of one run of a scan, including the wait for the semaphore. */
const SCAN_TIMEOUT_MS = 10 * 60_000;
/** The first step is small because most matches are near the start. */
const INITIAL_STEP_BLOCKS = 10_000;
const MAX_STEP_BLOCKS = 1_000_000;

/**
 * @param closing stops all scans
 * @param now monotonic clock, in milliseconds
 */
export function createResumableLogScanner(closing: AbortSignal, now: () => number): ResumableLogScanner {
  const scans = new LRUCache<string, LogScan>({ max: MAX_SCANS });
  const semaphores = new Map<string, FairSemaphore>();

  function getSemaphore({ slug }: ChainClient): FairSemaphore {
    const semaphore = semaphores.get(slug) ?? createFairSemaphore(MAX_CONCURRENT_SCANS);
    semaphores.set(slug, semaphore);
    return semaphore;
  }

  async function runInBackground(scan: LogScan, options: LogScanOptions): Promise<readonly Log[]> {
    const { client, caller } = options;
    const scope = createAbortScope(closing, SCAN_TIMEOUT_MS);
    try {
      return await getSemaphore(client).acquire(caller, scope.signal, () => continueScan(scan, options, scope.signal));
    } catch (error) {
      if (isBudgetExhausted(error, "lookup")) scan.pausedUntil = now() + EXHAUSTED_PAUSE_MS;
      // Other lookups may wait for the scan: the budget is not that of their callers.
      throw isBudgetExhausted(error) ? searchTooLongError(client.slug, false) : error;
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
        if (now() < scan.pausedUntil) throw searchTooLongError(options.client.slug, false);
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
  return { logs: [], nextBlock: undefined, running: undefined, pausedUntil: Number.NEGATIVE_INFINITY };
}

async function continueScan(scan: LogScan, options: LogScanOptions, signal: AbortSignal): Promise<readonly Log[]> {
  const { client, filter, findStartBlock, endBlock, blockMs, isMatch, targetCount } = options;
  const from = scan.nextBlock ?? (await findStartBlock(signal));
  const last = endBlock ?? (await readLatestBlockHeader(client, signal)).number;
  const lastStableBlock = getLastStableBlock(last, blockMs);
  const logs = [...scan.logs];
  const isComplete = (): boolean => logs.length >= targetCount;
  const onPage = (page: LogPage): void => {
    logs.push(...page.logs.filter(isMatch));
    const nextBlock = Math.min(page.range.to + 1, Math.max(from, lastStableBlock + 1));
    scan.nextBlock = nextBlock;
    scan.logs = logs.filter((log) => log.blockNumber < nextBlock);
  };
  let step = endBlock === undefined ? INITIAL_STEP_BLOCKS : Number.POSITIVE_INFINITY;
  for (let next = from; next <= last && !isComplete(); step = Math.min(step * 2, MAX_STEP_BLOCKS)) {
    const to = Math.min(next + step - 1, last);
    await searchLogs(client, filter, { from: next, to }, { newestFirst: false, isComplete, onPage }, signal);
    next = to + 1;
  }
  return logs;
}
