import type { HttpLimits } from "./http-limits.js";

/**
 * The time by which a peer has to take what waits for it. Socket timeouts do not serve this purpose: single bytes,
 * PINGs and window updates of the peer count as progress there. Here only sent bytes do.
 */
export class SendDeadline {
  readonly #limits: HttpLimits;
  /** What waited when the time began, and what had been sent before: bytes of a connection, chunks of a stream. */
  #waiting = 0;
  #sentBefore = 0;
  #endsAt: number | undefined;

  constructor(limits: HttpLimits) {
    this.#limits = limits;
  }

  /**
   * Returns whether something has waited for too long. What waits behind it gets a time of its own.
   * @param waiting bytes that wait at present; 0: nothing does
   * @param sent what has been sent so far
   * @param isSent returns whether that is enough, given what waited before and what had been sent then. Default: all
   * that waited has been sent
   */
  isOver(
    now: number,
    waiting: number,
    sent: number,
    isSent = (waitedBefore: number, sentBefore: number): boolean => sent >= sentBefore + waitedBefore,
  ): boolean {
    if (waiting === 0) {
      this.#endsAt = undefined;
      return false;
    }
    if (this.#endsAt !== undefined && !isSent(this.#waiting, this.#sentBefore)) return now >= this.#endsAt;
    const { responseMs, minBytesPerSecond } = this.#limits;
    this.#waiting = waiting;
    this.#sentBefore = sent;
    this.#endsAt = now + Math.max(responseMs, (waiting / minBytesPerSecond) * 1000);
    return false;
  }
}
