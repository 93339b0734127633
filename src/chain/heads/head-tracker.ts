import { SYSTEM_CLOCKS } from "../../resilience/clock.js";
import { isQuantity } from "../hex.js";
import { ChainClock, type NewestBlock } from "./chain-clock.js";

/** The latest block of a chain. */
export interface ChainHead {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** A head and when it was observed, in milliseconds on the monotonic clock. */
export interface ObservedHead extends ChainHead {
  readonly observedAt: number;
}

/** A head as one source has reported it. */
interface ReportedHead extends ObservedHead {
  readonly source: string;
  /** Start of the read on the monotonic clock, in milliseconds. */
  readonly readAt: number;
}

/** A block that was the newest one when it was read. Its read began at `readAt` on the monotonic clock, in milliseconds. */
export type BlockReading = Pick<ReportedHead, "timestamp" | "readAt">;

/** The newest block of a chain that is stalled. */
export interface StalledBlock {
  /** Unix seconds. */
  readonly timestamp: number;
  /** When it was last read, in milliseconds. */
  readonly ageMs: number;
}

/** When a chain counts as stalled: largest age of its newest block, and its usual time between blocks, in milliseconds. */
export interface StallCriteria {
  readonly maxBlockAgeMs: number;
  readonly blockTimeMs: number;
}

/** What is known about the final blocks of a chain. Times are milliseconds on the monotonic clock. */
export interface FinalBlock {
  /** Number of the highest block known to be final; -1: none. */
  number: number;
  observedAt: number;
  /** Whether the chain knows the block tag "finalized". */
  isSupported: boolean;
  nextReadAt: number;
  pendingRead: Promise<void> | undefined;
}

/** How often a stalled chain is read while it is asked for: often enough to serve it again within 5 s. */
export const STALLED_POLL_MS = 1_500;
/** Source of the heads that reads of chain state return, here or in another process. */
export const STATE_SOURCE = "state";
export const MAX_BLOCKS_BEHIND = 16;
export const MAX_SECONDS_BEHIND = 30;
/** An endpoint whose head was read earlier than that of another, by more than this, has been silent: it proves nothing. */
const MAX_READS_APART_MS = 5_000;
/** Tolerated clock difference. Blocks that are further in the future are not believed. */
export const MAX_SECONDS_AHEAD = 60;
/** For how long quotes that are not asked for any more say how old the chain is. */
const MAX_STATE_LAG_MS = 10_000;
/** A chain on which no new block arrives for this long, or for five blocks, does not advance. */
const MIN_STILL_MS = 15_000;
const STILL_BLOCKS = 5;

/**
 * Keeps what is known about the heads of one chain: those that its endpoints have reported, how old the newest block is, and
 * the final one.
 */
export class HeadTracker {
  final: FinalBlock | undefined;
  readonly #clock: ChainClock;
  readonly #criteria: StallCriteria | undefined;
  readonly #onRecord: () => void;
  /** The last head of each source. */
  readonly #reports = new Map<string, ReportedHead>();
  #newestTimestamp = Number.NEGATIVE_INFINITY;
  #advancedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param criteria undefined: the chain may be stalled
   * @param onRecord called after each new head
   */
  constructor(clock: ChainClock, criteria?: StallCriteria, onRecord: () => void = () => {}) {
    this.#clock = clock;
    this.#criteria = criteria;
    this.#onRecord = onRecord;
  }

  /**
   * Records a head that has just been read.
   * @param source name of the endpoint, or STATE_SOURCE
   * @param readAt start of the read on the monotonic clock, in milliseconds
   */
  record(source: string, { number, timestamp }: ChainHead, readAt: number): void {
    // Reads may end in another order than they began.
    if ((this.#reports.get(source)?.readAt ?? Number.NEGATIVE_INFINITY) > readAt) return;
    this.#reports.set(source, { source, number, timestamp, readAt, observedAt: this.#clock.monotonicNow() });
    const newest = this.#newest();
    if (newest !== undefined && newest.timestamp > this.#newestTimestamp) {
      this.#newestTimestamp = newest.timestamp;
      this.#advancedAt = readAt;
    }
    this.#onRecord();
  }

  /** Returns the head that a source reported last; undefined: none yet. */
  get(source: string): ObservedHead | undefined {
    return this.#reports.get(source);
  }

  /** Returns the highest head, and of equal ones the latest observed. Ignores heads from the future. */
  highest(): ObservedHead | undefined {
    const latestTime = this.#clock.now() / 1000 + MAX_SECONDS_AHEAD;
    const plausible = [...this.#reports.values()].filter(({ timestamp }) => timestamp <= latestTime);
    return plausible.sort((a, b) => b.number - a.number || b.observedAt - a.observedAt)[0];
  }

  /** Returns whether the head of an endpoint was read within the last milliseconds. */
  isRecent(endpoint: string, maxAgeMs: number): boolean {
    return this.#clock.monotonicNow() - (this.#reports.get(endpoint)?.readAt ?? Number.NEGATIVE_INFINITY) < maxAgeMs;
  }

  /** Returns whether the head of an endpoint was too old when it was read. */
  isStalled(endpoint: string): boolean {
    const report = this.#reports.get(endpoint);
    return report !== undefined && this.isTooOld(report);
  }

  /** Returns whether an endpoint is behind its peers, or its head was too old when it was read. */
  isLagging(endpoint: string): boolean {
    const report = this.#reports.get(endpoint);
    if (report === undefined) return false;
    if (this.isTooOld(report)) return true;
    const latestTime = this.#clock.now() / 1000 + MAX_SECONDS_AHEAD;
    const isComparable = ({ source, readAt, timestamp }: ReportedHead): boolean =>
      source !== STATE_SOURCE && report.readAt - readAt <= MAX_READS_APART_MS && timestamp <= latestTime;
    return [...this.#reports.values()].some((peer) => isComparable(peer) && isBehind(report, peer));
  }

  /** Returns whether a block was older than the chain's limit when it was read. */
  isTooOld(block: BlockReading): boolean {
    if (this.#criteria === undefined || block.readAt < this.#clock.jumpedAt()) return false;
    return this.getAgeMs(block) > this.#criteria.maxBlockAgeMs;
  }

  /** Returns the age of a block when it was read, in milliseconds. */
  getAgeMs({ timestamp, readAt }: BlockReading): number {
    return this.#clock.toTime(readAt) - timestamp * 1000;
  }

  /** Returns the newest block from whichever source; undefined: none has been read since the clock was last set. */
  getNewest(): NewestBlock | undefined {
    const newest = this.#newest();
    if (newest === undefined) return undefined;
    const stillMs = Math.max(MIN_STILL_MS, STILL_BLOCKS * (this.#criteria?.blockTimeMs ?? 0));
    return { ...newest, isAdvancing: newest.readAt - this.#advancedAt < stillMs };
  }

  /** Returns the newest block if it is too old, or the one of which quotes are made. undefined: the chain is not stalled. */
  findStalled(): StalledBlock | undefined {
    const newest = this.#newest();
    if (newest === undefined) return undefined;
    // Quotes are made of what was read last, even if an endpoint has reported a newer block.
    const state = this.#reports.get(STATE_SOURCE);
    const isStateRecent = state !== undefined && newest.readAt - state.readAt <= MAX_STATE_LAG_MS;
    const block = [...(isStateRecent ? [state] : []), newest].find((each) => this.isTooOld(each));
    return block && { timestamp: block.timestamp, ageMs: this.getAgeMs(block) };
  }

  /** Returns whether the chain has a limit, and none of its blocks has been read for this long, in milliseconds. */
  needsRead(afterMs: number): boolean {
    if (this.#criteria === undefined) return false;
    return this.#clock.monotonicNow() - (this.#newest()?.readAt ?? Number.NEGATIVE_INFINITY) > afterMs;
  }

  /** Ignores blocks from the future, which would hide that the chain is stalled, unless all are. */
  #newest(): BlockReading | undefined {
    const since = this.#clock.jumpedAt();
    const dated = [...this.#reports.values()].filter(({ readAt }) => readAt >= since);
    if (dated.length === 0) return undefined;
    const plausible = dated.filter((block) => this.getAgeMs(block) >= -MAX_SECONDS_AHEAD * 1000);
    return {
      timestamp: Math.max(...(plausible.length > 0 ? plausible : dated).map(({ timestamp }) => timestamp)),
      readAt: Math.max(...dated.map(({ readAt }) => readAt)),
    };
  }
}

/**
 * Returns whether a head is behind that of a peer. Blocks that the chain may have produced between the two reads do not
 * count.
 */
function isBehind(head: ReportedHead, peer: ReportedHead): boolean {
  const secondsBetween = Math.max(0, (peer.observedAt - head.readAt) / 1000);
  const secondsBehind = peer.timestamp - head.timestamp;
  if (secondsBehind - secondsBetween >= MAX_SECONDS_BEHIND) return true;
  // Timestamps are whole seconds.
  const isExplained = secondsBetween >= 1 && secondsBehind <= Math.floor(secondsBetween) + 1;
  return peer.number - head.number >= MAX_BLOCKS_BEHIND && !isExplained;
}

/** Parses the head from a block's JSON; undefined: not a block. */
export function parseHead(block: unknown): ChainHead | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { number, timestamp } = block as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) return undefined;
  return { number: Number(number), timestamp: Number(timestamp) };
}

const headsByClient = new WeakMap<object, HeadTracker>();

/** Returns the tracker of the heads that a client's endpoints report. A client on a caller's endpoint has its own. */
export function getHeadTracker(client: { readonly heads?: HeadTracker }): HeadTracker {
  const heads = client.heads ?? headsByClient.get(client) ?? new HeadTracker(new ChainClock(SYSTEM_CLOCKS));
  if (client.heads === undefined) headsByClient.set(client, heads);
  return heads;
}
