import type { Clocks } from "../../resilience/clock.js";

/** What the newest blocks of the chains tell about this machine's clock. */
export interface ClockEstimate {
  /** The right time less this machine's, in milliseconds: negative if the clock is ahead. */
  readonly offsetMs: number;
  /** What the estimate is made of; undefined: the clock is right as far as anything is known. */
  readonly evidence: "blocks" | undefined;
}

/** The newest block of a chain. */
export interface NewestBlock {
  /** Unix seconds. */
  readonly timestamp: number;
  /** Start of the latest read on the monotonic clock, in milliseconds. */
  readonly readAt: number;
  /** Whether it was another one a short while before that read, or only one read is known. */
  readonly isAdvancing: boolean;
}

/** Ages that differ by this much are equal: more than a block of the slowest chain and the time that a block travels. */
const SAME_AGE_MS = 30_000;
/** Age, in the past or the future, that no healthy chain reaches at the same time as others. */
const MAX_SUSPICIOUS_AGE_MS = 60_000;
/** By how much the wall clock may move against the monotonic one: beyond it was set, or the machine was suspended. */
const MAX_CLOCK_JUMP_MS = 1_000;

/** The time of day, corrected by what the blocks of several chains tell about this machine's clock. */
export class ChainClock {
  readonly #clocks: Clocks;
  /** Wall clock less monotonic clock. */
  #differenceMs: number;
  #jumpedAt = Number.NEGATIVE_INFINITY;
  #offsetMs = 0;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
    this.#differenceMs = clocks.now() - clocks.monotonicNow();
  }

  /** Returns milliseconds since 1970. */
  now(): number {
    this.jumpedAt();
    return this.#clocks.now() + this.#offsetMs;
  }

  /** Returns milliseconds on the monotonic clock. */
  monotonicNow(): number {
    return this.#clocks.monotonicNow();
  }

  /** Converts a time on the monotonic clock to milliseconds since 1970. */
  toTime(monotonicMs: number): number {
    return monotonicMs + this.#differenceMs + this.#offsetMs;
  }

  /**
   * Returns when the clock was last set, or the machine last suspended, on the monotonic clock. The time of reads that began
   * before is not known.
   */
  jumpedAt(): number {
    const differenceMs = this.#clocks.now() - this.#clocks.monotonicNow();
    if (Math.abs(differenceMs - this.#differenceMs) > MAX_CLOCK_JUMP_MS) {
      this.#jumpedAt = this.#clocks.monotonicNow();
      this.#offsetMs = 0;
    }
    this.#differenceMs = differenceMs;
    return this.#jumpedAt;
  }

  estimate(): ClockEstimate {
    return { offsetMs: this.#offsetMs, evidence: this.#offsetMs === 0 ? undefined : "blocks" };
  }

  /**
   * Estimates by how much the clock is wrong. If most chains, at least two, look equally old or lie in the future although
   * new blocks arrive, then the clock is wrong, and by the median. One chain alone tells nothing.
   * @param smallestLimitMs the smallest age at which one of these chains counts as stalled
   */
  adjust(chains: readonly NewestBlock[], smallestLimitMs: number): void {
    const advancing = chains.filter(({ isAdvancing }) => isAdvancing);
    const offsets = advancing.map(({ timestamp, readAt }) => timestamp * 1000 - (readAt + this.#differenceMs));
    const middle = median(offsets) ?? 0;
    const similar = offsets.filter((offset) => Math.abs(offset - middle) <= SAME_AGE_MS);
    const isSuspicious = Math.abs(middle) >= Math.min(MAX_SUSPICIOUS_AGE_MS, smallestLimitMs / 2);
    const isMajority = similar.length >= 2 && similar.length > chains.length / 2;
    this.#offsetMs = isSuspicious && isMajority ? Math.round(middle) : 0;
  }
}

/** Returns the middle value; of two the one that is nearer to 0, so that one of two proves nothing. */
function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (lower === undefined || upper === undefined) return undefined;
  return Math.abs(lower) <= Math.abs(upper) ? lower : upper;
}
