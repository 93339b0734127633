import { isQuantity } from "../chain-client.js";

/** How far the endpoints of one chain have got. */
export interface Heads<Peer> {
  /** Asks all in the background when that was not done lately. */
  refresh(): void;
  /** Whether an endpoint was behind its peers when they were asked last. */
  lags(peer: Peer): boolean;
  /** The head that an endpoint named last; undefined: none yet. */
  of(peer: Peer): SeenHead | undefined;
}

/** A head, and when it was told, in milliseconds on a steady clock. */
export interface SeenHead extends Head {
  readonly seenAt: number;
}

export interface HeadsOptions<Peer> {
  readonly peers: readonly Peer[];
  /** Result of `eth_getBlockByNumber` for the latest block at one endpoint. */
  readonly readLatest: (peer: Peer) => Promise<unknown>;
  readonly now: () => number;
}

/** A chain's latest block, as somebody told it. */
export interface Head {
  readonly number: number;
  /** Unix seconds. */
  readonly time: number;
}

const intervalMs = 10_000;
export const maxBlocksBehind = 16;
export const maxSecondsBehind = 30;
/** A block from further in the future than clocks differ is no measure for others. */
export const maxSecondsAhead = 60;

export function createHeads<Peer>({ peers, readLatest, now }: HeadsOptions<Peer>): Heads<Peer> {
  const seen = new Map<Peer, SeenHead>();
  let lagging: ReadonlySet<Peer> = new Set();
  let askedAt = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<void> {
    const heads = await Promise.all(
      peers.map((peer) =>
        readLatest(peer)
          .then(readHead)
          .catch(() => undefined),
      ),
    );
    for (const [place, peer] of peers.entries()) {
      const head = heads[place];
      if (head !== undefined) seen.set(peer, { ...head, seenAt: now() });
    }
    // Of an endpoint that does not answer nothing is known: it is neither behind nor ahead of the others.
    const known = heads.filter((head) => head !== undefined).filter(isPossible);
    const highest = Math.max(...known.map(({ number }) => number));
    const latest = Math.max(...known.map(({ time }) => time));
    const isBehind = (head: Head | undefined): boolean =>
      head !== undefined && (highest - head.number >= maxBlocksBehind || latest - head.time >= maxSecondsBehind);
    lagging = new Set(peers.filter((_, index) => isBehind(heads[index])));
  }

  return {
    refresh() {
      if (now() - askedAt < intervalMs) return;
      askedAt = now();
      void ask();
    },
    lags: (peer) => lagging.has(peer),
    of: (peer) => seen.get(peer),
  };
}

/** The furthest of several heads, the one seen last where they are equal; what is from the future is none. */
export function furthest(heads: readonly (SeenHead | undefined)[]): SeenHead | undefined {
  const known = heads.filter((head) => head !== undefined).filter(isPossible);
  return known.sort((a, b) => b.number - a.number || b.seenAt - a.seenAt)[0];
}

function isPossible({ time }: Head): boolean {
  return time <= Date.now() / 1000 + maxSecondsAhead;
}

/** The head that a block's JSON names; undefined: none. */
export function readHead(block: unknown): Head | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { number, timestamp } = block as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) return undefined;
  return { number: Number(number), time: Number(timestamp) };
}
