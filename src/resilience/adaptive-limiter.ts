import { ServiceError } from "../errors.js";
import { createFairQuota } from "./fair-quota.js";
import { createSemaphore } from "./semaphore.js";

/** Limits the concurrency of expensive work to what the process can bear, with a short queue, and rejects the rest. */
export interface AdaptiveLimiter {
  /**
   * Runs the work as soon as there is capacity.
   * @param caller fairness key: one caller cannot occupy the slots of all others
   * @throws ServiceError OVERLOADED, at once, when there is no slot for this caller
   * @throws the signal's reason when it aborts before the work starts
   */
  run<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /**
   * Lets a caller check before expensive preparation, so that a rejection is cheap.
   * @throws ServiceError OVERLOADED where `run` would
   */
  assertCapacity(caller: string): void;
  load(): LimiterLoad;
}

/** Current load of a limiter. */
export interface LimiterLoad {
  /** Current concurrency limit. */
  readonly limit: number;
  /** Running and queued work. */
  readonly inFlight: number;
}

/** Concurrency limits: initial, lowest and highest. One piece of work takes some ten kilobytes. */
const INITIAL_LIMIT = 64;
const MIN_LIMIT = 16;
const MAX_LIMIT = 2_048;
/** Queue length per caller: a burst, as of a back end that starts, is worked off in a moment. */
const MAX_QUEUED_PER_CALLER = 64;
/** Event-loop lag above which the limit falls, in milliseconds. Every response that is ready waits that long. */
const MAX_EVENT_LOOP_LAG_MS = 5;
/** Utilization above which the lag is caused by this process. An idle event loop lags because of other processes. */
const BUSY_UTILIZATION = 0.75;
/** Sampling interval while there is work, in milliseconds. */
const SAMPLE_INTERVAL_MS = 20;
const INCREASE_FACTOR = 1.1;
const DECREASE_FACTOR = 0.8;

/**
 * Creates a limiter that follows event-loop lag. The limit grows while all of it is used and the event loop keeps up, so
 * that work which only waits, for example for an upstream that hangs, does not block other work. When the event loop
 * lags, the limit falls below the number of running calls. When all work has ended it returns to the initial value,
 * because the next load may be different.
 * @param now monotonic clock, in milliseconds
 * @param busyMs returns how long the event loop has been active since the process started, in milliseconds
 */
export function createAdaptiveLimiter(
  now: () => number,
  busyMs = () => performance.eventLoopUtilization().active,
): AdaptiveLimiter {
  let limit = INITIAL_LIMIT;
  let running = 0;
  /** Running and queued work. */
  let inFlight = 0;
  /** Whether a caller was rejected or had to queue since the last sample. */
  let wasSaturated = false;
  let isSampling = false;
  const semaphore = createSemaphore(limit);
  // The quota gives a single caller half of the slots: that is the whole limit and its queue.
  const quota = createFairQuota(() => 2 * (limit + MAX_QUEUED_PER_CALLER));

  function sampleEventLoop(): void {
    isSampling = true;
    const [startedAt, busyBefore] = [now(), busyMs()];
    setTimeout(() => {
      const elapsedMs = now() - startedAt;
      const isLagging =
        elapsedMs > SAMPLE_INTERVAL_MS + MAX_EVENT_LOOP_LAG_MS && busyMs() - busyBefore > BUSY_UTILIZATION * elapsedMs;
      if (isLagging) limit = Math.max(MIN_LIMIT, Math.floor(Math.min(limit, running) * DECREASE_FACTOR));
      else if (wasSaturated || inFlight > limit) limit = Math.min(MAX_LIMIT, Math.ceil(limit * INCREASE_FACTOR));
      if (inFlight === 0) limit = INITIAL_LIMIT;
      semaphore.setLimit(limit);
      wasSaturated = false;
      isSampling = false;
      if (running > 0) sampleEventLoop();
    }, SAMPLE_INTERVAL_MS).unref();
  }

  function throwOverloaded(): never {
    wasSaturated = true;
    const message = "the server is overloaded; cached answers are still served";
    throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
  }

  return {
    assertCapacity(caller) {
      if (!quota.hasCapacityFor(caller)) throwOverloaded();
    },
    async run(caller, signal, work) {
      const release = quota.tryAcquire(caller) ?? throwOverloaded();
      wasSaturated ||= inFlight >= limit;
      inFlight += 1;
      try {
        return await semaphore.acquire(signal, async () => {
          running += 1;
          if (!isSampling) sampleEventLoop();
          try {
            return await work();
          } finally {
            running -= 1;
          }
        });
      } finally {
        inFlight -= 1;
        release();
      }
    },
    load: () => ({ limit, inFlight }),
  };
}
