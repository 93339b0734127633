import type { TokenBucketRate } from "./token-buckets.js";

// What lookups may spend. A unit is one HTTP request to an RPC endpoint. docs/limits.md lists these values.

/** Requests of one lookup to one chain. With nine chains a lookup sends at most 450. */
export const MAX_REQUESTS_PER_CHAIN = 50;
/** After so many no more logs are searched. The rest is kept for the reads that follow once the transfer is found. */
export const MAX_REQUESTS_BEFORE_SEARCH = 40;
/** Requests of one lookup, should a network have more chains. */
export const MAX_REQUESTS_PER_LOOKUP = 450;

/**
 * Requests of a lookup that cost nothing: one that finds its transfer at once takes 9 to 15. Only those beyond are
 * expensive and count against the caller and the process.
 */
export const FREE_REQUESTS_PER_LOOKUP = 20;
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
