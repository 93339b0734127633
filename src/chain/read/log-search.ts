import { createAbortScope } from "../../resilience/abort-scope.js";
import type { BlockRange, ChainClient, LogSearch } from "../chain-client.js";
import { type Log, type LogPage, readLogPage } from "./chain-reads.js";

/** Pages that are read concurrently. */
const MAX_PARALLEL_PAGES = 8;

/**
 * Returns all logs in a range of blocks, in chain order or newest first.
 * @param search.isComplete returns whether the search can stop; receives all logs found so far, in the order of the search
 * @param search.onPage called with each page, in the order of the search
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a part of the range cannot be read, or the signal aborts
 */
export async function searchLogs(
  client: ChainClient,
  search: Pick<LogSearch, "filter" | "range" | "newestFirst"> & {
    readonly isComplete?: (logs: readonly Log[]) => boolean;
    readonly onPage?: (page: LogPage) => void;
  },
  signal: AbortSignal,
): Promise<readonly Log[]> {
  const { isComplete, onPage } = search;
  const found: Log[] = [];
  for await (const page of readLogPages(client, search, signal)) {
    onPage?.(page);
    found.push(...(search.newestFirst ? page.logs.toReversed() : page.logs));
    if (isComplete?.(found)) break;
  }
  return found;
}

/**
 * Yields the logs in a range of blocks in adjacent pages, as wide as endpoints accept. Reads several pages concurrently.
 * Leaving the loop aborts the pending reads.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a page cannot be read, or the signal aborts
 */
async function* readLogPages(
  client: ChainClient,
  { filter, range, newestFirst = false }: LogSearch,
  signal: AbortSignal,
): AsyncGenerator<LogPage, void> {
  if (range.to < range.from) return;
  const scope = createAbortScope(signal);

  const read = (part: BlockRange): Promise<LogPage> =>
    readLogPage(client, { filter, range: part, newestFirst }, scope.signal);

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
      while (remaining !== undefined && pending.length < MAX_PARALLEL_PAGES) {
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
