import { LRUCache } from "lru-cache";
import { ServiceError } from "../../errors.js";
import { TokenBucket } from "../../resilience/token-bucket.js";
import { listCallers, type Waiters } from "../../resilience/waiters.js";

// What lookups may spend. A unit is one HTTP request to an RPC endpoint. docs/limits.md lists these values.

/** Requests of one lookup to all chains. */
export const MAX_REQUESTS_PER_LOOKUP = 450;
/**
 * Requests of one lookup to one chain. Beyond them a chain gets only what the lookup need not keep for the other chains that
 * it searches, so that a fast chain leaves the slow ones their share; nothing over custom endpoints.
 */
export const MAX_REQUESTS_PER_CHAIN = 50;
/** Part of both limits that log searches leave for the reads that follow once the transfer is found. */
export const REQUESTS_AFTER_SEARCH = 10;

/**
 * Requests of a lookup that cost nothing. One that finds its transfer at once takes 9 to 15, or twice as many where chain ids
 * are read separately. Only those beyond are expensive and count against the caller and the process.
 */
export const FREE_REQUESTS_PER_LOOKUP = 40;
/** Expensive requests of one caller: 25 complete searches at once, and then 100 requests per second. */
export const CALLER_LOOKUP_RATE = { capacity: 10_000, refillPerSecond: 100 };
/** Expensive requests of all callers. */
export const PROCESS_RATE = { capacity: 40_000, refillPerSecond: 400 };

/** Requests to the operator's endpoints that a receipt from a caller's own endpoint may cause. */
export const MAX_REQUESTS_FOR_UNTRUSTED_RECEIPT = 40;

/** After a lookup or scan has spent its budget it sends no requests for this time, in milliseconds. */
export const EXHAUSTED_PAUSE_MS = 30_000;

/** Concurrent log searches of one caller on one chain; all callers together get twice as many. */
export const MAX_LOG_SEARCHES_PER_CALLER = 16;

/** Buckets of callers: about a megabyte. One that is evicted starts full again: only those that were not used for long are. */
const MAX_BUCKETS = 10_000;
const REMEDY = "an index, or an endpoint that searches the whole chain, takes a few";

/** What a request reads. */
export type RequestPurpose = "logs" | "receipt" | "transaction" | "block" | "call" | "other";

/** Whose budget of requests is spent. */
export type BudgetKind = "lookup" | "caller" | "process";

/** Reports that a lookup may send no more requests. */
export class BudgetExhaustedError extends ServiceError {
  constructor(
    readonly budget: BudgetKind,
    ...args: ConstructorParameters<typeof ServiceError>
  ) {
    super(...args);
  }
}

/** The budgets of all lookups, of their callers and of the process. */
export class LookupBudgets {
  readonly options;
  readonly #callerBuckets = new LRUCache<string, TokenBucket>({ max: MAX_BUCKETS });
  readonly #processBucket: TokenBucket;

  constructor(options: {
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
    /** Called for each request that is spent. */
    readonly onRequest?: ((purpose: RequestPurpose) => void) | undefined;
    /** Called once for each lookup that was refused a request. */
    readonly onExhausted?: ((budget: BudgetKind) => void) | undefined;
    /** Number of endpoints that each read asks. A lookup may send as many times the requests. Default: 1. */
    readonly requestsPerRead?: number;
  }) {
    this.options = options;
    this.#processBucket = this.#createBucket(PROCESS_RATE);
  }

  /**
   * Opens the budget of one lookup, which also spends the budgets of its callers and of the process.
   * @param callers those who wait for it: the first of them pays who has not spent its budget
   * @param isPrivate whether the lookup uses custom endpoints, whose data may be made to cost much
   */
  open(callers: string | Waiters, isPrivate: boolean): LookupBudget {
    return new LookupBudget(this, callers, isPrivate);
  }

  /** Takes one request from the budgets of one of the callers and of the process; returns an error where there is none. */
  takeExpensive(callers: string | Waiters): BudgetExhaustedError | undefined {
    const emptyBucket = this.#takeFromCallers(callers);
    if (emptyBucket !== undefined) {
      const message = `this client's searches for transfers take too many requests; ${REMEDY}`;
      const retryAfterSeconds = secondsUntilLookup(emptyBucket, CALLER_LOOKUP_RATE.refillPerSecond);
      return new BudgetExhaustedError("caller", "RATE_LIMITED", message, { retryAfterSeconds });
    }
    if (!this.#processBucket.tryTake()) {
      const message = `searches for transfers take too many requests; ${REMEDY}`;
      const retryAfterSeconds = secondsUntilLookup(this.#processBucket, PROCESS_RATE.refillPerSecond);
      return new BudgetExhaustedError("process", "OVERLOADED", message, { retryAfterSeconds });
    }
    return undefined;
  }

  /** Takes one request from the first bucket that has one. Returns undefined, or if all are empty the last of them. */
  #takeFromCallers(callers: string | Waiters): TokenBucket | undefined {
    let emptyBucket: TokenBucket | undefined;
    for (const caller of listCallers(callers)) {
      const bucket = this.#callerBuckets.get(caller) ?? this.#createBucket(CALLER_LOOKUP_RATE);
      this.#callerBuckets.set(caller, bucket);
      if (bucket.tryTake()) return undefined;
      emptyBucket = bucket;
    }
    return emptyBucket;
  }

  #createBucket({ capacity, refillPerSecond }: typeof CALLER_LOOKUP_RATE): TokenBucket {
    return new TokenBucket({ perSecond: refillPerSecond, burst: capacity, now: this.options.now });
  }
}

/** The requests that one lookup may send to the chains. */
export class LookupBudget {
  readonly #budgets: LookupBudgets;
  readonly #callers: string | Waiters;
  readonly #isPrivate: boolean;
  /** Times that the limits of a lookup apply. */
  readonly #factor: number;
  readonly #spentByChain = new Map<string, number>();
  readonly #searchedChains = new Set<string>();
  #total = 0;
  #exhaustion: BudgetExhaustedError | undefined;

  constructor(budgets: LookupBudgets, callers: string | Waiters, isPrivate: boolean) {
    this.#budgets = budgets;
    this.#callers = callers;
    this.#isPrivate = isPrivate;
    this.#factor = budgets.options.requestsPerRead ?? 1;
  }

  /** Returns the error of the first request that was refused; undefined: none was. */
  getExhaustion(): BudgetExhaustedError | undefined {
    return this.#exhaustion;
  }

  /**
   * Spends one request.
   * @throws BudgetExhaustedError instead when the lookup, its caller or the process has spent its budget
   */
  spend(chain: string, purpose: RequestPurpose): void {
    const { onRequest, onExhausted } = this.#budgets.options;
    if (purpose === "logs") this.#searchedChains.add(chain);
    const refusal = this.#findRefusal(chain, purpose);
    if (refusal !== undefined) {
      if (this.#exhaustion === undefined) onExhausted?.(refusal.budget);
      this.#exhaustion ??= refusal;
      throw refusal;
    }
    this.#total += 1;
    this.#spentByChain.set(chain, this.#countSpent(chain) + 1);
    onRequest?.(purpose);
  }

  #findRefusal(chain: string, purpose: RequestPurpose): BudgetExhaustedError | undefined {
    if (this.#isOverLimit(chain, purpose)) return searchTooLongError(chain, this.#isPrivate);
    const isExpensive = this.#total >= FREE_REQUESTS_PER_LOOKUP * this.#factor;
    return isExpensive ? this.#budgets.takeExpensive(this.#callers) : undefined;
  }

  #isOverLimit(chain: string, purpose: RequestPurpose): boolean {
    const left = purpose === "logs" ? REQUESTS_AFTER_SEARCH : 0;
    const limit = (MAX_REQUESTS_PER_LOOKUP - left) * this.#factor;
    if (this.#total >= limit) return true;
    if (this.#countSpent(chain) < (MAX_REQUESTS_PER_CHAIN - left) * this.#factor) return false;
    return this.#isPrivate || this.#total + this.#countReserved(chain) >= limit;
  }

  /** Returns how many requests are kept for the other chains that are searched. */
  #countReserved(chain: string): number {
    let reserved = 0;
    for (const other of this.#searchedChains) {
      const left = MAX_REQUESTS_PER_CHAIN * this.#factor - this.#countSpent(other);
      if (other !== chain) reserved += Math.max(0, left);
    }
    return reserved;
  }

  #countSpent(chain: string): number {
    return this.#spentByChain.get(chain) ?? 0;
  }
}

/** Returns after how many whole seconds, at least one, a bucket will hold the requests of one lookup. */
function secondsUntilLookup(bucket: TokenBucket, refillPerSecond: number): number {
  return Math.max(1, Math.ceil((MAX_REQUESTS_PER_LOOKUP - bucket.level()) / refillPerSecond));
}

/**
 * Reports a search that takes more requests than one lookup may send.
 * @param isPrivate whether nothing of it is kept for the next lookup
 */
export function searchTooLongError(chain: string, isPrivate: boolean): BudgetExhaustedError {
  const next = isPrivate ? "" : `: a lookup after ${EXHAUSTED_PAUSE_MS / 1000} s goes on with it`;
  const message = `the search of ${chain} takes many requests${next}; ${REMEDY}`;
  return new BudgetExhaustedError("lookup", "UPSTREAM_UNAVAILABLE", message);
}

/** Returns whether a lookup failed because a budget was spent. */
export function isBudgetExhausted(error: unknown, budget?: BudgetKind): error is BudgetExhaustedError {
  return error instanceof BudgetExhaustedError && (budget === undefined || error.budget === budget);
}
