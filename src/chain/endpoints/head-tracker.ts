import { isQuantity } from "../hex.js";

/** How far the endpoints of one chain have got. */
export interface HeadTracker<Peer> {
  /** Asks all in the background when that was not done lately. */
  refresh(): void;
  /** Whether an endpoint was behind its peers when they were asked last. */
  isLagging(peer: Peer): boolean;
  /** The head that an endpoint named last; undefined: none yet. */
  getHead(peer: Peer): ObservedHead | undefined;
}

/** A head, and when it was told, in milliseconds on a steady clock. */
export interface ObservedHead extends ChainHead {
  readonly observedAt: number;
}

export interface HeadTrackerOptions<Peer> {
  readonly peers: readonly Peer[];
  /** Result of `eth_getBlockByNumber` for the latest block at one endpoint. */
  readonly fetchLatestBlock: (peer: Peer) => Promise<unknown>;
  readonly now: () => number;
}

/** A chain's latest block, as somebody told it. */
export interface ChainHead {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

const HEAD_REFRESH_INTERVAL_MS = 10_000;
export const MAX_BLOCKS_BEHIND = 16;
export const MAX_SECONDS_BEHIND = 30;
/** A block from further in the future than clocks differ is no measure for others. */
export const MAX_SECONDS_AHEAD = 60;

export function createHeadTracker<Peer>({ peers, fetchLatestBlock, now }: HeadTrackerOptions<Peer>): HeadTracker<Peer> {
  const seen = new Map<Peer, ObservedHead>();
  let lagging: ReadonlySet<Peer> = new Set();
  let askedAt = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<void> {
    const heads = await Promise.all(
      peers.map((peer) =>
        fetchLatestBlock(peer)
          .then(parseHead)
          .catch(() => undefined),
      ),
    );
    for (const [place, peer] of peers.entries()) {
      const head = heads[place];
      if (head !== undefined) seen.set(peer, { ...head, observedAt: now() });
    }
    // Of an endpoint that does not answer nothing is known: it is neither behind nor ahead of the others.
    const known = heads.filter((head) => head !== undefined).filter(isPlausible);
    const highest = Math.max(...known.map(({ number }) => number));
    const latest = Math.max(...known.map(({ timestamp: time }) => time));
    const isBehind = (head: ChainHead | undefined): boolean =>
      head !== undefined &&
      (highest - head.number >= MAX_BLOCKS_BEHIND || latest - head.timestamp >= MAX_SECONDS_BEHIND);
    lagging = new Set(peers.filter((_, index) => isBehind(heads[index])));
  }

  return {
    refresh() {
      if (now() - askedAt < HEAD_REFRESH_INTERVAL_MS) return;
      askedAt = now();
      void ask();
    },
    isLagging: (peer) => lagging.has(peer),
    getHead: (peer) => seen.get(peer),
  };
}

/** The furthest of several heads, the one seen last where they are equal; what is from the future is none. */
export function selectHighestHead(heads: readonly (ObservedHead | undefined)[]): ObservedHead | undefined {
  const known = heads.filter((head) => head !== undefined).filter(isPlausible);
  return known.sort((a, b) => b.number - a.number || b.observedAt - a.observedAt)[0];
}

function isPlausible({ timestamp: time }: ChainHead): boolean {
  return time <= Date.now() / 1000 + MAX_SECONDS_AHEAD;
}

/** The head that a block's JSON names; undefined: none. */
export function parseHead(block: unknown): ChainHead | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { number, timestamp } = block as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) return undefined;
  return { number: Number(number), timestamp: Number(timestamp) };
}
