import { createAbortScope } from "../../resilience/abort-scope.js";
import type { BlockRange, ChainClient, LogFilter } from "../chain-client.js";
import {
  type Log,
  type LogPage,
  type LogRange,
  readLatestBlockHeader,
  readLogPage,
  readLogsToHead,
} from "./chain-reads.js";

interface LogPagesOptions {
  /** Whether to start at the end of the range. */
  readonly newestFirst: boolean;
  /** Maximum number of concurrent requests. */
  readonly maxParallel?: number;
}

export interface LogSearchOptions extends LogPagesOptions {
  /** Returns whether the search can stop. Receives all logs found so far, in the order of the search. */
  readonly isComplete?: (logs: readonly Log[]) => boolean;
  /** Called with each page, in the order of the search. */
  readonly onPage?: (page: LogPage) => void;
}

const DEFAULT_MAX_PARALLEL = 8;

/**
 * Returns all logs in a range of blocks, in chain order or newest first. A search up to the head costs one request where
 * an endpoint accepts that.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a part of the range cannot be read, or the signal aborts
 */
export async function searchLogs(
  client: ChainClient,
  filter: LogFilter,
  { from, to }: LogRange,
  options: LogSearchOptions,
  signal: AbortSignal,
): Promise<readonly Log[]> {
  const { newestFirst, isComplete = () => false, onPage } = options;
  const found: Log[] = [];
  for await (const page of readPages()) {
    const { logs } = page;
    onPage?.(page);
    found.push(...(newestFirst ? logs.toReversed() : logs));
    if (isComplete(found)) break;
  }
  return found;

  async function* readPages(): AsyncGenerator<LogPage, void> {
    const all = to === "latest" ? await readLogsToHead(client, filter, from, signal) : undefined;
    if (all !== undefined) {
      yield all;
      return;
    }
    const end = to === "latest" ? (await readLatestBlockHeader(client, signal)).number : to;
    yield* readLogPages(client, filter, { from, to: end }, options, signal);
  }
}

/**
 * Yields the logs in a range of blocks in adjacent pages, as wide as endpoints accept. Reads several pages concurrently.
 * Leaving the loop aborts the pending reads.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a page cannot be read, or the signal aborts
 */
async function* readLogPages(
  client: ChainClient,
  filter: LogFilter,
  range: BlockRange,
  { newestFirst, maxParallel = DEFAULT_MAX_PARALLEL }: LogPagesOptions,
  signal: AbortSignal,
): AsyncGenerator<LogPage, void> {
  if (range.to < range.from) return;
  const scope = createAbortScope(signal);

  const read = (part: BlockRange): Promise<LogPage> => readLogPage(client, filter, part, { newestFirst }, scope.signal);

  /** Reads all of a part, even when endpoints accept fewer blocks than before. */
  async function readAll(part: BlockRange): Promise<LogPage> {
    const logs: Log[] = [];
    for (let remaining: BlockRange | undefined = part; remaining !== undefined; ) {
      const page: LogPage = await read(remaining);
      if (newestFirst) logs.unshift(...page.logs);
      else logs.push(...page.logs);
      remaining = subtractRange(remaining, page.range, newestFirst);
    }
    return { logs, range: part };
  }

  try {
    // The width of the first page determines the width of the others.
    const first = await read(range);
    yield first;
    const width = first.range.to - first.range.from + 1;
    let remaining = subtractRange(range, first.range, newestFirst);
    const pending: Promise<LogPage>[] = [];
    while (remaining !== undefined || pending.length > 0) {
      while (remaining !== undefined && pending.length < maxParallel) {
        const part: BlockRange = newestFirst
          ? { from: Math.max(remaining.to - width + 1, remaining.from), to: remaining.to }
          : { from: remaining.from, to: Math.min(remaining.from + width - 1, remaining.to) };
        const page = readAll(part);
        // Prevents an unhandled rejection while another page is awaited, or after the loop was left.
        page.catch(() => {});
        pending.push(page);
        remaining = subtractRange(remaining, part, newestFirst);
      }
      const next = await pending.shift();
      if (next !== undefined) yield next;
    }
  } finally {
    scope.cancel();
  }
}

/** Returns what remains of a range without its beginning, or without its end; undefined: nothing. */
function subtractRange(range: BlockRange, part: BlockRange, newestFirst: boolean): BlockRange | undefined {
  const remaining = newestFirst ? { from: range.from, to: part.from - 1 } : { from: part.to + 1, to: range.to };
  return remaining.to < remaining.from ? undefined : remaining;
}
