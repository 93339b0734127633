import type { CacheEntry, StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";
import { isCurrentDocument, type PriceDocument } from "./price-document.js";

/** One of the sources from which prices come, and its newest document. */
export interface PriceSource {
  readonly name: "ASSETS" | "CHAINLINK";
  /** Returns whether the source can have a price of a token, by upper-case symbol. */
  mayPrice(key: string): boolean;
  /**
   * Loads the document if it is no longer fresh.
   * @returns whether no caller has to wait: it is loaded, or cannot be at present
   */
  refresh(): boolean;
  /** Loads the document at most once a minute, while nobody waits for it. */
  refreshInBackground(): void;
  /** Waits for the document. Does not throw. */
  load(): Promise<void>;
  /** Returns the newest document, the same object until there is a newer one; undefined: none has been loaded. */
  getDocument(): PriceDocument | undefined;
  /** Returns the document before that. */
  getPreviousDocument(): PriceDocument | undefined;
  /** Stops waiting for the document until it is loaded: it takes too long. */
  giveUp(): void;
}

export interface PriceSourceOptions {
  readonly name: PriceSource["name"];
  /** Upper-case symbols of the tokens that the source prices; absent: what it prices is only known from its document. */
  readonly symbols?: ReadonlySet<string>;
  readonly cache: Pick<StaleWhileRevalidateCache<PriceDocument>, "get" | "peek" | "peekStale" | "health">;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a monotonic clock. */
  readonly monotonicNow: () => number;
}

/** Interval of reads that only serve comparison. The first one comes after it: a short-lived process makes none. */
export const BACKGROUND_INTERVAL_MS = 60_000;

export function createPriceSource(options: PriceSourceOptions): PriceSource {
  const { name, symbols, cache, now, monotonicNow } = options;
  let newest: { readonly entry: CacheEntry<PriceDocument>; readonly document: PriceDocument } | undefined;
  let previous: PriceDocument | undefined;
  let backgroundAt: number | undefined;
  let hasGivenUp = false;

  function accept(entry: CacheEntry<PriceDocument>): void {
    if (newest?.entry === entry) return;
    // A load-balanced host may return an older document after a newer one. A timestamp in the future does not count.
    const newestTimestamp = newest?.entry.value.timestamp ?? 0;
    if (newest !== undefined && entry.value.timestamp < newestTimestamp && newestTimestamp <= now()) return;
    previous = newest?.document;
    // A timestamp in the future would extend the maximum age.
    newest = { entry, document: { ...entry.value, timestamp: Math.min(entry.value.timestamp, now()) } };
    hasGivenUp = false;
  }

  return {
    name,
    mayPrice: (key) => symbols === undefined || symbols.has(key),
    refresh() {
      const entry = cache.peek();
      if (entry !== undefined) accept(entry);
      return entry !== undefined || hasGivenUp || cache.health().state === "failing";
    },
    refreshInBackground() {
      const time = monotonicNow();
      backgroundAt ??= time + BACKGROUND_INTERVAL_MS;
      if (time < backgroundAt) return;
      backgroundAt = time + BACKGROUND_INTERVAL_MS;
      cache.peek();
    },
    load: () => cache.get().then(accept, () => {}),
    getDocument() {
      const entry = cache.peekStale();
      if (entry !== undefined) accept(entry);
      return newest?.document;
    },
    getPreviousDocument: () => previous,
    giveUp() {
      hasGivenUp = true;
    },
  };
}

/** Returns the current price that a source has of a token; undefined: none. */
export function findSourcePrice(document: PriceDocument | undefined, key: string, now: number): number | undefined {
  return document !== undefined && isCurrentDocument(document, now) ? document.prices.get(key) : undefined;
}
