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
  /** Whether to begin at the range's end. */
  readonly newestFirst: boolean;
  /** Most requests at a time. */
  readonly maxParallel?: number;
}

export interface LogSearchOptions extends LogPagesOptions {
  /** Whether what was found is enough; given all logs so far, in the order of the search. */
  readonly isComplete?: (logs: readonly Log[]) => boolean;
}

const DEFAULT_MAX_PARALLEL = 8;

/**
 * All logs in a range of blocks, in the order of the chain, or from the newest on. Up to the head costs one request where
 * an endpoint takes it so.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a part of the range cannot be read, or the signal fires.
 */
export async function searchLogs(
  client: ChainClient,
  filter: LogFilter,
  { from, to }: LogRange,
  options: LogSearchOptions,
  signal: AbortSignal,
): Promise<readonly Log[]> {
  const { newestFirst, isComplete = () => false } = options;
  const found: Log[] = [];
  for await (const { logs } of pagesOf()) {
    found.push(...(newestFirst ? logs.toReversed() : logs));
    if (isComplete(found)) break;
  }
  return found;

  async function* pagesOf(): AsyncGenerator<LogPage, void> {
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
 * The logs in a range of blocks, page by page, each next to the one before, as wide as endpoints take them. Several are
 * read at a time; who leaves the loop ends that.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a page cannot be read, or the signal fires.
 */
async function* readLogPages(
  client: ChainClient,
  filter: LogFilter,
  range: BlockRange,
  { newestFirst, maxParallel = DEFAULT_MAX_PARALLEL }: LogPagesOptions,
  signal: AbortSignal,
): AsyncGenerator<LogPage, void> {
  if (range.to < range.from) return;
  const limit = createAbortScope(signal);

  const read = (part: BlockRange): Promise<LogPage> => readLogPage(client, filter, part, { newestFirst }, limit.signal);

  /** All of a part, however little endpoints have come to take at once. */
  async function readAll(part: BlockRange): Promise<LogPage> {
    const logs: Log[] = [];
    for (let rest: BlockRange | undefined = part; rest !== undefined; ) {
      const page: LogPage = await read(rest);
      if (newestFirst) logs.unshift(...page.logs);
      else logs.push(...page.logs);
      rest = subtractRange(rest, page.range, newestFirst);
    }
    return { logs, range: part };
  }

  try {
    // The first page tells how wide the others can be.
    const first = await read(range);
    yield first;
    const width = first.range.to - first.range.from + 1;
    let rest = subtractRange(range, first.range, newestFirst);
    const running: Promise<LogPage>[] = [];
    while (rest !== undefined || running.length > 0) {
      while (rest !== undefined && running.length < maxParallel) {
        const part: BlockRange = newestFirst
          ? { from: Math.max(rest.to - width + 1, rest.from), to: rest.to }
          : { from: rest.from, to: Math.min(rest.from + width - 1, rest.to) };
        const page = readAll(part);
        // It may fail while another is waited for, or when nobody waits any more.
        page.catch(() => {});
        running.push(page);
        rest = subtractRange(rest, part, newestFirst);
      }
      const next = await running.shift();
      if (next !== undefined) yield next;
    }
  } finally {
    limit.cancel();
  }
}

/** What of a range is left after its beginning, or its end; undefined: nothing. */
function subtractRange(range: BlockRange, part: BlockRange, newestFirst: boolean): BlockRange | undefined {
  const rest = newestFirst ? { from: range.from, to: part.from - 1 } : { from: part.to + 1, to: range.to };
  return rest.to < rest.from ? undefined : rest;
}
