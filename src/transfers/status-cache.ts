import { LRUCache } from "lru-cache";
import type { Network } from "../hop/networks.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { SingleFlight } from "../resilience/single-flight.js";
import { createRepeatFilter } from "./repeat-filter.js";
import type { TransferResolver } from "./resolver.js";
import type { IndexLookup } from "./sources/index-source.js";
import {
  type LookupContext,
  type LookupResult,
  type TransferQuery,
  usesCustomEndpoints,
} from "./sources/transfer-source.js";
import { type BudgetExhaustedError, isBudgetExhausted } from "./spend/lookup-budget.js";
import { EXHAUSTED_PAUSE_MS } from "./spend/spend-limits.js";
import { isImmutableStatus, type TransferStatus } from "./status.js";

/** Read-through cache of transfer statuses. */
export interface StatusCache {
  /**
   * Returns the status of a transfer, or undefined when it certainly does not exist. Answers synchronously when the
   * status is cached or indexed, without reading the signal. A cached status is frozen: the next caller gets the same
   * object.
   * @throws ServiceError as TransferResolver.resolve and AdaptiveLimiter.run do
   */
  find(query: TransferQuery, context: LookupContext): LookupResult | Promise<LookupResult>;
  /**
   * Looks a transfer up past what is cached, and keeps the result: a watch has seen that it changed. Not for custom endpoints.
   * @throws ServiceError as `find`
   */
  refresh(query: TransferQuery, context: LookupContext): Promise<LookupResult>;
}

export interface StatusCacheOptions {
  /** Queried before the resolver; undefined when there is no index. */
  readonly index: Pick<IndexLookup, "findKnownStatus"> | undefined;
  readonly resolver: TransferResolver;
  /** Deduplicates lookups in flight. */
  readonly singleFlight: SingleFlight<LookupResult>;
  /** Limits lookups. */
  readonly limiter: AdaptiveLimiter;
  /** Time limit of a shared lookup, in milliseconds. */
  readonly timeoutMs: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

const MAX_ENTRIES = 10_000;
/** Estimated, for all statuses together with the messages and texts that are made of them. */
const MAX_BYTES = 64 * 1024 * 1024;
const BYTES_PER_STATUS = 6_000;
/** Each is an ID in the status, in its messages and in their texts. */
const BYTES_PER_OTHER_TRANSFER = 400;
/** An indexed transfer that is asked for again before about as many others is cached. 64 KiB. */
const REPEAT_FILTER_SLOTS = 16_384;
/** Immutable statuses are read again after this time as well, in case a source was wrong. */
const IMMUTABLE_TTL_MS = 60 * 60_000;
/** Limits how often the chains are queried for one transfer, however often callers ask. */
const MIN_TTL_MS = 1_000;
/** How long "not found" is kept at least. */
const MIN_NOT_FOUND_TTL_MS = 5_000;

/** A lookup that found no status: the transfer does not exist, or the lookup has spent its budget. */
interface Miss {
  readonly error: BudgetExhaustedError | undefined;
}

/** Returns how long a status that can still change may be served, in milliseconds: about one block of the destination. */
export function getStatusTtlMs({ sent }: TransferStatus): number {
  return Math.max(sent.destination.blockTimeMs, MIN_TTL_MS);
}

/**
 * Returns how long "not found" is kept, in milliseconds: until the network's fastest chain has a new block, since the
 * transfer may be in it.
 */
function getNotFoundTtlMs({ chains }: Network): number {
  const blockTimesMs = [...chains.values()].map(({ blockTimeMs }) => blockTimeMs);
  return Math.max(MIN_NOT_FOUND_TTL_MS, Math.min(...blockTimesMs));
}

function getKey({ transactionHash, transferId }: TransferQuery, { network }: LookupContext): string {
  return `${network.slug} ${transactionHash ?? ""} ${transferId ?? ""}`;
}

/** Copies a context whose signal may be created on first access, by a getter that spreading the context would lose. */
function readSignal(context: LookupContext): LookupContext {
  return { ...context, signal: context.signal };
}

/**
 * Creates a cache that deduplicates concurrent lookups. It keeps statuses (indexed ones only if they are asked for again)
 * and, for a short time, "not found" and that a lookup has spent its budget. It never keeps other errors or anything read
 * from a caller's custom endpoint. A lookup that has begun is finished even if all its callers leave: its result is kept
 * for the next one.
 */
export function createStatusCache({
  index,
  resolver,
  singleFlight,
  limiter,
  timeoutMs,
  now,
}: StatusCacheOptions): StatusCache {
  const clock = { perf: { now }, ttlResolution: 0 };
  const cache = new LRUCache<string, TransferStatus>({
    max: MAX_ENTRIES,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ otherTransferIds }) => BYTES_PER_STATUS + otherTransferIds.length * BYTES_PER_OTHER_TRANSFER,
    ...clock,
  });
  const repeated = createRepeatFilter(REPEAT_FILTER_SLOTS);
  const misses = new LRUCache<string, Miss>({ max: MAX_ENTRIES, ...clock });

  function store(key: string, status: TransferStatus): TransferStatus {
    Object.freeze(status);
    cache.set(key, status, { ttl: isImmutableStatus(status) ? IMMUTABLE_TTL_MS : getStatusTtlMs(status) });
    return status;
  }

  async function resolveAndStore(key: string, query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    try {
      const status = await resolver.resolve(query, context);
      if (status === undefined) misses.set(key, { error: undefined }, { ttl: getNotFoundTtlMs(context.network) });
      return status && store(key, status);
    } catch (error) {
      if (isBudgetExhausted(error, "lookup")) misses.set(key, { error }, { ttl: EXHAUSTED_PAUSE_MS });
      throw error;
    }
  }

  /** Runs a lookup within its own time, not that of the caller who began it. */
  function resolveInTime(
    key: string,
    query: TransferQuery,
    context: LookupContext,
    onStart?: () => void,
  ): Promise<LookupResult> {
    const deadline = now() + timeoutMs;
    return limiter.run(context.caller, context.signal, () => {
      onStart?.();
      return resolveAndStore(key, query, { ...context, remainingMs: () => deadline - now() });
    });
  }

  async function findShared(key: string, query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    let isOwnLookup = false;
    const run = (): Promise<LookupResult> =>
      singleFlight.run(key, context.signal, (signal, detach) => {
        isOwnLookup = true;
        return resolveInTime(key, query, { ...context, signal }, detach);
      });
    try {
      return await run();
    } catch (error) {
      // Another caller has spent its budget; this one has its own.
      if (isOwnLookup || !isBudgetExhausted(error, "caller")) throw error;
      return run();
    }
  }

  return {
    find(query, context) {
      if (usesCustomEndpoints(context.chains, context.network.chains.keys())) {
        const lookupContext = readSignal(context);
        return limiter.run(context.caller, lookupContext.signal, () => resolver.resolve(query, lookupContext));
      }
      const key = getKey(query, context);
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      const indexed = index?.findKnownStatus(query, context);
      // Reading the index again is cheap, and cheaper than keeping a status that nobody asks for again.
      if (indexed !== undefined) return repeated.record(key) ? store(key, indexed) : indexed;
      const miss = misses.get(key);
      if (miss?.error !== undefined) throw miss.error;
      if (miss !== undefined) return undefined;
      if (!singleFlight.isInFlight(key)) limiter.assertCapacity(context.caller);
      return findShared(key, query, readSignal(context));
    },
    async refresh(query, context) {
      const indexed = index?.findKnownStatus(query, context);
      if (indexed !== undefined) return indexed;
      const key = getKey(query, context);
      const status = await resolveInTime(key, query, context);
      if (status === undefined) cache.delete(key);
      return status;
    },
  };
}
