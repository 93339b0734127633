import { LRUCache } from "lru-cache";
import type { ChainClient } from "../../../chain/chain-client.js";
import { type Log, type LogFilter, type LogPage, readLatestBlockHeader } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import { ServiceError } from "../../../errors.js";
import { createAbortScope, raceAbort } from "../../../resilience/abort-scope.js";
import { FairSemaphore } from "../../../resilience/fair-semaphore.js";
import { joinWaiters, type Requester, Waiters } from "../../../resilience/waiters.js";
import { EXHAUSTED_PAUSE_MS, isBudgetExhausted, searchTooLongError } from "../../spend/lookup-budget.js";
import { getLastStableBlock } from "./searched-blocks.js";

export interface LogScanOptions {
  /** Spends the budget of the lookup that runs the scan. */
  readonly client: ChainClient;
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

const MAX_SCANS = 1_000;
/** A scan begins anew so long after it first reached its end, in milliseconds: an endpoint may have left out a log. */
const KEPT_MS = 60 * 60_000;
/** Concurrent scans of one caller on one chain; all callers together get twice as many. */
const MAX_CONCURRENT_SCANS = 8;
/** Time limit of one run of a scan, including the wait for the semaphore. */
const SCAN_TIMEOUT_MS = 10 * 60_000;
/** The first step is small because most matches are near the start. */
const INITIAL_STEP_BLOCKS = 10_000;
const MAX_STEP_BLOCKS = 1_000_000;

/** Runs long log scans that outlive the lookup that began them and resume where they stopped. */
export class ResumableLogScanner {
  readonly #closing: AbortSignal;
  readonly #now: () => number;
  readonly #scans = new LRUCache<string, LogScan>({ max: MAX_SCANS });
  readonly #semaphores = new Map<string, FairSemaphore>();

  /**
   * @param closing stops all scans
   * @param now monotonic clock, in milliseconds
   */
  constructor(closing: AbortSignal, now: () => number) {
    this.#closing = closing;
    this.#now = now;
  }

  /**
   * Returns the matching logs from the start block to the end, or the first `targetCount` of them. When the signal fires,
   * the wait ends while the scan continues in the background.
   * @param key identifies the scan; undefined for a private scan, which ends with its signal and is not kept
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer, or not in time
   * @throws BudgetExhaustedError when the lookup has spent its budget; the scan then pauses
   */
  async resume(key: string | undefined, options: LogScanOptions, requester: Requester): Promise<readonly Log[]> {
    const { signal } = requester;
    if (key === undefined) return new LogScan().resume(options, signal);
    const scan = this.#findScan(key) ?? new LogScan();
    this.#scans.set(key, scan);
    if (scan.logs.length >= options.targetCount) return scan.logs;
    if (scan.running === undefined) {
      if (this.#now() < scan.pausedUntil) throw searchTooLongError(options.client.slug, false);
      scan.waiters = new Waiters();
    }
    const leave = joinWaiters(scan.waiters, requester);
    try {
      scan.running ??= this.#start(scan, options);
      return await raceAbort(scan.running, signal);
    } catch (error) {
      if (error !== signal.reason) throw error;
      const message = `the logs of ${options.client.slug} could not be searched in time`;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
    } finally {
      leave();
    }
  }

  /** Begins a scan anew when it is next asked for: what it found does not fit. @param key as for `resume` */
  forget(key: string | undefined): void {
    if (key !== undefined) this.#scans.delete(key);
  }

  #findScan(key: string): LogScan | undefined {
    const scan = this.#scans.get(key);
    return scan !== undefined && this.#now() < scan.expiresAt ? scan : undefined;
  }

  #start(scan: LogScan, options: LogScanOptions): Promise<readonly Log[]> {
    const running = this.#runInBackground(scan, options).finally(() => {
      scan.running = undefined;
    });
    // Every waiting lookup may have left before the scan fails.
    running.catch(() => {});
    return running;
  }

  async #runInBackground(scan: LogScan, options: LogScanOptions): Promise<readonly Log[]> {
    const { client } = options;
    const scope = createAbortScope(this.#closing, SCAN_TIMEOUT_MS);
    try {
      const semaphore = this.#getSemaphore(client);
      const logs = await semaphore.acquire(scan.waiters, scope.signal, () => scan.resume(options, scope.signal));
      scan.expiresAt = Math.min(scan.expiresAt, this.#now() + KEPT_MS);
      return logs;
    } catch (error) {
      if (isBudgetExhausted(error, "lookup")) scan.pausedUntil = this.#now() + EXHAUSTED_PAUSE_MS;
      // Other lookups may wait for the scan: the budget is not that of their callers.
      throw isBudgetExhausted(error) ? searchTooLongError(client.slug, false) : error;
    } finally {
      scope.cancel();
    }
  }

  #getSemaphore({ slug }: ChainClient): FairSemaphore {
    const semaphore = this.#semaphores.get(slug) ?? new FairSemaphore(MAX_CONCURRENT_SCANS);
    this.#semaphores.set(slug, semaphore);
    return semaphore;
  }
}

class LogScan {
  /** Matching logs before `#nextBlock`. */
  logs: readonly Log[] = [];
  running: Promise<readonly Log[]> | undefined = undefined;
  /** Whose turns it may take to begin: those who wait for it, or the last who did. */
  waiters = new Waiters();
  /** Until when the scan pauses because its lookup had spent its budget, in milliseconds on the monotonic clock. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  /** When the scan is to begin anew, in milliseconds on the monotonic clock. */
  expiresAt = Number.POSITIVE_INFINITY;
  /** First block that has not been searched; undefined when the scan has not begun. */
  #nextBlock: number | undefined = undefined;

  async resume(options: LogScanOptions, signal: AbortSignal): Promise<readonly Log[]> {
    const { client, filter, findStartBlock, endBlock, blockMs, isMatch, targetCount } = options;
    const from = this.#nextBlock ?? (await findStartBlock(signal));
    const last = endBlock ?? (await readLatestBlockHeader(client, signal)).number;
    const lastStableBlock = getLastStableBlock(last, blockMs);
    const logs = [...this.logs];
    const isComplete = (): boolean => logs.length >= targetCount;
    const onPage = (page: LogPage): void => {
      logs.push(...page.logs.filter(isMatch));
      const nextBlock = Math.min(page.range.to + 1, Math.max(from, lastStableBlock + 1));
      this.#nextBlock = nextBlock;
      this.logs = logs.filter((log) => log.blockNumber < nextBlock);
    };
    let step = endBlock === undefined ? INITIAL_STEP_BLOCKS : Number.POSITIVE_INFINITY;
    for (let next = from; next <= last && !isComplete(); step = Math.min(step * 2, MAX_STEP_BLOCKS)) {
      const to = Math.min(next + step - 1, last);
      await searchLogs(client, { filter, range: { from: next, to }, isComplete, onPage }, signal);
      next = to + 1;
    }
    return logs;
  }
}
