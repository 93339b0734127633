import type { Clocks } from "../resilience/clock.js";
import type { CacheEntry, SourceHealth, StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";

/** Prices of one source at one time, in USD by upper-case token symbol. Times are milliseconds since 1970. */
export interface PriceDocument {
  /** When the document was created. */
  readonly timestamp: number;
  readonly prices: ReadonlyMap<string, number>;
  /** When single prices were updated; one that is not listed is as old as the document. */
  readonly updatedAt?: ReadonlyMap<string, number>;
}

/** A document and when it was read, in milliseconds on the monotonic clock. */
interface LoadedPriceDocument extends PriceDocument, Pick<CacheEntry<unknown>, "readAt"> {
  /** When it was first used, in milliseconds since 1970. */
  readonly usedSince: number;
}

/** Maximum age of a price document, as in the SDK. */
export const MAX_PRICE_AGE_MS = 10 * 60 * 1000;

/** Plausibility limit; no token is worth as much. */
const MAX_PRICE_USD = 1e9;

export function isPlausiblePrice(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value < MAX_PRICE_USD;
}

/**
 * Parses a price document: `{ "timestamp": milliseconds, "prices": { "ETH": 3000 } }`. Drops implausible prices.
 * @throws TypeError when the format is different.
 */
export function parsePriceDocument(json: unknown): PriceDocument {
  const { timestamp, prices } = (json ?? {}) as { timestamp?: unknown; prices?: unknown };
  if (typeof timestamp !== "number" || typeof prices !== "object" || prices === null) {
    throw new TypeError("the price document has an unexpected format");
  }
  const plausible = Object.entries(prices).filter((entry): entry is [string, number] => isPlausiblePrice(entry[1]));
  return { timestamp, prices: upperCaseSymbols(new Map(plausible)) };
}

/** Returns the health of a price document; its age counts from the document's timestamp. */
export function getPriceSourceHealth(
  document: Pick<StaleWhileRevalidateCache<PriceDocument>, "peekStale" | "health">,
  now: () => number,
): SourceHealth {
  const health = document.health();
  const entry = document.peekStale();
  if (entry === undefined) return health;
  const ageMs = Math.max(0, now() - entry.value.timestamp);
  // An expired document is as bad as one that cannot be read.
  return { ...health, state: ageMs < MAX_PRICE_AGE_MS ? health.state : "failing", ageMs };
}

/** Returns the health of price feeds by their last read, however long ago: they are only read while somebody needs prices. */
export function getFeedsHealth(
  feeds: Pick<StaleWhileRevalidateCache<PriceDocument>, "peekStale" | "health">,
  { now, monotonicNow }: Clocks,
): SourceHealth {
  const health = feeds.health();
  const entry = feeds.peekStale();
  if (entry === undefined) return health;
  const ageWhenReadMs = now() - (monotonicNow() - entry.readAt) - entry.value.timestamp;
  // The newest block of a stalled chain is no better than none.
  return ageWhenReadMs < MAX_PRICE_AGE_MS ? health : { ...health, state: "failing" };
}

export function upperCaseSymbols(prices: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...prices].map(([symbol, price]) => [symbol.toUpperCase(), price]));
}

/**
 * Interval of background reads that only serve to compare prices. The first one comes after it: a short-lived process makes
 * none.
 */
export const PRICE_COMPARISON_INTERVAL_MS = 60_000;

/** One of the sources from which prices come, and its newest document. */
export class PriceSource {
  readonly name: "ASSETS" | "CHAINLINK";
  readonly #options;
  #newest: { readonly entry: CacheEntry<PriceDocument>; readonly document: LoadedPriceDocument } | undefined;
  #previous: LoadedPriceDocument | undefined;
  #backgroundAt: number | undefined;
  #hasGivenUp = false;

  constructor(options: {
    readonly name: PriceSource["name"];
    /** Upper-case symbols of the tokens that the source prices; absent: what it prices is only known from its document. */
    readonly symbols?: ReadonlySet<string>;
    readonly cache: Pick<StaleWhileRevalidateCache<PriceDocument>, "get" | "peek" | "peekStale" | "health">;
    /** Milliseconds since 1970. */
    readonly now: () => number;
    /** Milliseconds on a monotonic clock. */
    readonly monotonicNow: () => number;
  }) {
    this.name = options.name;
    this.#options = options;
  }

  /** Returns whether the source can have a price of a token, by upper-case symbol. */
  mayPrice(key: string): boolean {
    const { symbols } = this.#options;
    return symbols === undefined || symbols.has(key);
  }

  /**
   * Loads the document if it is no longer fresh.
   * @returns whether no caller has to wait: it is loaded, or cannot be at present
   */
  refresh(): boolean {
    const entry = this.#options.cache.peek();
    if (entry !== undefined) this.#accept(entry);
    return entry !== undefined || this.#hasGivenUp || this.#options.cache.health().state === "failing";
  }

  /** Loads the document at most once a minute, while nobody waits for it. */
  refreshInBackground(): void {
    const time = this.#options.monotonicNow();
    this.#backgroundAt ??= time + PRICE_COMPARISON_INTERVAL_MS;
    if (time < this.#backgroundAt) return;
    this.#backgroundAt = time + PRICE_COMPARISON_INTERVAL_MS;
    this.#options.cache.peek();
  }

  /** Waits until the document is loaded; getDocument() accepts it, where its caller can judge it. Does not throw. */
  async load(): Promise<void> {
    await this.#options.cache.get().then(
      () => {
        this.#hasGivenUp = false;
      },
      () => {},
    );
  }

  /** Returns the newest document, the same object until there is a newer one; undefined: none has been loaded. */
  getDocument(): LoadedPriceDocument | undefined {
    const entry = this.#options.cache.peekStale();
    if (entry !== undefined) this.#accept(entry);
    return this.#newest?.document;
  }

  /** Returns the document before that. */
  getPreviousDocument(): LoadedPriceDocument | undefined {
    return this.#previous;
  }

  /**
   * Returns the price of a token, by upper-case symbol, if it is current; undefined: none.
   * @param document one that this source has returned; default: the newest
   */
  findPrice(key: string, document = this.getDocument()): number | undefined {
    if (document === undefined || this.#getAgeMs(document) >= MAX_PRICE_AGE_MS) return undefined;
    return document.prices.get(key);
  }

  /** Returns whether the newest document is current, so that what it does not price is not priced by this source. */
  hasCurrentDocument(): boolean {
    const document = this.getDocument();
    return document !== undefined && this.#getAgeMs(document) < MAX_PRICE_AGE_MS;
  }

  /** Returns when the price of a token in a document was last updated, in milliseconds since 1970. */
  getUpdatedAt(key: string, document: LoadedPriceDocument): number {
    const { updatedAt, timestamp, usedSince } = document;
    // A document from the future cannot tell.
    return updatedAt?.get(key) ?? (timestamp <= this.#options.now() ? timestamp : usedSince);
  }

  /** Stops waiting for the document until it is loaded: it takes too long. */
  giveUp(): void {
    this.#hasGivenUp = true;
  }

  #accept(entry: CacheEntry<PriceDocument>): void {
    if (this.#newest?.entry === entry) return;
    // A load-balanced host may return an older document after a newer one. A timestamp in the future does not count.
    const newestTimestamp = this.#newest?.entry.value.timestamp ?? 0;
    const isOlder = this.#newest !== undefined && entry.value.timestamp < newestTimestamp;
    if (isOlder && newestTimestamp <= this.#options.now()) return;
    this.#previous = this.#newest?.document;
    this.#newest = { entry, document: { ...entry.value, readAt: entry.readAt, usedSince: this.#options.now() } };
    this.#hasGivenUp = false;
  }

  /**
   * A timestamp in the future would extend the maximum age: the age counts from the read then. By the clock of now, which
   * may have turned out to be wrong since the read.
   */
  #getAgeMs({ timestamp, readAt }: LoadedPriceDocument): number {
    return Math.max(this.#options.now() - timestamp, this.#options.monotonicNow() - readAt);
  }
}
