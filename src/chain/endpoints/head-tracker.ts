import { isQuantity } from "../hex.js";

/** Tracks the chain heads that the endpoints of one chain report. */
export interface HeadTracker<Peer> {
  /** Reads all heads in the background, unless that was done within the refresh interval. */
  refresh(): void;
  /** Returns whether an endpoint was behind its peers at the last refresh. */
  isLagging(peer: Peer): boolean;
  /** Returns the head that an endpoint reported last; undefined: none yet. */
  getHead(peer: Peer): ObservedHead | undefined;
}

/** A head and when it was observed, in milliseconds on the monotonic clock. */
export interface ObservedHead extends ChainHead {
  readonly observedAt: number;
}

export interface HeadTrackerOptions<Peer> {
  readonly peers: readonly Peer[];
  /** Returns the result of `eth_getBlockByNumber` for the latest block at one endpoint. */
  readonly fetchLatestBlock: (peer: Peer) => Promise<unknown>;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
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

export function createHeadTracker<Peer>({ peers, fetchLatestBlock, now }: HeadTrackerOptions<Peer>): HeadTracker<Peer> {
  const headByPeer = new Map<Peer, ObservedHead>();
  let lagging: ReadonlySet<Peer> = new Set();
  let refreshedAt = Number.NEGATIVE_INFINITY;

  async function readHeads(): Promise<void> {
    const heads = await Promise.all(
      peers.map((peer) =>
        fetchLatestBlock(peer)
          .then(parseHead)
          .catch(() => undefined),
      ),
    );
    for (const [index, peer] of peers.entries()) {
      const head = heads[index];
      if (head !== undefined) headByPeer.set(peer, { ...head, observedAt: now() });
    }
    // An endpoint that does not respond is neither behind nor ahead of the others.
    const comparable = heads.filter((head) => head !== undefined).filter(isPlausible);
    const highest = Math.max(...comparable.map(({ number }) => number));
    const latest = Math.max(...comparable.map(({ timestamp }) => timestamp));
    const isBehind = (head: ChainHead | undefined): boolean =>
      head !== undefined &&
      (highest - head.number >= MAX_BLOCKS_BEHIND || latest - head.timestamp >= MAX_SECONDS_BEHIND);
    lagging = new Set(peers.filter((_, index) => isBehind(heads[index])));
  }

  return {
    refresh() {
      if (now() - refreshedAt < HEAD_REFRESH_INTERVAL_MS) return;
      refreshedAt = now();
      void readHeads();
    },
    isLagging: (peer) => lagging.has(peer),
    getHead: (peer) => headByPeer.get(peer),
  };
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
