import { LRUCache } from "lru-cache";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { SingleFlight } from "../resilience/single-flight.js";
import type { TransferResolver } from "./resolver.js";
import type { IndexLookup } from "./sources/index-source.js";
import {
  type LookupContext,
  type LookupResult,
  type TransferQuery,
  usesCustomEndpoints,
} from "./sources/transfer-source.js";
import { isImmutableStatus, type TransferStatus } from "./status.js";

/** Read-through cache of transfer statuses. */
export interface StatusCache {
  /**
   * Returns the status of a transfer, or undefined when it certainly does not exist. Answers synchronously when the
   * status is cached or indexed.
   * @throws ServiceError as TransferResolver.resolve and AdaptiveLimiter.run do
   */
  find(query: TransferQuery, context: StatusLookupContext): LookupResult | Promise<LookupResult>;
}

/** A lookup with the identity of its caller. */
export interface StatusLookupContext extends LookupContext {
  readonly caller: string;
}

export interface StatusCacheOptions {
  /** Queried before the resolver; undefined when there is no index. */
  readonly index: Pick<IndexLookup, "findKnownStatus"> | undefined;
  readonly resolver: TransferResolver;
  /** Deduplicates lookups in flight. */
  readonly singleFlight: SingleFlight<LookupResult>;
  /** Limits shared lookups. Lookups over custom endpoints are limited together with those endpoints. */
  readonly limiter: AdaptiveLimiter;
  /** Time limit of a shared lookup, in milliseconds. */
  readonly timeoutMs: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** About ten megabytes. */
const MAX_ENTRIES = 10_000;
/** Immutable statuses are read again after this time as well, in case a source was wrong. */
const IMMUTABLE_TTL_MS = 60 * 60_000;
/** Limits how often the chains are queried for one transfer, however often callers ask. */
const MIN_TTL_MS = 1_000;

/** Returns how long a status that can still change may be served, in milliseconds: about one block of the destination. */
export function getStatusTtlMs({ sent }: TransferStatus): number {
  return Math.max(sent.destination.blockTimeMs, MIN_TTL_MS);
}

/**
 * Creates a cache that deduplicates concurrent lookups and stores statuses only: it never stores "not found", errors or
 * anything read from a caller's custom endpoint.
 */
export function createStatusCache({
  index,
  resolver,
  singleFlight,
  limiter,
  timeoutMs,
  now,
}: StatusCacheOptions): StatusCache {
  const cache = new LRUCache<string, TransferStatus>({ max: MAX_ENTRIES, perf: { now }, ttlResolution: 0 });

  function store(key: string, status: LookupResult): LookupResult {
    if (status !== undefined)
      cache.set(key, status, { ttl: isImmutableStatus(status) ? IMMUTABLE_TTL_MS : getStatusTtlMs(status) });
    return status;
  }

  function createSharedLookup(
    query: TransferQuery,
    context: StatusLookupContext,
  ): (signal: AbortSignal) => Promise<LookupResult> {
    // Not the first caller's deadline: callers that join later may have more time.
    const deadline = now() + timeoutMs;
    return (signal) =>
      limiter.run(context.caller, signal, () =>
        resolver.resolve(query, { ...context, signal, remainingMs: () => deadline - now() }),
      );
  }

  return {
    find(query, context) {
      if (usesCustomEndpoints(context.chains, context.network.chains.keys())) return resolver.resolve(query, context);
      const key = `${context.network.slug} ${query.transactionHash ?? ""} ${query.transferId ?? ""}`;
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      const indexed = index?.findKnownStatus(query, context);
      if (indexed !== undefined) return store(key, indexed);
      if (!singleFlight.isInFlight(key)) limiter.assertCapacity(context.caller);
      return singleFlight
        .run(key, context.signal, createSharedLookup(query, context))
        .then((status) => store(key, status));
    },
  };
}
