import { LRUCache } from "lru-cache";
import type { ChainClient } from "../../../chain/chain-client.js";
import { type Log, type LogFilter, readHead } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import { ServiceError } from "../../../errors.js";
import { createLimit } from "../../../resilience/fetch-json.js";
import { untilAborted } from "../../../resilience/race-abort.js";
import { createTurns, type Turns } from "../../../resilience/semaphore.js";

/** Where a search begins, and what it is for. */
export interface TrailOptions {
  readonly client: ChainClient;
  readonly filter: LogFilter;
  /** First block of the search. */
  readonly start: (signal: AbortSignal) => Promise<number>;
  /** About how long a block of this chain takes, in milliseconds. */
  readonly blockMs: number;
  /** Which of the filter's logs are wanted. */
  readonly isWanted: (log: Log) => boolean;
  /** How many of them are enough. */
  readonly enough: number;
}

/** Long searches for logs, which outlive who began them and go on where they ended. */
export interface LogTrails {
  /**
   * The logs that are wanted from the search's first block to the head, or as many as are enough. When the signal fires
   * the wait ends, and the search goes on.
   * @param key tells searches apart; undefined: nobody else may profit from this one, and it ends with its signal
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer, or not in time
   */
  follow(key: string | undefined, options: TrailOptions, signal: AbortSignal): Promise<readonly Log[]>;
}

interface Trail {
  /** What was found before `next`. */
  logs: readonly Log[];
  /** First block not searched yet; undefined: nothing has been searched. */
  next: number | undefined;
  running: Promise<readonly Log[]> | undefined;
}

const maxTrails = 1_000;
/** Searches of one chain that go on at the same time; the others wait. */
const maxRunning = 8;
/** Longest time for one go at a search, the wait for its turn included, in milliseconds. */
const longestMs = 10 * 60_000;
/** Blocks of one step: small where most is found, near the beginning. What a step found is kept when the next one fails. */
const firstStep = 10_000;
const longestStep = 1_000_000;
/** What is younger may be undone and is searched again, in milliseconds. */
const unsettledMs = 30 * 60_000;

/** @param closing ends all searches */
export function createLogTrails(closing: AbortSignal): LogTrails {
  const trails = new LRUCache<string, Trail>({ max: maxTrails });
  const turns = new Map<string, Turns>();

  function turnsOf({ slug }: ChainClient): Turns {
    const known = turns.get(slug) ?? createTurns(maxRunning);
    turns.set(slug, known);
    return known;
  }

  async function run(trail: Trail, options: TrailOptions): Promise<readonly Log[]> {
    const limit = createLimit(closing, longestMs);
    try {
      return await turnsOf(options.client).take(limit.signal, () => goOn(trail, options, limit.signal));
    } finally {
      limit.end();
    }
  }

  return {
    async follow(key, options, signal) {
      if (key === undefined) return goOn({ logs: [], next: undefined, running: undefined }, options, signal);
      const trail = trails.get(key) ?? { logs: [], next: undefined, running: undefined };
      trails.set(key, trail);
      if (trail.logs.length >= options.enough) return trail.logs;
      if (trail.running === undefined) {
        trail.running = run(trail, options).finally(() => {
          trail.running = undefined;
        });
        // Nobody may be there any more when it fails.
        trail.running.catch(() => {});
      }
      try {
        return await untilAborted(trail.running, signal);
      } catch (error) {
        if (error !== signal.reason) throw error;
        const message = `the logs of ${options.client.slug} could not be searched in time`;
        throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
      }
    },
  };
}

async function goOn(trail: Trail, options: TrailOptions, signal: AbortSignal): Promise<readonly Log[]> {
  const { client, filter, start, blockMs, isWanted, enough } = options;
  const from = trail.next ?? (await start(signal));
  const head = await readHead(client, signal);
  const settled = head.number - Math.ceil(unsettledMs / blockMs);
  const until = (logs: readonly Log[]): boolean => logs.filter(isWanted).length >= enough;
  let logs = trail.logs;
  let step = firstStep;
  for (let next = from; next <= head.number && !until(logs); step = Math.min(step * 2, longestStep)) {
    const to = Math.min(next + step - 1, head.number);
    const found = await searchLogs(client, filter, { from: next, to }, { newestFirst: false, until }, signal);
    logs = [...logs, ...found.filter(isWanted)];
    next = to + 1;
    trail.next = Math.min(next, Math.max(from, settled + 1));
    trail.logs = logs.filter((log) => Number(log.blockNumber) < (trail.next ?? 0));
  }
  return logs;
}
