import { randomUUID } from "node:crypto";
import type { Clocks } from "../../resilience/clock.js";
import {
  BACKGROUND_TIMEOUT_MS,
  type Loaded,
  parseShared,
  printShared,
  REQUEST_TIMEOUT_MS,
  type SharedCache,
  type SharedText,
} from "../../shared-state/shared-cache.js";
import { ChainState, type ChainStateValues, type ReadTimestamps } from "./chain-state.js";
import { type ChainStateEntry, findFreshState } from "./chain-state-entry.js";
import type { ReadSet } from "./read-set.js";

/** What a cache needs to share the state of its chain. */
export interface ChainStateSharingOptions {
  readonly cache: SharedCache;
  /** Identifies the chain among all networks. */
  readonly key: string;
  /** Returns what a route reads on the chain, by its name; undefined: nothing, or not known yet. */
  readonly findReadSet: (routeName: string) => ReadSet | undefined;
  /** Observes every state that another process has read. */
  readonly onReceived?: ((state: ChainState) => void) | undefined;
}

/** Entries of one event-loop turn, which are obtained together. */
interface Round {
  readonly entries: Set<ChainStateEntry>;
  /** Whether a request waits for it. */
  isAwaited: boolean;
  readonly state: Promise<ChainState>;
}

/** Longer than state is served by default. */
const STATE_TTL_MS = 60_000;
/** The names of routes in use are demanded for a minute, and again after this time. */
const DEMAND_INTERVAL_MS = 20_000;

/** State of a chain that one process reads for all: one block with what the routes of all of them need. */
export class SharedChainState {
  readonly #options: ChainStateSharingOptions;
  readonly #cache;
  /** When the names of routes were demanded last. */
  readonly #demandedAt = new Map<string, number>();
  #openRound: Round | undefined;
  /** The newest state, and the text that it was parsed from or printed to. */
  #last: { readonly text: string; readonly state: ChainState } | undefined;

  constructor(
    options: ChainStateSharingOptions,
    cache: {
      readonly slug: string;
      readonly clocks: Clocks;
      /** Returns the names of the routes whose state is in use. */
      listRouteNames(): Iterable<string>;
      /** Reads the read sets in one block, without those that the node rejects. */
      read(readSets: readonly ReadSet[]): Promise<ChainState>;
      /** Stores state of this process or another one, in the entries that it covers. */
      store(state: ChainState): void;
    },
  ) {
    this.#options = options;
    this.#cache = cache;
  }

  /**
   * Returns state that another process has read since the entry's, or reads it for all.
   * @param isAwaited whether a request waits, even if the entry has a fresh state
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond
   */
  obtain(entry: ChainStateEntry, isAwaited: boolean): Promise<ChainState> {
    this.#openRound ??= this.#startRound();
    this.#openRound.entries.add(entry);
    this.#openRound.isAwaited ||= isAwaited;
    return this.#openRound.state;
  }

  #startRound(): Round {
    const run = async (): Promise<ChainState> => {
      // Lets the other entries of this event-loop turn join.
      await Promise.resolve();
      this.#openRound = undefined;
      return this.#obtainTogether([...round.entries], round.isAwaited);
    };
    const round: Round = { entries: new Set(), isAwaited: false, state: run() };
    return round;
  }

  #obtainTogether(entries: readonly ChainStateEntry[], isRequested: boolean): Promise<ChainState> {
    const { cache, key } = this.#options;
    const now = this.#cache.clocks.monotonicNow();
    this.#demandRoutes(now);
    const isAwaited = isRequested || entries.some((entry) => findFreshState(entry, now) === undefined);
    const timeoutMs = isAwaited ? REQUEST_TIMEOUT_MS : BACKGROUND_TIMEOUT_MS;
    // Known before what is received is stored in the entries.
    const readAt = Math.max(...entries.map(({ state }) => state?.readAt ?? Number.NEGATIVE_INFINITY));
    const accept = (shared: SharedText): ChainState | undefined => {
      const state = this.#receive(shared);
      return state.readAt > readAt && entries.every((entry) => this.#isUseful(state, entry)) ? state : undefined;
    };
    return cache.obtain(key, accept, (leftMs) => this.#readForAll(entries, leftMs), timeoutMs);
  }

  #demandRoutes(now: number): void {
    const names = [...new Set(this.#cache.listRouteNames())].filter(
      (name) => now - (this.#demandedAt.get(name) ?? Number.NEGATIVE_INFINITY) > DEMAND_INTERVAL_MS,
    );
    if (names.length === 0) return;
    for (const name of names) this.#demandedAt.set(name, now);
    this.#options.cache.demand(this.#options.key, names);
  }

  /** @throws TypeError for the state of another chain */
  #receive({ text, ageMs }: SharedText): ChainState {
    if (this.#last?.text === text) return this.#last.state;
    const { now, monotonicNow } = this.#cache.clocks;
    const timestamps = { readAt: monotonicNow() - ageMs, readAtUnixSeconds: Math.floor((now() - ageMs) / 1000) };
    const state = new ChainState(parseChainState(text, this.#options.key, timestamps), this.#cache.slug);
    this.#last = { text, state };
    this.#options.onReceived?.(state);
    this.#cache.store(state);
    return state;
  }

  #isUseful(state: ChainState, { readSet, refreshPolicy }: ChainStateEntry): boolean {
    const ageMs = this.#cache.clocks.monotonicNow() - state.readAt;
    return ageMs <= refreshPolicy.maxAgeMs && state.covers(readSet);
  }

  async #readForAll(entries: readonly ChainStateEntry[], timeoutMs: number): Promise<Loaded<ChainState>> {
    const { cache, key, findReadSet } = this.#options;
    const names = await cache.listDemand(key, timeoutMs);
    const readSets = new Set(entries.flatMap(({ parts }) => parts));
    for (const name of names) {
      const readSet = findReadSet(name);
      if (readSet !== undefined) readSets.add(readSet);
    }
    const state = await this.#cache.read([...readSets]);
    this.#cache.store(state);
    const text = printChainState(state, key, randomUUID());
    this.#last = { text, state };
    const ageMs = this.#cache.clocks.monotonicNow() - state.readAt;
    return { value: state, text, ttlMs: STATE_TTL_MS, ageMs, rank: Number(state.block.number) };
  }
}

/**
 * Prints chain state without the time of its read: clocks differ.
 * @param chainKey identifies the chain among all networks
 * @param readId tells the texts of two reads with equal results apart
 */
export function printChainState(state: ChainStateValues, chainKey: string, readId: string): string {
  const { block, gasPrice, values } = state;
  return printShared({ chain: chainKey, read: readId, state: { block, gasPrice, values } });
}

/** @throws TypeError for the state of another chain */
export function parseChainState(text: string, chainKey: string, timestamps: ReadTimestamps): ChainStateValues {
  const { chain, state } = parseShared(text) as { readonly chain: string; readonly state: ChainStateValues };
  if (chain !== chainKey) throw new TypeError("not the state of this chain");
  return { ...state, ...timestamps };
}
