import type { Clocks } from "../../resilience/clock.js";
import { type ChainHistory, createChainHistory, type HeadRead } from "./chain-history.js";
import { createDateSamples } from "./date-samples.js";
import { type ClockEstimate, judgeBlockAges } from "./judge-block-ages.js";

/** Knows which chains stand still, and whether this machine's clock is to blame if they seem to. */
export interface BlockAgeMonitor {
  /** Number of chains that stand still. */
  stalledCount(): number;
  /** Returns the newest block of a chain that stands still; undefined: it does not, or it has no limit. */
  findStalled(network: string, slug: string): StalledBlock | undefined;
  /** Returns whether a block was older than the limit of its chain when it was read. */
  isTooOld(network: string, slug: string, block: ReadBlock): boolean;
  /** Returns the age of a block when it was read, in milliseconds, by the right time as far as it is known. */
  getAgeMs(block: ReadBlock): number;
  /** Returns whether a chain has a limit, and none of its blocks has been read for a while. */
  needsRead(network: string, slug: string): boolean;
  /** Records the newest block of a chain, as it has just been read. */
  recordHead(network: string, slug: string, read: HeadRead): void;
  /** Records the header `Date` of a response. @param startedAtMs start of the request in milliseconds since 1970 */
  recordDate(host: string, date: string, startedAtMs: number): void;
  /** Returns what is known about this machine's clock. */
  clock(): ClockEstimate;
}

export type ReadBlock = Pick<HeadRead, "timestamp" | "readAt">;

/** The newest block of a chain that stands still. */
export interface StalledBlock {
  /** Unix seconds. */
  readonly timestamp: number;
  /** When it was last read, in milliseconds. */
  readonly ageMs: number;
}

/** A chain that begins to stand still, or moves again. */
export interface StallEvent {
  readonly network: string;
  readonly chain: string;
  /** undefined: it moves again. */
  readonly block: StalledBlock | undefined;
}

/** What is known about the age of one chain's blocks. */
export interface ChainBlockAges {
  isStalled(): boolean;
  /** Returns whether no block of the chain has been read for a while, although it has a limit. */
  needsRead(): boolean;
  isTooOld(read: HeadRead): boolean;
  recordHead(read: HeadRead): void;
  recordDate(host: string, date: string, startedAtMs: number): void;
}

/** Largest age of a chain's newest block, and its usual time between blocks, in milliseconds. */
export interface BlockAgeLimit {
  readonly maxBlockAgeMs: number;
  readonly blockTimeMs: number;
}

export interface BlockAgeMonitorOptions {
  /** The chains that have a limit, by network and slug. */
  readonly limits: Readonly<Record<string, ReadonlyMap<string, BlockAgeLimit>>>;
  readonly clocks: Clocks;
  readonly onStall?: (event: StallEvent) => void;
  /** Called when the clock turns out to be wrong, or to be right again; at most once a minute. */
  readonly onClock?: (estimate: ClockEstimate) => void;
}

/** How often a chain that stands still is read while it is asked for: often enough to serve it again within 5 s. */
export const STALLED_POLL_MS = 1_500;
/** By how much the wall clock may move against the monotonic one: beyond it was set, or the machine was suspended. */
const MAX_CLOCK_JUMP_MS = 1_000;
const RECENT_READ_MS = 30_000;
const MIN_CLOCK_REPORT_INTERVAL_MS = 60_000;

interface MonitoredChain {
  readonly network: string;
  readonly slug: string;
  readonly limit: BlockAgeLimit;
  readonly history: ChainHistory;
}

export function createBlockAgeMonitor({ limits, clocks, onStall, onClock }: BlockAgeMonitorOptions): BlockAgeMonitor {
  const { now, monotonicNow } = clocks;
  const chains = new Map<string, MonitoredChain>();
  for (const [network, bySlug] of Object.entries(limits)) {
    for (const [slug, limit] of bySlug) {
      const history = createChainHistory(limit.blockTimeMs, () => clock.offsetMs);
      chains.set(`${network} ${slug}`, { network, slug, limit, history });
    }
  }
  const dates = createDateSamples(clocks);
  let clock: ClockEstimate = { offsetMs: 0, evidence: undefined };
  let stalled: ReadonlyMap<string, StalledBlock> = new Map();
  /**
   * Wall clock less monotonic clock, and when it last jumped on the monotonic clock. The time of reads that began before
   * is not comparable.
   */
  const difference = { ms: now() - monotonicNow(), jumpedAt: Number.NEGATIVE_INFINITY };
  const reported = { isWrong: false, at: Number.NEGATIVE_INFINITY };

  /** Forgets what was measured before the wall clock was set or the machine was suspended. */
  function forgetAfterJump(): void {
    const ms = now() - monotonicNow();
    const hasJumped = Math.abs(ms - difference.ms) > MAX_CLOCK_JUMP_MS;
    difference.ms = ms;
    if (!hasJumped) return;
    difference.jumpedAt = monotonicNow();
    dates.clear();
    for (const { history } of chains.values()) history.clear();
    judge();
  }

  function judge(): void {
    const known = [...chains].flatMap(([chain, { limit, history }]) => {
      const newest = history.getNewest();
      return newest === undefined ? [] : [{ chain, maxAgeMs: limit.maxBlockAgeMs, ...newest }];
    });
    const judgement = judgeBlockAges(known, dates.listOffsets());
    clock = judgement.clock;
    const previous = stalled;
    stalled = new Map(
      [...chains].flatMap(([key, chain]): (readonly [string, StalledBlock])[] => {
        const block = findStalledBlock(chain, judgement.stalled.has(key));
        return block === undefined ? [] : [[key, block]];
      }),
    );
    for (const [key, { network, slug: chain }] of chains)
      if (previous.has(key) !== stalled.has(key)) onStall?.({ network, chain, block: stalled.get(key) });
    reportClock();
  }

  function findStalledBlock({ network, slug, history }: MonitoredChain, isStalled: boolean): StalledBlock | undefined {
    const state = history.getState();
    // Quotes are made of what was read last, even if an endpoint has reported a newer block.
    if (state !== undefined && isTooOld(network, slug, state))
      return { timestamp: state.timestamp, ageMs: getAgeMs(state) };
    const newest = isStalled ? history.getNewest() : undefined;
    return newest && { timestamp: newest.timestamp, ageMs: newest.ageMs + clock.offsetMs };
  }

  function isTooOld(network: string, slug: string, block: ReadBlock): boolean {
    const limit = chains.get(`${network} ${slug}`)?.limit;
    return limit !== undefined && getAgeMs(block) > limit.maxBlockAgeMs;
  }

  function getAgeMs({ timestamp, readAt }: ReadBlock): number {
    return toWallMs(readAt) - timestamp * 1000 + clock.offsetMs;
  }

  /** Converts a time on the monotonic clock: another process that has read a block may have another wall clock. */
  function toWallMs(monotonicMs: number): number {
    return monotonicMs + difference.ms;
  }

  function reportClock(): void {
    const isWrong = clock.evidence !== undefined;
    if (isWrong === reported.isWrong || monotonicNow() - reported.at < MIN_CLOCK_REPORT_INTERVAL_MS) return;
    reported.isWrong = isWrong;
    reported.at = monotonicNow();
    onClock?.(clock);
  }

  return {
    stalledCount: () => stalled.size,
    findStalled: (network, slug) => stalled.get(`${network} ${slug}`),
    isTooOld(network, slug, block) {
      forgetAfterJump();
      return block.readAt >= difference.jumpedAt && isTooOld(network, slug, block);
    },
    getAgeMs,
    needsRead(network, slug) {
      const history = chains.get(`${network} ${slug}`)?.history;
      return history !== undefined && monotonicNow() - history.readAt() > RECENT_READ_MS;
    },
    recordHead(network, slug, read) {
      const chain = chains.get(`${network} ${slug}`);
      if (chain === undefined) return;
      forgetAfterJump();
      if (read.readAt < difference.jumpedAt) return;
      chain.history.record({ ...read, readAtMs: toWallMs(read.readAt) });
      judge();
    },
    recordDate(host, date, startedAtMs) {
      forgetAfterJump();
      if (dates.record(host, date, startedAtMs)) judge();
    },
    clock: () => clock,
  };
}

/** Returns what concerns one chain. */
export function bindBlockAges(monitor: BlockAgeMonitor, network: string, slug: string): ChainBlockAges {
  return {
    isStalled: () => monitor.findStalled(network, slug) !== undefined,
    needsRead: () => monitor.needsRead(network, slug),
    isTooOld: (read) => monitor.isTooOld(network, slug, read),
    recordHead: (read) => monitor.recordHead(network, slug, read),
    recordDate: monitor.recordDate,
  };
}
