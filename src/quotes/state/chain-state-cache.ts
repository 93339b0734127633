import type { ChainClient } from "../../chain/chain-client.js";
import type { Chain } from "../../hop/networks.js";
import { within } from "../../resilience/with-timeout.js";
import { createSharedReads } from "./batch-loader.js";
import { type ChainFacts, checkFacts, type ReadTime, readChainFacts } from "./chain-state.js";
import type { ChainNeeds } from "./read-set.js";

/** How often facts are read again while somebody asks for them, and how old they may be, in milliseconds. */
export interface Pace {
  readonly refreshMs: number;
  /** As long as the chain answers. */
  readonly maxAgeMs: number;
  /** While it does not. */
  readonly maxStaleMs: number;
}

/** Facts that routes ask for, kept fresh as long as somebody does. */
export interface Watched {
  /**
   * Facts that are fresh enough; without a promise where they are at hand.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer and the last facts are too old.
   */
  ask(): ChainFacts | Promise<ChainFacts>;
  /** Whether somebody asked lately, so that they are read again and again. */
  isKept(): boolean;
}

/** Runs the reads of chains' facts, so that whoever wants sees how they go. */
export type ReadObserver = (read: ReadOfFacts, run: () => Promise<ChainFacts>) => Promise<ChainFacts>;

export interface ReadOfFacts {
  readonly chain: string;
  /** How many routes' needs are read together. */
  readonly needs: number;
}

/** Keeps what quotes need of one chain fresh. */
export interface FreshFacts {
  /** Gives the same object for the same needs, which `name` stands for, and the same pace. */
  watch(name: string, needs: ChainNeeds, pace: Pace): Watched;
  close(): void;
}

export interface FreshFactsOptions {
  readonly chain: Chain;
  readonly client: ChainClient;
  readonly clocks: Clocks;
  readonly onRead?: ReadObserver | undefined;
}

export interface Clocks {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that nobody sets: ages and pauses are counted in them. */
  readonly steady: () => number;
}

/** How long after the last question facts are no longer read again. */
const idleMs = 15_000;
/** How long a read is waited for while older facts that can still be given are at hand. */
const patienceMs = 1_000;
/** Background reads come at most this often. */
const leastGapMs = 1_000;
interface Entry extends Watched {
  readonly name: string;
  readonly needs: ChainNeeds;
  readonly pace: Pace;
  facts: ChainFacts | undefined;
  /** The read that is under way or about to start, and since when. */
  reading: { readonly facts: Promise<ChainFacts>; readonly since: number } | undefined;
  failedAt: number;
  askedAt: number;
}

export function createFreshFacts({ chain, client, clocks, onRead }: FreshFactsOptions): FreshFacts {
  const { steady } = clocks;
  const byName = new Map<string, Entry>();
  /** Those that somebody asked for lately. */
  const active = new Set<Entry>();
  const closing = new AbortController();
  const reads = createSharedReads<ChainNeeds, ChainFacts>({
    readAll: onRead ? (needs) => onRead({ chain: chain.slug, needs: needs.length }, () => readAll(needs)) : readAll,
    now: steady,
  });
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;

  function readAll(needs: readonly ChainNeeds[]): Promise<ChainFacts> {
    return readChainFacts(client, chain, needs, readTime(clocks), closing.signal);
  }

  function isKept({ askedAt }: Entry): boolean {
    return steady() - askedAt <= idleMs;
  }

  function ask(entry: Entry): ChainFacts | Promise<ChainFacts> {
    const time = steady();
    entry.askedAt = time;
    const { facts, pace, reading } = entry;
    if (facts !== undefined && time - facts.readAt <= pace.maxAgeMs) {
      if (timer === undefined) refreshIn(pace.refreshMs);
      return facts;
    }
    active.add(entry);
    refreshIn(pace.refreshMs);
    const fresher = read(entry);
    const left = facts === undefined ? -1 : facts.readAt + pace.maxStaleMs - time;
    if (facts === undefined || left < 0) return fresher;
    const waited = reading === undefined ? 0 : time - reading.since;
    const patience = entry.failedAt > facts.readAt ? 0 : Math.min(patienceMs - waited, left);
    if (patience > 0) return within(fresher, patience, facts);
    fresher.catch(() => {});
    return facts;
  }

  /** Has an entry read; one read at a time. */
  function read(entry: Entry): Promise<ChainFacts> {
    entry.reading ??= { facts: readNow(entry), since: steady() };
    return entry.reading.facts;
  }

  async function readNow(entry: Entry): Promise<ChainFacts> {
    try {
      const facts = await reads.read(entry.needs);
      // What lacks something of it takes no older facts' place.
      checkFacts(facts, entry.needs);
      keep(entry, facts);
      return facts;
    } catch (error) {
      entry.failedAt = steady();
      throw error;
    } finally {
      entry.reading = undefined;
    }
  }

  /** Endpoints are not all equally far: an older block does not replace a newer one that is still good. */
  function keep(entry: Entry, facts: ChainFacts): void {
    const known = entry.facts;
    const isOlder = known !== undefined && facts.block.number < known.block.number;
    if (isOlder && steady() - known.readAt <= entry.pace.maxAgeMs) return;
    entry.facts = facts;
  }

  /** Sees to it that the next background read is planned within this time. */
  function refreshIn(milliseconds: number): void {
    const at = steady() + milliseconds;
    if (timer !== undefined && timerAt <= at) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, milliseconds).unref();
    timerAt = at;
  }

  /** Reads what is asked for and about to grow old, in one request, and plans the next time. */
  function refresh(): void {
    timer = undefined;
    const time = steady();
    let wait = Number.POSITIVE_INFINITY;
    for (const entry of active) {
      if (!isKept(entry)) {
        // Facts too old to be given are not worth the memory; needs change with the settings.
        if (time - entry.askedAt > idleMs + entry.pace.maxStaleMs) forget(entry);
        continue;
      }
      const { refreshMs } = entry.pace;
      const readAt = Math.max(entry.facts?.readAt ?? Number.NEGATIVE_INFINITY, entry.failedAt);
      // Earlier than it must be, so that routes come to be read together.
      const isDue = time - readAt >= refreshMs / 2;
      if (isDue) read(entry).catch(() => {});
      wait = Math.min(wait, isDue ? refreshMs : readAt + refreshMs - time);
    }
    if (wait !== Number.POSITIVE_INFINITY) refreshIn(Math.max(wait, leastGapMs));
  }

  function forget(entry: Entry): void {
    entry.facts = undefined;
    active.delete(entry);
    if (byName.get(entry.name) === entry) byName.delete(entry.name);
  }

  return {
    watch(name, needs, pace) {
      const known = byName.get(name);
      if (known !== undefined) return known;
      const entry: Entry = {
        name,
        needs,
        pace,
        facts: undefined,
        reading: undefined,
        failedAt: Number.NEGATIVE_INFINITY,
        askedAt: Number.NEGATIVE_INFINITY,
        ask: () => ask(entry),
        isKept: () => isKept(entry),
      };
      byName.set(name, entry);
      return entry;
    },
    close() {
      closing.abort();
      clearTimeout(timer);
    },
  };
}

/** What a read that begins now takes for its time. */
export function readTime({ now, steady }: Clocks): ReadTime {
  return { readAt: steady(), nowSeconds: Math.floor(now() / 1000) };
}
