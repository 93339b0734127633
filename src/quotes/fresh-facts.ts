import { setMaxListeners } from "node:events";
import type { ChainClient } from "../chain/chain-client.js";
import { CallRefused } from "../chain/json-rpc.js";
import { ServiceError } from "../errors.js";
import type { Chain } from "../hop/networks.js";
import { within } from "../remote/within.js";
import { type ChainFacts, type ChainNeeds, type ReadTime, readChainFacts } from "./chain-facts.js";

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
}

export interface Clocks {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that nobody sets: ages and pauses are counted in them. */
  readonly steady: () => number;
}

/** How long after the last question facts are no longer read again. */
const idleMs = 15_000;
/** From a failed read to the next, after the first failure in a row; who asks meanwhile waits for that next one. */
const firstPauseMs = 250;
const longestPauseMs = 1_000;
/** How long a read is waited for while older facts that can still be given are at hand. */
const patienceMs = 1_500;
/** Background reads come at most this often. */
const leastGapMs = 1_000;
/** How long needs of which a node refused a call are read apart from all others. */
const apartMs = 10_000;

interface Entry extends Watched {
  readonly name: string;
  readonly needs: ChainNeeds;
  readonly pace: Pace;
  facts: ChainFacts | undefined;
  /** The read that is under way or about to start, and since when. */
  reading: { readonly facts: Promise<ChainFacts>; readonly since: number } | undefined;
  failedAt: number;
  askedAt: number;
  /** Until when it is read apart. */
  apartUntil: number;
}

/** Entries that are read by one request, from when it is planned. */
interface Read {
  readonly entries: Entry[];
  readonly factsOf: Promise<FactsOf>;
}

type FactsOf = (entry: Entry) => ChainFacts | Promise<ChainFacts>;

export function createFreshFacts({ chain, client, clocks }: FreshFactsOptions): FreshFacts {
  const { steady } = clocks;
  const byName = new Map<string, Entry>();
  /** Those that somebody asked for lately. */
  const active = new Set<Entry>();
  const closing = new AbortController();
  // Every request that is under way listens.
  setMaxListeners(0, closing.signal);
  let next: Read | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  let failuresInARow = 0;
  /** How many entries were read apart in vain. */
  let probed = 0;
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;

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

  /** Has an entry read. Entries that want it at the same moment share one request. */
  function read(entry: Entry): Promise<ChainFacts> {
    if (entry.reading === undefined) {
      const planned = entry.apartUntil > steady() ? plan() : planTogether();
      planned.entries.push(entry);
      entry.reading = { facts: planned.factsOf.then((factsOf) => factsOf(entry)), since: steady() };
    }
    return entry.reading.facts;
  }

  function planTogether(): Read {
    next ??= plan();
    return next;
  }

  function plan(): Read {
    const entries: Entry[] = [];
    const start = async (): Promise<FactsOf> => {
      const pauseMs = Math.min(firstPauseMs * 2 ** (failuresInARow - 1), longestPauseMs);
      const pause = failedAt + pauseMs - steady();
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
      // Whoever comes by in this turn of the event loop is taken along.
      else await Promise.resolve();
      if (next === planned) next = undefined;
      try {
        return await readTogether(entries);
      } finally {
        for (const entry of entries) entry.reading = undefined;
      }
    };
    const planned: Read = { entries, factsOf: start() };
    return planned;
  }

  async function readTogether(entries: readonly Entry[]): Promise<FactsOf> {
    try {
      const facts = await readOnce(entries);
      return () => facts;
    } catch (error) {
      if (entries.length === 1 || !isRefusal(error)) throw error;
      return readApart(entries, error);
    }
  }

  /**
   * The node is there and refuses a call, perhaps of one route only: the others are not to suffer from it. Two are read
   * first, others each time; where both are refused, it is taken that the node refuses everything.
   */
  async function readApart(entries: readonly Entry[], error: unknown): Promise<FactsOf> {
    const alone = new Map<Entry, Promise<ChainFacts>>();
    const from = probed % entries.length;
    const inOrder = [...entries.slice(from), ...entries.slice(0, from)];
    for (const some of [inOrder.slice(0, 2), inOrder.slice(2)]) {
      for (const entry of some) alone.set(entry, readOnce([entry]));
      const settled = await Promise.allSettled(some.map((entry) => alone.get(entry)));
      if (settled.every(({ status }) => status === "rejected")) {
        probed += 2;
        break;
      }
      for (const [place, { status }] of settled.entries()) {
        const entry = some[place];
        if (entry !== undefined && status === "rejected") entry.apartUntil = steady() + apartMs;
      }
    }
    return (entry) => alone.get(entry) ?? Promise.reject(error);
  }

  async function readOnce(entries: readonly Entry[]): Promise<ChainFacts> {
    try {
      const needs = entries.map((entry) => entry.needs);
      const facts = await readChainFacts(client, chain, needs, readTime(clocks), closing.signal);
      for (const entry of entries) keep(entry, facts);
      failuresInARow = 0;
      return facts;
    } catch (error) {
      failedAt = steady();
      failuresInARow += 1;
      for (const entry of entries) entry.failedAt = failedAt;
      throw error;
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
      if (time - entry.askedAt > idleMs) {
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
        apartUntil: Number.NEGATIVE_INFINITY,
        ask: () => ask(entry),
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

/** Whether a chain's nodes are there and refuse a call. */
function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && error.cause instanceof CallRefused;
}
