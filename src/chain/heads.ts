import { isQuantity } from "./chain-client.js";

/** How far the endpoints of one chain have got. */
export interface Heads<Peer> {
  /** Asks all of several peers in the background when that was not done lately. */
  refresh(): void;
  /** Whether an endpoint was behind its peers when they were asked last. */
  lags(peer: Peer): boolean;
}

export interface HeadsOptions<Peer> {
  readonly peers: readonly Peer[];
  /** Result of `eth_getBlockByNumber` for the latest block at one endpoint. */
  readonly readLatest: (peer: Peer) => Promise<unknown>;
  readonly now: () => number;
}

interface Head {
  readonly number: number;
  /** Unix seconds. */
  readonly time: number;
}

const intervalMs = 10_000;
const maxBlocksBehind = 16;
const maxSecondsBehind = 30;
/** A block from further in the future than clocks differ is no measure for others. */
const maxSecondsAhead = 60;

export function createHeads<Peer>({ peers, readLatest, now }: HeadsOptions<Peer>): Heads<Peer> {
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
    // Of an endpoint that does not answer nothing is known: it is neither behind nor ahead of the others.
    const latestPossible = Date.now() / 1000 + maxSecondsAhead;
    const known = heads.filter((head) => head !== undefined).filter(({ time }) => time <= latestPossible);
    const highest = Math.max(...known.map(({ number }) => number));
    const latest = Math.max(...known.map(({ time }) => time));
    const isBehind = (head: Head | undefined): boolean =>
      head !== undefined && (highest - head.number >= maxBlocksBehind || latest - head.time >= maxSecondsBehind);
    lagging = new Set(peers.filter((_, index) => isBehind(heads[index])));
  }

  return {
    refresh() {
      if (peers.length < 2 || now() - askedAt < intervalMs) return;
      askedAt = now();
      void ask();
    },
    lags: (peer) => lagging.has(peer),
  };
}

function readHead(block: unknown): Head | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { number, timestamp } = block as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) return undefined;
  return { number: Number(number), time: Number(timestamp) };
}
