import { LRUCache } from "lru-cache";
import type { ChainClient } from "../../../chain/chain-client.js";
import { type Log, type LogFilter, readLatestBlockHeader } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import { ServiceError } from "../../../errors.js";
import { createAbortScope } from "../../../resilience/fetch-json.js";
import { raceAbort } from "../../../resilience/race-abort.js";
import { createSemaphore, type Semaphore } from "../../../resilience/semaphore.js";

/** Where a search begins, and what it is for. */
export interface LogScanOptions {
  readonly client: ChainClient;
  readonly filter: LogFilter;
  /** First block of the search. */
  readonly findStartBlock: (signal: AbortSignal) => Promise<number>;
  /** About how long a block of this chain takes, in milliseconds. */
  readonly blockMs: number;
  /** Which of the filter's logs are wanted. */
  readonly isMatch: (log: Log) => boolean;
  /** How many of them are enough. */
  readonly targetCount: number;
}

/** Long searches for logs, which outlive who began them and go on where they ended. */
export interface ResumableLogScanner {
  /**
   * The logs that are wanted from the search's first block to the head, or as many as are enough. When the signal fires
   * the wait ends, and the search goes on.
   * @param key tells searches apart; undefined: nobody else may profit from this one, and it ends with its signal
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer, or not in time
   */
  resume(key: string | undefined, options: LogScanOptions, signal: AbortSignal): Promise<readonly Log[]>;
}

interface LogScan {
  /** What was found before `next`. */
  logs: readonly Log[];
  /** First block not searched yet; undefined: nothing has been searched. */
  nextBlock: number | undefined;
  running: Promise<readonly Log[]> | undefined;
}

const MAX_SCANS = 1_000;
/** Searches of one chain that go on at the same time; the others wait. */
const MAX_CONCURRENT_SCANS_PER_CHAIN = 8;
/** Longest time for one go at a search, the wait for its turn included, in milliseconds. */
const SCAN_TIMEOUT_MS = 10 * 60_000;
/** Blocks of one step: small where most is found, near the beginning. What a step found is kept when the next one fails. */
const INITIAL_STEP_BLOCKS = 10_000;
const MAX_STEP_BLOCKS = 1_000_000;
/** What is younger may be undone and is searched again, in milliseconds. */
const REORG_WINDOW_MS = 30 * 60_000;

/** @param closing ends all searches */
export function createResumableLogScanner(closing: AbortSignal): ResumableLogScanner {
  const trails = new LRUCache<string, LogScan>({ max: MAX_SCANS });
  const turns = new Map<string, Semaphore>();

  function turnsOf({ slug }: ChainClient): Semaphore {
    const known = turns.get(slug) ?? createSemaphore(MAX_CONCURRENT_SCANS_PER_CHAIN);
    turns.set(slug, known);
    return known;
  }

  async function run(trail: LogScan, options: LogScanOptions): Promise<readonly Log[]> {
    const limit = createAbortScope(closing, SCAN_TIMEOUT_MS);
    try {
      return await turnsOf(options.client).acquire(limit.signal, () => continueScan(trail, options, limit.signal));
    } finally {
      limit.cancel();
    }
  }

  return {
    async resume(key, options, signal) {
      if (key === undefined)
        return continueScan({ logs: [], nextBlock: undefined, running: undefined }, options, signal);
      const trail = trails.get(key) ?? { logs: [], nextBlock: undefined, running: undefined };
      trails.set(key, trail);
      if (trail.logs.length >= options.targetCount) return trail.logs;
      if (trail.running === undefined) {
        trail.running = run(trail, options).finally(() => {
          trail.running = undefined;
        });
        // Nobody may be there any more when it fails.
        trail.running.catch(() => {});
      }
      try {
        return await raceAbort(trail.running, signal);
      } catch (error) {
        if (error !== signal.reason) throw error;
        const message = `the logs of ${options.client.slug} could not be searched in time`;
        throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
      }
    },
  };
}

async function continueScan(trail: LogScan, options: LogScanOptions, signal: AbortSignal): Promise<readonly Log[]> {
  const { client, filter, findStartBlock, blockMs, isMatch, targetCount } = options;
  const from = trail.nextBlock ?? (await findStartBlock(signal));
  const head = await readLatestBlockHeader(client, signal);
  const settled = head.number - Math.ceil(REORG_WINDOW_MS / blockMs);
  const isComplete = (logs: readonly Log[]): boolean => logs.filter(isMatch).length >= targetCount;
  let logs = trail.logs;
  let step = INITIAL_STEP_BLOCKS;
  for (let next = from; next <= head.number && !isComplete(logs); step = Math.min(step * 2, MAX_STEP_BLOCKS)) {
    const to = Math.min(next + step - 1, head.number);
    const found = await searchLogs(client, filter, { from: next, to }, { newestFirst: false, isComplete }, signal);
    logs = [...logs, ...found.filter(isMatch)];
    next = to + 1;
    trail.nextBlock = Math.min(next, Math.max(from, settled + 1));
    trail.logs = logs.filter((log) => log.blockNumber < (trail.nextBlock ?? 0));
  }
  return logs;
}
