import { ServiceError } from "../../errors.js";
import { createSemaphore } from "../../resilience/semaphore.js";
import type { UpstreamError } from "../../resilience/upstream-error.js";
import { type BlockRange, type ChainClient, getRpcResult } from "../chain-client.js";
import { toQuantity } from "../hex.js";
import { areLogsMatching } from "../json-rpc/parse-results.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import type { Upstream } from "./endpoint-attempt.js";
import type { HedgedRequester } from "./hedged-requests.js";

/** Reads logs as ChainClient.getLogs does. `isBackground`: as in RpcCall. */
export type AdaptiveLogReader = (
  ...args: [...parameters: Parameters<ChainClient["getLogs"]>, isBackground?: boolean]
) => ReturnType<ChainClient["getLogs"]>;

export interface AdaptiveLogReaderOptions {
  readonly upstreams: readonly Upstream[];
  readonly isHealthy: (upstream: Upstream) => boolean;
  readonly request: HedgedRequester;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** The largest block range that an endpoint is known to accept, valid until a time on the monotonic clock. */
interface BlockRangeLimit {
  readonly maxBlocks: number;
  readonly expiresAt: number;
}

/** Concurrent log searches of all callers. Lookups share them fairly among callers: see src/transfers/spend/. */
const MAX_CONCURRENT_LOG_SEARCHES = 32;
/** Block range that is tried after a rejection which names no limit. */
export const DEFAULT_MAX_BLOCK_RANGE = 10_000;
/** Smallest block range that is tried. A rejection of so few blocks has another reason. */
export const MIN_BLOCK_RANGE = 10;
/** How long a limit is used. It may have been temporary, or have been raised since. */
const RANGE_LIMIT_TTL_MS = 10 * 60_000;
/** TTL of a limit after a rejection that was probably not about the block range. */
const UNCERTAIN_LIMIT_TTL_MS = 30_000;
/** HTTP statuses for a request or response that is too long, or took too long. */
const TOO_LARGE_STATUSES: ReadonlySet<number | undefined> = new Set([400, 408, 413, 504, 524]);

/**
 * Creates a log reader for endpoints that each accept a different number of blocks per request. Learns the limits from
 * rejections and timeouts.
 */
export function createAdaptiveLogReader({
  upstreams,
  isHealthy,
  request,
  now,
}: AdaptiveLogReaderOptions): AdaptiveLogReader {
  const limits = new Map<Upstream, BlockRangeLimit>();

  function getMaxBlocks(upstream: Upstream): number {
    const limit = limits.get(upstream);
    return limit === undefined || now() >= limit.expiresAt ? Number.POSITIVE_INFINITY : limit.maxBlocks;
  }

  /** Learns from a rejection. @param suggested the limit that the rejection names */
  function narrow(upstream: Upstream, blockCount: number, suggested: number | undefined): void {
    const previous = limits.get(upstream);
    const half = Math.max(Math.min(Math.floor(blockCount / 2), DEFAULT_MAX_BLOCK_RANGE), MIN_BLOCK_RANGE);
    // The previous limit probably still holds. An expired one is doubled, so that one bad moment does not count forever.
    const isUsable = previous !== undefined && previous.maxBlocks > MIN_BLOCK_RANGE && previous.maxBlocks < blockCount;
    const isValid = isUsable && now() < previous.expiresAt;
    const guess = isUsable
      ? Math.min(previous.maxBlocks * (isValid ? 1 : 2), Math.max(half, previous.maxBlocks))
      : half;
    const maxBlocks = suggested ?? guess;
    limits.set(upstream, {
      maxBlocks: isValid ? Math.min(maxBlocks, previous.maxBlocks) : maxBlocks,
      expiresAt: now() + RANGE_LIMIT_TTL_MS,
    });
  }

  return async (filter, range, newestFirst, signal, onRequest, isBackground = false) => {
    /** Endpoints that failed for other reasons than the block range. */
    const failed = new Set<Upstream>();
    let failure: unknown = new Error("the chain has no endpoints");
    for (;;) {
      const remaining = upstreams.filter((upstream) => !failed.has(upstream));
      if (remaining.length === 0) throw failure;
      // Two requests to a healthy endpoint are better than one to an unhealthy endpoint.
      const healthy = remaining.filter(isHealthy);
      const maxBlocks = Math.max(...(healthy.length > 0 ? healthy : remaining).map(getMaxBlocks));
      const part = truncateRange(range, maxBlocks, newestFirst);
      if (part === undefined) return undefined;
      const blockCount = countBlocks(part);
      const eligible = new Set(remaining.filter((upstream) => getMaxBlocks(upstream) >= blockCount));
      let hasFailed = false;
      try {
        const call = {
          method: "eth_getLogs",
          params: [{ ...filter, ...encodeBlockRange(part) }],
          isBackground,
          // An endpoint that returns other logs has not searched for the requested ones.
          validate: (result: unknown) => areLogsMatching(result, filter, part),
          onRequest,
        };
        const [outcome] = await request([call], signal, {
          isEligible: (upstream) => eligible.has(upstream),
          isRangeTooWide(upstream, error, isLate) {
            hasFailed = true;
            const isRejection = isBlockRangeError(error);
            if (isRejection && blockCount <= MIN_BLOCK_RANGE) {
              limits.set(upstream, { maxBlocks: MIN_BLOCK_RANGE, expiresAt: now() + UNCERTAIN_LIMIT_TTL_MS });
            } else if (isRejection || isLate) {
              narrow(upstream, blockCount, isRejection ? parseSuggestedBlockRange(error, part) : undefined);
              // An endpoint that times out with few blocks times out with everything.
              if (isRejection || blockCount > DEFAULT_MAX_BLOCK_RANGE) return true;
            }
            failed.add(upstream);
            return false;
          },
        });
        return { result: getRpcResult(outcome), range: part };
      } catch (error) {
        failure = error;
        // No attempt was made: the endpoints are cooling down, or the caller has left.
        if (!hasFailed) for (const upstream of eligible) failed.add(upstream);
      }
    }
  };
}

/**
 * Decorates a reader: limits its concurrent searches.
 * @param slug slug of the chain, for error messages
 */
export function limitConcurrentSearches(slug: string, readLogs: AdaptiveLogReader): AdaptiveLogReader {
  const semaphore = createSemaphore(MAX_CONCURRENT_LOG_SEARCHES);
  return async (filter, range, newestFirst, signal, ...options) => {
    try {
      return await semaphore.acquire(signal, () => readLogs(filter, range, newestFirst, signal, ...options));
    } catch (error) {
      if (error !== signal.reason) throw error;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `the logs of ${slug} could not be searched in time`);
    }
  };
}

/** Returns the part of a range with at most `maxBlocks` blocks; undefined: the range has no end to count from. */
function truncateRange(range: BlockRange, maxBlocks: number, newestFirst: boolean): BlockRange | undefined {
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
  const plausible = (error.classification?.numbers ?? []).filter(
    (number) =>
      number >= MIN_BLOCK_RANGE &&
      number < countBlocks(requested) &&
      number !== requested.from &&
      number !== requested.to,
  );
  return plausible.length === 0 ? undefined : Math.min(...plausible);
}
