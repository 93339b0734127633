import type { Clocks } from "../../resilience/clock.js";
import { ChainClock, type ClockEstimate } from "./chain-clock.js";
import { type BlockReading, HeadTracker, type StallCriteria, type StalledBlock } from "./head-tracker.js";

/** A chain that is stalled from now on, or no more. */
export interface StallEvent {
  readonly network: string;
  readonly chain: string;
  /** undefined: it has new blocks again. */
  readonly block: StalledBlock | undefined;
}

interface MonitoredChain {
  readonly network: string;
  readonly chain: string;
  readonly criteria: StallCriteria;
  readonly heads: HeadTracker;
}

const MIN_CLOCK_REPORT_INTERVAL_MS = 60_000;

/** Knows which chains are stalled, and whether this machine's clock is to blame if they seem to be. */
export class BlockAgeMonitor {
  readonly #clock: ChainClock;
  readonly #options;
  readonly #chains = new Map<string, MonitoredChain>();
  #stalled: ReadonlyMap<string, StalledBlock> = new Map();
  readonly #reported = { isWrong: false, at: Number.NEGATIVE_INFINITY };

  constructor(options: {
    /** The chains that have a limit, by network and slug. */
    readonly limits: Readonly<Record<string, ReadonlyMap<string, StallCriteria>>>;
    readonly clocks: Clocks;
    readonly onStall?: (event: StallEvent) => void;
    /** Called when the clock turns out to be wrong, or to be right again; at most once a minute. */
    readonly onClock?: (estimate: ClockEstimate) => void;
  }) {
    this.#options = options;
    this.#clock = new ChainClock(options.clocks);
    for (const [network, bySlug] of Object.entries(options.limits)) {
      for (const [chain, criteria] of bySlug) {
        const heads = new HeadTracker(this.#clock, criteria, () => this.#judge());
        this.#chains.set(toKey(network, chain), { network, chain, criteria, heads });
      }
    }
  }

  /** Returns the tracker of a chain, whose heads are judged here if it has a limit. */
  getHeadTracker(network: string, chain: string): HeadTracker {
    return this.#chains.get(toKey(network, chain))?.heads ?? new HeadTracker(this.#clock);
  }

  /** Number of chains that are stalled. */
  stalledCount(): number {
    return this.#stalled.size;
  }

  /** Returns the newest block of a chain that is stalled; undefined: it is not, or it has no limit. */
  findStalled(network: string, chain: string): StalledBlock | undefined {
    return this.#stalled.get(toKey(network, chain));
  }

  /** Returns whether a block was older than the limit of its chain when it was read. */
  isTooOld(network: string, chain: string, block: BlockReading): boolean {
    return this.#chains.get(toKey(network, chain))?.heads.isTooOld(block) ?? false;
  }

  /** Returns the age of a block when it was read, in milliseconds, by the right time as far as it is known. */
  getAgeMs({ timestamp, readAt }: BlockReading): number {
    return this.#clock.toTime(readAt) - timestamp * 1000;
  }

  /** Returns milliseconds since 1970, by the right time as far as it is known. */
  now(): number {
    return this.#clock.now();
  }

  /** Returns what is known about this machine's clock. */
  clock(): ClockEstimate {
    return this.#clock.estimate();
  }

  #judge(): void {
    const known = [...this.#chains.values()].flatMap(({ criteria, heads }) => {
      const newest = heads.getNewest();
      return newest === undefined ? [] : [{ newest, limitMs: criteria.maxBlockAgeMs }];
    });
    const newestBlocks = known.map(({ newest }) => newest);
    this.#clock.adjust(newestBlocks, Math.min(...known.map(({ limitMs }) => limitMs)));
    const previous = this.#stalled;
    const entries = [...this.#chains].flatMap(([key, { heads }]): (readonly [string, StalledBlock])[] => {
      const block = heads.findStalled();
      return block === undefined ? [] : [[key, block]];
    });
    this.#stalled = new Map(entries);
    for (const [key, { network, chain }] of this.#chains)
      if (previous.has(key) !== this.#stalled.has(key))
        this.#options.onStall?.({ network, chain, block: this.#stalled.get(key) });
    this.#reportClock();
  }

  #reportClock(): void {
    const estimate = this.#clock.estimate();
    const isWrong = estimate.evidence !== undefined;
    const now = this.#clock.monotonicNow();
    if (isWrong === this.#reported.isWrong || now - this.#reported.at < MIN_CLOCK_REPORT_INTERVAL_MS) return;
    this.#reported.isWrong = isWrong;
    this.#reported.at = now;
    this.#options.onClock?.(estimate);
  }
}

function toKey(network: string, chain: string): string {
  return `${network} ${chain}`;
}
