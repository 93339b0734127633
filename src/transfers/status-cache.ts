import { LRUCache } from "lru-cache";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { SingleFlight } from "../resilience/single-flight.js";
import type { TransferResolver } from "./resolver.js";
import {
  isUpstreamUnavailable,
  type LookupContext,
  type LookupResult,
  querySource,
  type TransferQuery,
  type TransferSource,
} from "./sources/transfer-source.js";
import { isImmutableStatus, type TransferStatus } from "./status.js";

/** Where the status of a transfer is asked for. */
export interface StatusCache {
  /**
   * Without a promise where it is known already; undefined where there is no such transfer for sure.
   * @throws ServiceError as LookUp does; OVERLOADED as the gate
   */
  find(query: TransferQuery, context: StatusLookupContext): LookupResult | Promise<LookupResult>;
}

/** A look-up, and who asks for it. */
export interface StatusLookupContext extends LookupContext {
  readonly caller: string;
}

export interface StatusCacheOptions {
  /** Asked before anyone else; undefined: there is none. */
  readonly index: TransferSource<LookupResult> | undefined;
  readonly resolver: TransferResolver;
  /** Look-ups that are under way. */
  readonly singleFlight: SingleFlight<LookupResult>;
  /** What look-ups have to pass that others may wait for; those over a caller's own endpoints are bounded by these. */
  readonly limiter: AdaptiveLimiter;
  /** Longest time for one that several wait for, in milliseconds. */
  readonly timeoutMs: number;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** Statuses that are kept at most: some ten megabytes. */
const MAX_ENTRIES = 10_000;
/** How long a status that will not change is kept before the chains are asked once more, in milliseconds. */
const IMMUTABLE_TTL_MS = 60 * 60_000;
/** Shortest time for any other: however often callers ask, the chains are asked once a second. */
const MIN_TTL_MS = 1_000;

/** For how long a status that may change can be taken to stand: about a block, in milliseconds. */
export function getStatusTtlMs({ sent }: TransferStatus): number {
  return Math.max(sent.destination.blockTimeMs, MIN_TTL_MS);
}

/**
 * Looks up once what several ask for at the same time and keeps what was found: not that there is no such transfer, no
 * failure, and nothing that was read from a caller's own endpoint.
 */
export function createStatusCache({
  index,
  resolver,
  singleFlight,
  limiter,
  timeoutMs,
  now,
}: StatusCacheOptions): StatusCache {
  const kept = new LRUCache<string, TransferStatus>({ max: MAX_ENTRIES, perf: { now }, ttlResolution: 0 });

  function keep(key: string, found: LookupResult): LookupResult {
    if (found !== undefined)
      kept.set(key, found, { ttl: isImmutableStatus(found) ? IMMUTABLE_TTL_MS : getStatusTtlMs(found) });
    return found;
  }

  function lookUpForAll(
    query: TransferQuery,
    context: StatusLookupContext,
  ): (signal: AbortSignal) => Promise<LookupResult> {
    // Not the first caller's own deadline: others may have more time.
    const dueAt = now() + timeoutMs;
    return (signal) =>
      limiter.run(context.caller, signal, () =>
        resolver.resolve(query, { ...context, signal, remainingMs: () => dueAt - now() }),
      );
  }

  return {
    find(query, context) {
      if (usesCustomEndpoints(context)) return resolver.resolve(query, context);
      const key = `${context.network.slug} ${query.transactionHash ?? ""} ${query.transferId ?? ""}`;
      const known = kept.get(key);
      if (known !== undefined) return known;
      try {
        if (index !== undefined) return keep(key, querySource(index, query, context));
      } catch (error) {
        if (!isUpstreamUnavailable(error)) throw error;
      }
      if (!singleFlight.isInFlight(key)) limiter.assertCapacity(context.caller);
      return singleFlight.run(key, context.signal, lookUpForAll(query, context)).then((found) => keep(key, found));
    },
  };
}

function usesCustomEndpoints({ network, chains }: LookupContext): boolean {
  for (const slug of network.chains.keys()) if (chains.hasCustomEndpoint(slug)) return true;
  return false;
}
