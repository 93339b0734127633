import type { TokenBucketRate } from "./token-buckets.js";

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
export const CALLER_RATE: TokenBucketRate = { capacity: 10_000, refillPerSecond: 100 };
/** Expensive requests of all callers. */
export const PROCESS_RATE: TokenBucketRate = { capacity: 40_000, refillPerSecond: 400 };

/** Requests to the operator's endpoints that a receipt from a caller's own endpoint may cause. */
export const MAX_REQUESTS_FOR_UNTRUSTED_RECEIPT = 40;

/** After a lookup or scan has spent its budget it sends no requests for this time, in milliseconds. */
export const EXHAUSTED_PAUSE_MS = 30_000;

/** Concurrent log searches of one caller on one chain; all callers together get twice as many. */
export const MAX_LOG_SEARCHES_PER_CALLER = 16;
