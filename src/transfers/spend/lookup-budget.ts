import { ServiceError } from "../../errors.js";
import { type SharedTokenBuckets, shareTokenBuckets } from "./shared-token-buckets.js";
import {
  CALLER_RATE,
  EXHAUSTED_PAUSE_MS,
  FREE_REQUESTS_PER_LOOKUP,
  MAX_REQUESTS_PER_CHAIN,
  MAX_REQUESTS_PER_LOOKUP,
  PROCESS_RATE,
  REQUESTS_AFTER_SEARCH,
} from "./spend-limits.js";
import { createTokenBuckets, type TokenBucketRate, type TokenBuckets } from "./token-buckets.js";

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

/** The requests that one lookup may send to the chains. */
export interface LookupBudget {
  /**
   * Spends one request.
   * @throws BudgetExhaustedError instead when the lookup, its caller or the process has spent its budget
   */
  spend(chain: string, purpose: RequestPurpose): void;
  /** Returns the error of the first request that was refused; undefined: none was. */
  getExhaustion(): BudgetExhaustedError | undefined;
}

export interface LookupBudgets {
  /**
   * Opens the budget of one lookup, which also spends the budgets of its caller and of the process.
   * @param isPrivate whether the lookup uses custom endpoints, whose data may be made to cost much
   */
  open(caller: string, isPrivate: boolean): LookupBudget;
}

export interface LookupBudgetsOptions {
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Called for each request that is spent. */
  readonly onRequest?: ((purpose: RequestPurpose) => void) | undefined;
  /** Called once for each lookup that was refused a request. */
  readonly onExhausted?: ((budget: BudgetKind) => void) | undefined;
  /** The budgets of all replicas; undefined: this process has its own. */
  readonly sharedBuckets?: SharedTokenBuckets | undefined;
  /** Number of endpoints that each read asks. A lookup may send as many times the requests. Default: 1. */
  readonly requestsPerRead?: number;
}

const REMEDY = "an index, or an endpoint that searches the whole chain, takes a few";
/** Key of the only bucket of the process. */
const PROCESS = "";

export function createLookupBudgets(options: LookupBudgetsOptions): LookupBudgets {
  const { now, onRequest, onExhausted, sharedBuckets, requestsPerRead = 1 } = options;
  const maxPerLookup = MAX_REQUESTS_PER_LOOKUP * requestsPerRead;
  const maxPerChain = MAX_REQUESTS_PER_CHAIN * requestsPerRead;
  const freeRequests = FREE_REQUESTS_PER_LOOKUP * requestsPerRead;
  const createBuckets = (kind: string, rate: TokenBucketRate): TokenBuckets => {
    const buckets = createTokenBuckets(rate, now);
    return sharedBuckets === undefined ? buckets : shareTokenBuckets(buckets, { ...rate, kind }, sharedBuckets);
  };
  const callerBuckets = createBuckets("caller", CALLER_RATE);
  const processBucket = createBuckets("all", PROCESS_RATE);

  function takeFromBuckets(caller: string): BudgetExhaustedError | undefined {
    if (!callerBuckets.tryTake(caller)) {
      const message = `this client's searches for transfers take too many requests; ${REMEDY}`;
      const retryAfterSeconds = callerBuckets.secondsUntil(caller, MAX_REQUESTS_PER_LOOKUP);
      return new BudgetExhaustedError("caller", "RATE_LIMITED", message, { retryAfterSeconds });
    }
    if (!processBucket.tryTake(PROCESS)) {
      const message = `searches for transfers take too many requests; ${REMEDY}`;
      const retryAfterSeconds = processBucket.secondsUntil(PROCESS, MAX_REQUESTS_PER_LOOKUP);
      return new BudgetExhaustedError("process", "OVERLOADED", message, { retryAfterSeconds });
    }
    return undefined;
  }

  return {
    open(caller, isPrivate) {
      const spentByChain = new Map<string, number>();
      const searchedChains = new Set<string>();
      let total = 0;
      let exhaustion: BudgetExhaustedError | undefined;

      /** Returns how many requests are kept for the other chains that are searched. */
      function countReserved(chain: string): number {
        let reserved = 0;
        for (const other of searchedChains) {
          if (other !== chain) reserved += Math.max(0, maxPerChain - (spentByChain.get(other) ?? 0));
        }
        return reserved;
      }

      function isOverLimit(chain: string, purpose: RequestPurpose): boolean {
        const left = purpose === "logs" ? REQUESTS_AFTER_SEARCH * requestsPerRead : 0;
        if (total >= maxPerLookup - left) return true;
        if ((spentByChain.get(chain) ?? 0) < maxPerChain - left) return false;
        return isPrivate || total + countReserved(chain) >= maxPerLookup - left;
      }

      return {
        getExhaustion: () => exhaustion,
        spend(chain, purpose) {
          if (purpose === "logs") searchedChains.add(chain);
          const isExpensive = total >= freeRequests;
          const refusal = isOverLimit(chain, purpose)
            ? searchTooLongError(chain, isPrivate)
            : isExpensive
              ? takeFromBuckets(caller)
              : undefined;
          if (refusal !== undefined) {
            if (exhaustion === undefined) onExhausted?.(refusal.budget);
            exhaustion ??= refusal;
            throw refusal;
          }
          total += 1;
          spentByChain.set(chain, (spentByChain.get(chain) ?? 0) + 1);
          onRequest?.(purpose);
        },
      };
    },
  };
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
