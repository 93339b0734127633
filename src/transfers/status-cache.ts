import { LRUCache } from "lru-cache";
import type { Network } from "../hop/networks.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { type MaybePromise, mapMaybeAsync } from "../resilience/maybe-async.js";
import type { SingleFlight } from "../resilience/single-flight.js";
import type { IndexLookup } from "./sources/index-lookup.js";
import {
  copyContext,
  type LookupContext,
  type LookupResult,
  type TransferQuery,
  type TransferSource,
} from "./sources/transfer-source.js";
import { type BudgetExhaustedError, EXHAUSTED_PAUSE_MS, isBudgetExhausted } from "./spend/lookup-budget.js";
import { isImmutableStatus, type TransferStatus } from "./status.js";

const MAX_ENTRIES = 10_000;
/** Estimated, for all statuses together with the messages and texts that are made of them. */
const MAX_BYTES = 64 * 1024 * 1024;
const BYTES_PER_STATUS = 6_000;
/** Each is an ID in the status, in its messages and in their texts. */
const BYTES_PER_OTHER_TRANSFER = 400;
/** An indexed transfer that is asked for again before as many others is cached. Two megabytes of keys. */
const MAX_ASKED = 10_000;
/** Immutable statuses are read again after this time as well, in case a source was wrong. */
const IMMUTABLE_TTL_MS = 60 * 60_000;
/** Limits how often the chains are queried for one transfer, however often callers ask. */
const MIN_TTL_MS = 1_000;
/** How long "not found" is kept at least. */
const MIN_NOT_FOUND_TTL_MS = 5_000;

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

/**
 * Read-through cache of transfer statuses. Deduplicates concurrent lookups. It keeps statuses (indexed ones only if they are
 * asked for again) and, for a short time, "not found" and that a lookup has spent its budget. It never keeps other errors or
 * anything read from a caller's custom endpoint. A lookup ends when all its callers have left.
 */
export class StatusCache {
  readonly #options;
  readonly #statuses: LRUCache<string, TransferStatus>;
  /** Lookups that found no status: the transfer does not exist, or, with an error, the lookup has spent its budget. */
  readonly #misses: LRUCache<string, { readonly error: BudgetExhaustedError | undefined }>;
  /** Indexed transfers that were asked for, by their keys (the doorkeeper of TinyLFU). */
  readonly #asked = new LRUCache<string, true>({ max: MAX_ASKED });

  constructor(options: {
    /** Queried before the resolver; undefined when there is no index in this process. */
    readonly index: Pick<IndexLookup, "findKnownStatus"> | undefined;
    readonly resolver: TransferSource;
    /** Deduplicates lookups in flight. */
    readonly singleFlight: SingleFlight<LookupResult>;
    /** Limits lookups. */
    readonly limiter: AdaptiveLimiter;
    /** Time limit of a shared lookup, in milliseconds. */
    readonly timeoutMs: number;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
  }) {
    this.#options = options;
    const clock = { perf: { now: options.now }, ttlResolution: 0 };
    this.#statuses = new LRUCache({
      max: MAX_ENTRIES,
      maxSize: MAX_BYTES,
      sizeCalculation: ({ otherTransferIds }) => BYTES_PER_STATUS + otherTransferIds.length * BYTES_PER_OTHER_TRANSFER,
      ...clock,
    });
    this.#misses = new LRUCache({ max: MAX_ENTRIES, ...clock });
  }

  /**
   * Returns the status of a transfer, or undefined when it certainly does not exist. Answers synchronously when the
   * status is cached or indexed, without reading the signal. A cached status is frozen: the next caller gets the same
   * object.
   * @throws ServiceError as TransferSource.resolve and AdaptiveLimiter.run do
   */
  find(query: TransferQuery, context: LookupContext): MaybePromise<LookupResult> {
    const { index, resolver, limiter } = this.#options;
    if (context.isPrivate) {
      const lookupContext = copyContext(context);
      return limiter.run(context.caller, lookupContext.signal, () => resolver.resolve(query, lookupContext));
    }
    const key = getKey(query, context);
    const cached = this.#statuses.get(key);
    if (cached !== undefined) return cached;
    return mapMaybeAsync(index?.findKnownStatus(query, context), (indexed) =>
      this.#findBeside(indexed, key, query, context),
    );
  }

  /**
   * Finds a transfer as the index has it now, for a watch: it is told of what changes from now on, not of what has changed since
   * a status was cached.
   * @throws ServiceError as `find`
   */
  async findNow(query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const { index } = this.#options;
    const indexed = index && (await index.findKnownStatus(query, context));
    if (indexed !== undefined) return indexed;
    const key = getKey(query, context);
    const cached = this.#statuses.get(key);
    // Of an index on a server, which the resolver asks.
    const isOutdated = index === undefined && cached?.source === "index" && !isImmutableStatus(cached);
    return isOutdated ? this.#findShared(key, query, copyContext(context)) : this.find(query, context);
  }

  /**
   * Looks a transfer up past what is cached, and keeps the result: a watch has seen that it changed. Not for custom endpoints.
   * @throws ServiceError as `find`
   */
  async refresh(query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const { index } = this.#options;
    const indexed = index && (await index.findKnownStatus(query, context));
    if (indexed !== undefined) return indexed;
    const key = getKey(query, context);
    const status = await this.#resolveInTime(key, query, context);
    if (status === undefined) this.#statuses.delete(key);
    return status;
  }

  /** @param indexed what the index knows */
  #findBeside(
    indexed: LookupResult,
    key: string,
    query: TransferQuery,
    context: LookupContext,
  ): MaybePromise<LookupResult> {
    // Reading the index again is cheap, and cheaper than keeping a status that nobody asks for again.
    if (indexed !== undefined) {
      if (this.#asked.has(key)) return this.#store(key, indexed);
      this.#asked.set(key, true);
      return indexed;
    }
    const miss = this.#misses.get(key);
    if (miss?.error !== undefined) throw miss.error;
    if (miss !== undefined) return undefined;
    const { singleFlight, limiter } = this.#options;
    if (!singleFlight.isInFlight(key)) limiter.assertCapacity(context.waiters ?? context.caller);
    return this.#findShared(key, query, copyContext(context));
  }

  async #findShared(key: string, query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    let isOwnLookup = false;
    const run = (): Promise<LookupResult> =>
      this.#options.singleFlight.run(key, context, (waiters) => {
        isOwnLookup = true;
        return this.#resolveInTime(key, query, { ...context, waiters, signal: waiters.signal });
      });
    try {
      return await run();
    } catch (error) {
      // Another caller has spent its budget; this one has its own.
      if (isOwnLookup || !isBudgetExhausted(error, "caller")) throw error;
      return run();
    }
  }

  /** Runs a lookup within its own time, not that of the caller who began it. */
  #resolveInTime(key: string, query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const { limiter, timeoutMs, now } = this.#options;
    const deadline = now() + timeoutMs;
    return limiter.run(context.waiters ?? context.caller, context.signal, () =>
      this.#resolveAndStore(key, query, { ...context, remainingMs: () => deadline - now() }),
    );
  }

  async #resolveAndStore(key: string, query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    try {
      const status = await this.#options.resolver.resolve(query, context);
      if (status !== undefined) return this.#store(key, status);
      this.#misses.set(key, { error: undefined }, { ttl: getNotFoundTtlMs(context.network) });
      return undefined;
    } catch (error) {
      if (isBudgetExhausted(error, "lookup")) this.#misses.set(key, { error }, { ttl: EXHAUSTED_PAUSE_MS });
      throw error;
    }
  }

  #store(key: string, status: TransferStatus): TransferStatus {
    Object.freeze(status);
    this.#statuses.set(key, status, { ttl: isImmutableStatus(status) ? IMMUTABLE_TTL_MS : getStatusTtlMs(status) });
    return status;
  }
}
