import { ServiceError } from "../errors.js";
import type { CacheEntry, SourceHealth, StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";

/** What the price document says: when it was made (milliseconds since 1970) and USD by token symbol. */
export interface PriceDocument {
  readonly timestamp: number;
  readonly prices: ReadonlyMap<string, number>;
}

/** The prices that are known at one time. */
export interface PriceTable {
  /**
   * Price of one whole token in US dollars.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no source has a usable price.
   */
  getUsdPrice(symbol: string): number;
}

export interface TokenPrices {
  /** The newest prices of these tokens at least. */
  getTable(symbols: readonly string[]): Promise<PriceTable>;
  /** What book() would give without a wait; undefined where it would wait. The same object while nothing is new. */
  peekTable(symbols: readonly string[]): PriceTable | undefined;
  /** Price of one whole token, as in the newest book. */
  getUsdPrice(symbol: string): Promise<number>;
}

export interface TokenPricesOptions {
  /** Fixed prices by symbol: used before any source. */
  readonly fixedPricesUsd: ReadonlyMap<string, number>;
  /** The price document; undefined: fixed prices only. */
  readonly document: Pick<StaleWhileRevalidateCache<PriceDocument>, "get" | "peek"> | undefined;
  readonly now: () => number;
}

/** A price document older than this is not believed, as in the SDK. */
const MAX_PRICE_AGE_MS = 10 * 60 * 1000;

/** No token is worth so much: whoever says so is mistaken. */
const MAX_PRICE_USD = 1e9;

/** Tokens that have the price of another, as in the SDK. */
const PRICE_ALIASES: Readonly<Record<string, string>> = {
  "USDC.e": "USDC",
  WETH: "ETH",
  WMATIC: "MATIC",
  WPOL: "MATIC",
  WXDAI: "DAI",
  XDAI: "DAI",
};

export function createTokenPrices({ fixedPricesUsd, document, now }: TokenPricesOptions): TokenPrices {
  const fixedBySymbol = upperCaseSymbols(fixedPricesUsd);
  const withoutDocument = bookOf(undefined);
  let newest: { readonly reading: CacheEntry<PriceDocument>; readonly book: PriceTable } | undefined;

  const fixedUsd = (asked: string): number | undefined =>
    fixedBySymbol.get(asked.toUpperCase()) ?? fixedBySymbol.get((PRICE_ALIASES[asked] ?? asked).toUpperCase());

  function bookOf(read: PriceDocument | undefined): PriceTable {
    return {
      getUsdPrice(asked) {
        const symbol = PRICE_ALIASES[asked] ?? asked;
        const isCurrent = read !== undefined && read.timestamp > now() - MAX_PRICE_AGE_MS;
        const price = fixedUsd(asked) ?? (isCurrent ? read.prices.get(symbol.toUpperCase()) : undefined);
        if (price === undefined || !(price > 0)) {
          throw new ServiceError("UPSTREAM_UNAVAILABLE", `no price for ${symbol}`);
        }
        return roundLikeSdk(symbol, price);
      },
    };
  }

  function keep(reading: CacheEntry<PriceDocument>): PriceTable {
    // A host behind a cache may give an older document after a newer one; one from the future is no measure.
    const known = newest?.reading.value.timestamp ?? 0;
    const isNewer = reading.value.timestamp >= known || known > now();
    if (isNewer && newest?.reading !== reading) {
      // What calls itself younger than it can be would be believed for too long.
      const timestamp = Math.min(reading.value.timestamp, now());
      newest = { reading, book: bookOf({ ...reading.value, timestamp }) };
    }
    return newest?.book ?? withoutDocument;
  }

  /** Whether the fixed prices are all that is needed: then no source has to answer first. */
  const areFixed = (symbols: readonly string[]): boolean => symbols.every((symbol) => fixedUsd(symbol) !== undefined);

  async function getTable(symbols: readonly string[]): Promise<PriceTable> {
    if (document === undefined || areFixed(symbols)) return withoutDocument;
    return document.get().then(keep, () => withoutDocument);
  }

  return {
    getTable,
    peekTable(symbols) {
      if (document === undefined || areFixed(symbols)) return withoutDocument;
      const reading = document.peek();
      return reading === undefined ? undefined : keep(reading);
    },
    getUsdPrice: async (symbol) => (await getTable([symbol])).getUsdPrice(symbol),
  };
}

/** How a price document is, whose age counts from when it was made. */
export function getPriceSourceHealth(
  document: Pick<StaleWhileRevalidateCache<PriceDocument>, "peekStale" | "health">,
  now: () => number,
): SourceHealth {
  const health = document.health();
  const reading = document.peekStale();
  if (reading === undefined) return health;
  const ageMs = Math.max(0, now() - reading.value.timestamp);
  // What is not believed any more is as good as not read.
  return { state: ageMs < MAX_PRICE_AGE_MS ? health.state : "failing", ageMs };
}

/**
 * Reads a price document: `{ "timestamp": milliseconds, "prices": { "ETH": 3000 } }`.
 * @throws TypeError when it has another form.
 */
export function parsePriceDocument(document: unknown): PriceDocument {
  const { timestamp, prices } = (document ?? {}) as { timestamp?: unknown; prices?: unknown };
  if (typeof timestamp !== "number" || typeof prices !== "object" || prices === null) {
    throw new TypeError("token prices have another form");
  }
  const numbers = Object.entries(prices).filter((entry): entry is [string, number] => isPlausiblePrice(entry[1]));
  return { timestamp, prices: upperCaseSymbols(new Map(numbers)) };
}

function isPlausiblePrice(value: unknown): boolean {
  return typeof value === "number" && value > 0 && value < MAX_PRICE_USD;
}

/** The SDK rounds these two to six decimals before it computes with them. */
function roundLikeSdk(symbol: string, price: number): number {
  return symbol === "USDC" || symbol === "USDT" ? Number(price.toFixed(6)) : price;
}

function upperCaseSymbols(prices: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...prices].map(([symbol, price]) => [symbol.toUpperCase(), price]));
}
