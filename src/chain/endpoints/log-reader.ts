import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import { type BlockRange, findRpcResult, type LogSearch, type LogsResult, type RpcCall } from "../chain-client.js";
import { toQuantity } from "../hex.js";
import { areLogsMatching } from "../json-rpc/parse-results.js";
import { RpcError } from "../json-rpc/rpc-errors.js";
import { type AttemptPolicy, SEARCH_PATIENCE_MS, startRequestedCooldown } from "./attempts.js";
import { DEFAULT_MAX_BLOCK_RANGE, type Endpoint, MIN_BLOCK_RANGE } from "./endpoint.js";
import { findNamedLimit, UNCERTAIN_LIMIT_TTL_MS } from "./learned-limit.js";

/** Where logs are searched: at the endpoints of a chain, or at one of them. */
type LogSource = Pick<AttemptPolicy, "slug" | "listCandidates" | "isHealthy" | "onFailure" | "closing">;

type SearchResult = { readonly result: unknown } | { readonly error: UpstreamError; readonly isLate: boolean };

const METHOD = "eth_getLogs";
/** HTTP statuses for a request or response that is too long, or took too long. */
const TOO_LARGE_STATUSES: ReadonlySet<number | undefined> = new Set([400, 408, 413, 504, 524]);

/**
 * Searches logs at endpoints that each accept a different number of blocks per request, and learns how many from rejections
 * and timeouts. Makes one attempt at a time, and one per endpoint and range: others would only double the work.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint responds
 */
export async function readLogs(
  source: LogSource,
  search: LogSearch,
  signal: AbortSignal,
): Promise<LogsResult | undefined> {
  /** Endpoints that failed for other reasons than the block range. */
  const failed = new Set<Endpoint>();
  let cause: UpstreamError = new UpstreamError("did not answer in time", { kind: "timeout" });
  for (;;) {
    const candidates = source.listCandidates().filter((endpoint) => !failed.has(endpoint));
    if (candidates.length === 0 || signal.aborted || source.closing.aborted)
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${source.slug} responded`, { cause });
    // Two requests to a healthy endpoint are better than one to an unhealthy endpoint.
    const healthy = candidates.filter(source.isHealthy);
    const limits = (healthy.length > 0 ? healthy : candidates).map(({ blockRange }) => blockRange.current());
    const range = truncateRange(search.range, Math.max(...limits), search.newestFirst);
    if (range === undefined) return undefined;
    for (const endpoint of listEligible(candidates, countBlocks(range))) {
      const outcome = await attempt(source, endpoint, { ...search, range }, signal);
      if ("result" in outcome) return { result: outcome.result, range };
      cause = outcome.error;
      if (!learn(endpoint, range, outcome)) failed.add(endpoint);
      if (signal.aborted || source.closing.aborted) break;
    }
  }
}

/** Lists the endpoints that accept this number of blocks. A search waits long, so those that have just failed come last. */
function listEligible(candidates: readonly Endpoint[], blockCount: number): readonly Endpoint[] {
  const eligible = candidates.filter(({ blockRange }) => blockRange.current() >= blockCount);
  const hasFailed = ({ breaker }: Endpoint): boolean => breaker.hasRecentFailure();
  return [...eligible.filter((endpoint) => !hasFailed(endpoint)), ...eligible.filter(hasFailed)];
}

async function attempt(
  source: LogSource,
  endpoint: Endpoint,
  { filter, range, onRequest, isBackground = false }: LogSearch,
  signal: AbortSignal,
): Promise<SearchResult> {
  const { breaker } = endpoint;
  const timeoutMs = SEARCH_PATIENCE_MS + (breaker.latencyP95Ms() ?? 0);
  const scope = createAbortScope(signal, timeoutMs);
  const health = breaker.beginAttempt();
  const call: RpcCall = {
    method: METHOD,
    params: [{ ...filter, ...encodeBlockRange(range) }],
    isBackground,
    // An endpoint that returns other logs has not searched for the requested ones.
    validate: (result) => areLogsMatching(result, filter, range),
    onRequest,
  };
  try {
    const outcomes = await endpoint.send([call], scope.signal, (waitMs) => scope.setTimeout(waitMs + timeoutMs));
    health.recordSuccess(undefined);
    return { result: findRpcResult(outcomes[0]) };
  } catch (error) {
    const isLate = scope.signal.aborted && !signal.aborted;
    // A rejected call says nothing about other calls, and neither does a search that is too long for the endpoint.
    const isFailure = error instanceof UpstreamError && !signal.aborted && !source.closing.aborted;
    const isRange = isFailure && isRangeTooWide(error, countBlocks(range), isLate);
    if (!isFailure || isRange || error instanceof RpcError || error.status !== undefined) health.ignore();
    else health.recordFailure();
    if (!(error instanceof UpstreamError)) throw error;
    if (isFailure) startRequestedCooldown(endpoint, error);
    if (isFailure && !isRange) source.onFailure(endpoint, METHOD, error.message);
    return { error, isLate };
  } finally {
    scope.cancel();
  }
}

/** Returns whether a failure only means that the range is too wide. One that times out with few blocks does so with all. */
function isRangeTooWide(error: UpstreamError, blockCount: number, isLate: boolean): boolean {
  if (isBlockRangeError(error)) return blockCount > MIN_BLOCK_RANGE;
  return isLate && blockCount > DEFAULT_MAX_BLOCK_RANGE;
}

/** Learns how many blocks an endpoint accepts. Returns whether it can be asked for fewer. */
function learn(
  { blockRange }: Endpoint,
  range: BlockRange,
  { error, isLate }: { readonly error: UpstreamError; readonly isLate: boolean },
): boolean {
  const blockCount = countBlocks(range);
  const isRejection = isBlockRangeError(error);
  if (isRejection && blockCount <= MIN_BLOCK_RANGE) blockRange.narrow(blockCount, undefined, UNCERTAIN_LIMIT_TTL_MS);
  else if (isRejection || isLate) blockRange.narrow(blockCount, parseSuggestedBlockRange(error, range));
  return isRangeTooWide(error, blockCount, isLate);
}

/** Returns the part of a range with at most `maxBlocks` blocks; undefined: the range has no end to count from. */
function truncateRange(range: BlockRange, maxBlocks: number, newestFirst = false): BlockRange | undefined {
  const { from, to } = range;
  if (countBlocks(range) <= maxBlocks) return range;
  if (to === Number.POSITIVE_INFINITY) return undefined;
  return newestFirst ? { from: to - maxBlocks + 1, to } : { from, to: from + maxBlocks - 1 };
}

function countBlocks({ from, to }: BlockRange): number {
  return to - from + 1;
}

function encodeBlockRange({ from, to }: BlockRange) {
  return { fromBlock: toQuantity(from), toBlock: to === Number.POSITIVE_INFINITY ? "latest" : toQuantity(to) };
}

/** Returns whether an error may mean that the block range is too wide. */
export function isBlockRangeError(error: UpstreamError): boolean {
  if (error instanceof RpcError) return error.classification?.kind === undefined;
  return TOO_LARGE_STATUSES.has(error.status) || error.kind === "too_large";
}

/** Returns the smallest plausible number of blocks that a rejection names. */
export function parseSuggestedBlockRange(error: UpstreamError, requested: BlockRange): number | undefined {
  if (!(error instanceof RpcError)) return undefined;
  const { from, to } = requested;
  const numbers = (error.classification?.numbers ?? []).filter((number) => number !== from && number !== to);
  return findNamedLimit(numbers, { smallest: MIN_BLOCK_RANGE, rejectedSize: countBlocks(requested) });
}
