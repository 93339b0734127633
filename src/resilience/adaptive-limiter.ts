import { ServiceError } from "../errors.js";
import { createFairQuota } from "./fair-quota.js";
import { createSemaphore } from "./semaphore.js";

/** Lets through expensive work: as much at a time as the process bears, a short line behind it, and no more. */
export interface AdaptiveLimiter {
  /**
   * Does the work when it is its turn.
   * @param caller who wants it: nobody gets so much that others find no place
   * @throws ServiceError OVERLOADED, at once, when there is no place for this caller
   * @throws the signal's reason when it fires before the work begins
   */
  run<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /**
   * For who has much to prepare before: to be sent away should cost little.
   * @throws ServiceError OVERLOADED where `pass` would
   */
  assertCapacity(caller: string): void;
  load(): LimiterLoad;
}

/** How much goes through a gate now. */
export interface LimiterLoad {
  /** Most works at a time. */
  readonly limit: number;
  /** Works under way, and those in line for it. */
  readonly inFlight: number;
}

/** Works at a time: at the start, the fewest and the most that it can become. Each takes some ten kilobytes. */
const INITIAL_LIMIT = 64;
const MIN_LIMIT = 16;
const MAX_LIMIT = 2_048;
/** How many of one caller may wait in line: what comes at once, as of a back end that starts, is done in a moment. */
const MAX_QUEUED_PER_CALLER = 64;
/** How late the event loop may be, in milliseconds: so long does every answer wait that would be ready at once. */
const MAX_EVENT_LOOP_LAG_MS = 5;
/** Share of its time that it has work of ours when that makes it late: what makes an idle one late is another process. */
const BUSY_UTILIZATION = 0.75;
/** How often that is looked at while there is work, in milliseconds. */
const SAMPLE_INTERVAL_MS = 20;
const INCREASE_FACTOR = 1.1;
const DECREASE_FACTOR = 0.8;

/**
 * The limit grows while all of it is used and the event loop keeps up, so that work which only waits, as for an upstream
 * that hangs, keeps no other work out. Where the loop does not keep up it falls below what is under way. When all work
 * has ended it is as at the start, since the next load may be another.
 * @param now milliseconds on a steady clock
 * @param busyMs for how much of its life the event loop has had work, in milliseconds
 */
export function createAdaptiveLimiter(
  now: () => number,
  busyMs = () => performance.eventLoopUtilization().active,
): AdaptiveLimiter {
  let limit = INITIAL_LIMIT;
  let atWork = 0;
  /** Those at work and in line. */
  let inFlight = 0;
  /** Whether somebody was sent away, or found all at work, since the last look. */
  let wasFull = false;
  let isLooking = false;
  const turns = createSemaphore(limit);
  // A single caller gets half the places: all the work that is borne, and its line.
  const places = createFairQuota(() => 2 * (limit + MAX_QUEUED_PER_CALLER));

  function look(): void {
    isLooking = true;
    const [startedAt, busyBefore] = [now(), busyMs()];
    setTimeout(() => {
      const tookMs = now() - startedAt;
      const isLate =
        tookMs > SAMPLE_INTERVAL_MS + MAX_EVENT_LOOP_LAG_MS && busyMs() - busyBefore > BUSY_UTILIZATION * tookMs;
      if (isLate) limit = Math.max(MIN_LIMIT, Math.floor(Math.min(limit, atWork) * DECREASE_FACTOR));
      else if (wasFull || inFlight > limit) limit = Math.min(MAX_LIMIT, Math.ceil(limit * INCREASE_FACTOR));
      if (inFlight === 0) limit = INITIAL_LIMIT;
      turns.setLimit(limit);
      wasFull = false;
      isLooking = false;
      if (atWork > 0) look();
    }, SAMPLE_INTERVAL_MS).unref();
  }

  function sendAway(): never {
    wasFull = true;
    const message = "too much is being worked on here; what is known already is answered";
    throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
  }

  return {
    assertCapacity(caller) {
      if (!places.hasCapacityFor(caller)) sendAway();
    },
    async run(caller, signal, work) {
      const leave = places.tryAcquire(caller) ?? sendAway();
      wasFull ||= inFlight >= limit;
      inFlight += 1;
      try {
        return await turns.acquire(signal, async () => {
          atWork += 1;
          if (!isLooking) look();
          try {
            return await work();
          } finally {
            atWork -= 1;
          }
        });
      } finally {
        inFlight -= 1;
        leave();
      }
    },
    load: () => ({ limit, inFlight }),
  };
}
