import { ServiceError } from "../errors.js";
import { FairQuota } from "./fair-quota.js";
import { FairSemaphore } from "./fair-semaphore.js";
import type { Waiters } from "./waiters.js";

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

/** Key of the only queue: the quota shares it out among the callers. */
const ALL_CALLERS = "";

/**
 * Limits the concurrency of expensive work to what the process can bear, with a short queue, and rejects the rest. The limit
 * follows event-loop lag. It grows while all of it is used and the event loop keeps up, so that work which only waits, for
 * example for an upstream that hangs, does not block other work. When the event loop lags, the limit falls below the number
 * of running calls. When all work has ended it returns to the initial value, because the next load may be different.
 */
export class AdaptiveLimiter {
  readonly #now: () => number;
  readonly #busyMs: () => number;
  readonly #semaphore = new FairSemaphore(INITIAL_LIMIT);
  /** Gives a single caller half of the slots: that is the whole limit and its queue. */
  readonly #quota = new FairQuota(() => 2 * (this.#limit + MAX_QUEUED_PER_CALLER));
  #limit = INITIAL_LIMIT;
  #running = 0;
  /** Running and queued work. */
  #inFlight = 0;
  /** Whether a caller was rejected or had to queue since the last sample. */
  #wasSaturated = false;
  #isSampling = false;

  /**
   * @param now monotonic clock, in milliseconds
   * @param busyMs returns how long the event loop has been active since the process started, in milliseconds
   */
  constructor(now: () => number, busyMs = () => performance.eventLoopUtilization().active) {
    this.#now = now;
    this.#busyMs = busyMs;
  }

  /**
   * Lets a caller check before expensive preparation, so that a rejection is cheap.
   * @throws ServiceError OVERLOADED where `run` would
   */
  assertCapacity(callers: string | Waiters): void {
    if (!this.#quota.hasCapacityFor(callers)) this.#throwOverloaded();
  }

  /**
   * Runs the work as soon as there is capacity.
   * @param callers fairness keys, one of which takes a slot: one caller cannot occupy the slots of all others
   * @throws ServiceError OVERLOADED, at once, when there is no slot for this caller
   * @throws the signal's reason when it aborts before the work starts
   */
  async run<T>(callers: string | Waiters, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const release = this.#quota.tryAcquire(callers) ?? this.#throwOverloaded();
    this.#wasSaturated ||= this.#inFlight >= this.#limit;
    this.#inFlight += 1;
    try {
      return await this.#semaphore.acquire(ALL_CALLERS, signal, () => this.#runSampled(work));
    } finally {
      this.#inFlight -= 1;
      release();
    }
  }

  /** Returns the current concurrency limit, and the number of running and queued work. */
  load() {
    return { limit: this.#limit, inFlight: this.#inFlight };
  }

  async #runSampled<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    if (!this.#isSampling) this.#sampleEventLoop();
    try {
      return await work();
    } finally {
      this.#running -= 1;
    }
  }

  #sampleEventLoop(): void {
    this.#isSampling = true;
    const [startedAt, busyBefore] = [this.#now(), this.#busyMs()];
    setTimeout(() => {
      this.#adapt(this.#now() - startedAt, this.#busyMs() - busyBefore);
      this.#isSampling = false;
      if (this.#running > 0) this.#sampleEventLoop();
    }, SAMPLE_INTERVAL_MS).unref();
  }

  #adapt(elapsedMs: number, busyMs: number): void {
    const isLagging = elapsedMs > SAMPLE_INTERVAL_MS + MAX_EVENT_LOOP_LAG_MS && busyMs > BUSY_UTILIZATION * elapsedMs;
    if (isLagging) {
      this.#limit = Math.max(MIN_LIMIT, Math.floor(Math.min(this.#limit, this.#running) * DECREASE_FACTOR));
    } else if (this.#wasSaturated || this.#inFlight > this.#limit) {
      this.#limit = Math.min(MAX_LIMIT, Math.ceil(this.#limit * INCREASE_FACTOR));
    }
    if (this.#inFlight === 0) this.#limit = INITIAL_LIMIT;
    this.#semaphore.setPermitsPerCaller(this.#limit);
    this.#wasSaturated = false;
  }

  #throwOverloaded(): never {
    this.#wasSaturated = true;
    const message = "the server is overloaded; cached answers are still served";
    throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
  }
}
