import { isQuantity } from "../hex.js";

/** Tracks the chain heads that the endpoints of one chain report. */
export interface HeadTracker<Peer> {
  /** Reads all heads in the background, unless that was done within the interval (by default ten seconds). */
  refresh(intervalMs?: number): void;
  /** Returns whether an endpoint was behind its peers at the last refresh, or its head was too old. */
  isLagging(peer: Peer): boolean;
  /** Returns the head that an endpoint reported last; undefined: none yet. */
  getHead(peer: Peer): ObservedHead | undefined;
}

/** A head and when it was observed, in milliseconds on the monotonic clock. */
export interface ObservedHead extends ChainHead {
  readonly observedAt: number;
}

/** The head of one endpoint, and when it was requested. */
export interface ReportedHead<Peer> extends ChainHead {
  readonly peer: Peer;
  /** Milliseconds on the monotonic clock. */
  readonly requestedAt: number;
}

export interface HeadTrackerOptions<Peer> {
  readonly peers: readonly Peer[];
  /** Returns the result of `eth_getBlockByNumber` for the latest block at one endpoint. */
  readonly fetchLatestBlock: (peer: Peer) => Promise<unknown>;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Observes every head. */
  readonly onHead?: ((head: ReportedHead<Peer>) => void) | undefined;
  /** Returns whether a head was too old when it was requested. Default: never. */
  readonly isTooOld?: ((head: ReportedHead<Peer>) => boolean) | undefined;
}

/** The latest block of a chain as one endpoint reports it. */
export interface ChainHead {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

const HEAD_REFRESH_INTERVAL_MS = 10_000;
export const MAX_BLOCKS_BEHIND = 16;
export const MAX_SECONDS_BEHIND = 30;
/** Tolerated clock difference. Other heads are not compared with a block that is further in the future. */
export const MAX_SECONDS_AHEAD = 60;

export function createHeadTracker<Peer>(options: HeadTrackerOptions<Peer>): HeadTracker<Peer> {
  const { peers, fetchLatestBlock, now, onHead, isTooOld = () => false } = options;
  const headByPeer = new Map<Peer, ObservedHead>();
  const reportedByPeer = new Map<Peer, ReportedHead<Peer>>();
  let lagging: ReadonlySet<Peer> = new Set();
  let refreshedAt = Number.NEGATIVE_INFINITY;
  let isRefreshing = false;

  async function readHeads(requestedAt: number): Promise<void> {
    const heads = new Map<Peer, ObservedHead>();
    const findLagging = (): readonly Peer[] => {
      // An endpoint that does not respond is neither behind nor ahead of the others.
      const known = [...heads.values()];
      return peers.filter((peer) => {
        const head = heads.get(peer);
        return head !== undefined && isBehind(head, known, requestedAt);
      });
    };
    const readHead = async (peer: Peer): Promise<void> => {
      const head = parseHead(await fetchLatestBlock(peer));
      if (head === undefined) return;
      const observedHead = { ...head, observedAt: now() };
      headByPeer.set(peer, observedHead);
      const reportedHead = { ...head, peer, requestedAt };
      reportedByPeer.set(peer, reportedHead);
      onHead?.(reportedHead);
      heads.set(peer, observedHead);
      // Nobody waits for an endpoint that hangs to learn that another one lags.
      lagging = new Set([...lagging, ...findLagging()]);
    };
    await Promise.allSettled(peers.map(readHead));
    lagging = new Set(findLagging());
  }

  return {
    refresh(intervalMs = HEAD_REFRESH_INTERVAL_MS) {
      if (isRefreshing || now() - refreshedAt < intervalMs) return;
      refreshedAt = now();
      isRefreshing = true;
      void readHeads(refreshedAt).finally(() => {
        isRefreshing = false;
      });
    },
    isLagging(peer) {
      const head = reportedByPeer.get(peer);
      return lagging.has(peer) || (head !== undefined && isTooOld(head));
    },
    getHead: (peer) => headByPeer.get(peer),
  };
}

/**
 * Returns whether a head is behind others that were requested at the same time. Endpoints differ in their latency: blocks
 * that the chain may have produced while the highest head was awaited do not count.
 * @param requestedAt milliseconds on the monotonic clock
 */
export function isBehind(head: ChainHead, heads: readonly ObservedHead[], requestedAt: number): boolean {
  const comparable = heads.filter(isPlausible);
  const latest = Math.max(...comparable.map(({ timestamp }) => timestamp));
  if (latest - head.timestamp >= MAX_SECONDS_BEHIND) return true;
  return comparable.some(({ number, timestamp, observedAt }) => {
    const awaitedSeconds = Math.floor((observedAt - requestedAt) / 1000);
    // Timestamps are whole seconds.
    const isExplained = awaitedSeconds > 0 && timestamp - head.timestamp <= awaitedSeconds + 1;
    return number - head.number >= MAX_BLOCKS_BEHIND && !isExplained;
  });
}

/** Returns the highest of several heads, and of equal ones the latest observed. Ignores heads from the future. */
export function selectHighestHead(heads: readonly (ObservedHead | undefined)[]): ObservedHead | undefined {
  const comparable = heads.filter((head) => head !== undefined).filter(isPlausible);
  return comparable.sort((a, b) => b.number - a.number || b.observedAt - a.observedAt)[0];
}

function isPlausible({ timestamp }: ChainHead): boolean {
  return timestamp <= Date.now() / 1000 + MAX_SECONDS_AHEAD;
}

/** Parses the head from a block's JSON; undefined: not a block. */
export function parseHead(block: unknown): ChainHead | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { number, timestamp } = block as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) return undefined;
  return { number: Number(number), timestamp: Number(timestamp) };
}
