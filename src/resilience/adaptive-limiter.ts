import { ServiceError } from "../errors.js";
import { createPlaces } from "./fair-quota.js";
import { createTurns } from "./semaphore.js";

/** Lets through expensive work: as much at a time as the process bears, a short line behind it, and no more. */
export interface Gate {
  /**
   * Does the work when it is its turn.
   * @param caller who wants it: nobody gets so much that others find no place
   * @throws ServiceError OVERLOADED, at once, when there is no place for this caller
   * @throws the signal's reason when it fires before the work begins
   */
  pass<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /**
   * For who has much to prepare before: to be sent away should cost little.
   * @throws ServiceError OVERLOADED where `pass` would
   */
  check(caller: string): void;
  load(): GateLoad;
}

/** How much goes through a gate now. */
export interface GateLoad {
  /** Most works at a time. */
  readonly limit: number;
  /** Works under way, and those in line for it. */
  readonly inside: number;
}

/** Works at a time: at the start, the fewest and the most that it can become. Each takes some ten kilobytes. */
const firstLimit = 64;
const leastLimit = 16;
const mostLimit = 2_048;
/** How many of one caller may wait in line: what comes at once, as of a back end that starts, is done in a moment. */
const lineOfOne = 64;
/** How late the event loop may be, in milliseconds: so long does every answer wait that would be ready at once. */
const bearableLagMs = 5;
/** Share of its time that it has work of ours when that makes it late: what makes an idle one late is another process. */
const busyShare = 0.75;
/** How often that is looked at while there is work, in milliseconds. */
const lookMs = 20;
const growth = 1.1;
const decline = 0.8;

/**
 * The limit grows while all of it is used and the event loop keeps up, so that work which only waits, as for an upstream
 * that hangs, keeps no other work out. Where the loop does not keep up it falls below what is under way. When all work
 * has ended it is as at the start, since the next load may be another.
 * @param now milliseconds on a steady clock
 * @param busyMs for how much of its life the event loop has had work, in milliseconds
 */
export function createGate(now: () => number, busyMs = () => performance.eventLoopUtilization().active): Gate {
  let limit = firstLimit;
  let atWork = 0;
  /** Those at work and in line. */
  let inside = 0;
  /** Whether somebody was sent away, or found all at work, since the last look. */
  let wasFull = false;
  let isLooking = false;
  const turns = createTurns(limit);
  // A single caller gets half the places: all the work that is borne, and its line.
  const places = createPlaces(() => 2 * (limit + lineOfOne));

  function look(): void {
    isLooking = true;
    const [startedAt, busyBefore] = [now(), busyMs()];
    setTimeout(() => {
      const tookMs = now() - startedAt;
      const isLate = tookMs > lookMs + bearableLagMs && busyMs() - busyBefore > busyShare * tookMs;
      if (isLate) limit = Math.max(leastLimit, Math.floor(Math.min(limit, atWork) * decline));
      else if (wasFull || inside > limit) limit = Math.min(mostLimit, Math.ceil(limit * growth));
      if (inside === 0) limit = firstLimit;
      turns.allow(limit);
      wasFull = false;
      isLooking = false;
      if (atWork > 0) look();
    }, lookMs).unref();
  }

  function sendAway(): never {
    wasFull = true;
    const message = "too much is being worked on here; what is known already is answered";
    throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
  }

  return {
    check(caller) {
      if (!places.hasOneFor(caller)) sendAway();
    },
    async pass(caller, signal, work) {
      const leave = places.take(caller) ?? sendAway();
      wasFull ||= inside >= limit;
      inside += 1;
      try {
        return await turns.take(signal, async () => {
          atWork += 1;
          if (!isLooking) look();
          try {
            return await work();
          } finally {
            atWork -= 1;
          }
        });
      } finally {
        inside -= 1;
        leave();
      }
    },
    load: () => ({ limit, inside }),
  };
}
