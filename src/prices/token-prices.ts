import { ServiceError } from "../errors.js";
import type { CacheEntry, SourceHealth, StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";

/** A price document: its creation time (milliseconds since 1970) and USD prices by upper-case token symbol. */
export interface PriceDocument {
  readonly timestamp: number;
  readonly prices: ReadonlyMap<string, number>;
}

/** Token prices at one time. */
export interface PriceTable {
  /**
   * Returns the price of one whole token in US dollars.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no source has a usable price.
   */
  getUsdPrice(symbol: string): number;
  /** Returns where this price comes from. @throws like getUsdPrice */
  readonly getOrigin: (symbol: string) => PriceOrigin;
}

/** Where a price comes from. */
export interface PriceOrigin {
  readonly source: "FIXED" | "ASSETS" | "CHAINLINK";
  /** When the source last updated the price, Unix seconds; 0 for a fixed price. */
  readonly updatedAtSeconds: number;
}

export interface TokenPrices {
  /** Returns a table with the newest prices of these tokens; it may contain others. */
  getTable(symbols: readonly string[]): Promise<PriceTable>;
  /** Returns what getTable() returns if it is cached, otherwise undefined; the same object until there is a newer one. */
  peekTable(symbols: readonly string[]): PriceTable | undefined;
  /** Returns the newest price of one whole token. */
  getUsdPrice(symbol: string): Promise<number>;
}

export interface TokenPricesOptions {
  /** Fixed prices by symbol; they take precedence over the document. */
  readonly fixedPricesUsd: ReadonlyMap<string, number>;
  /** The price document; undefined: fixed prices only. */
  readonly document: Pick<StaleWhileRevalidateCache<PriceDocument>, "get" | "peek"> | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Maximum age of a price document, as in the SDK. */
const MAX_PRICE_AGE_MS = 10 * 60 * 1000;

/** Plausibility limit; no token is worth as much. */
const MAX_PRICE_USD = 1e9;

const FIXED_ORIGIN: PriceOrigin = { source: "FIXED", updatedAtSeconds: 0 };

/** Tokens that have the price of another one, as in the SDK. */
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
  const fixedOnlyTable = createTable(undefined);
  let newest: { readonly entry: CacheEntry<PriceDocument>; readonly table: PriceTable } | undefined;

  function findFixedPrice(symbol: string): number | undefined {
    const fixedPrice = fixedBySymbol.get(symbol.toUpperCase());
    return fixedPrice ?? fixedBySymbol.get((PRICE_ALIASES[symbol] ?? symbol).toUpperCase());
  }

  /** Returns whether no document is needed for these tokens. */
  function haveFixedPrices(symbols: readonly string[]): boolean {
    if (fixedBySymbol.size === 0) return symbols.length === 0;
    return symbols.every((symbol) => findFixedPrice(symbol) !== undefined);
  }

  function createTable(priceDocument: PriceDocument | undefined): PriceTable {
    function getPrice(requestedSymbol: string): { readonly usd: number; readonly origin: PriceOrigin } {
      const symbol = PRICE_ALIASES[requestedSymbol] ?? requestedSymbol;
      const fixedPrice = findFixedPrice(requestedSymbol);
      if (fixedPrice !== undefined) return { usd: roundLikeSdk(symbol, fixedPrice), origin: FIXED_ORIGIN };
      const isCurrent = priceDocument !== undefined && priceDocument.timestamp > now() - MAX_PRICE_AGE_MS;
      const price = isCurrent ? priceDocument.prices.get(symbol.toUpperCase()) : undefined;
      if (price === undefined || !(price > 0)) {
        throw new ServiceError("UPSTREAM_UNAVAILABLE", `no price for ${symbol}`);
      }
      const updatedAtSeconds = Math.floor((priceDocument?.timestamp ?? 0) / 1000);
      return { usd: roundLikeSdk(symbol, price), origin: { source: "ASSETS", updatedAtSeconds } };
    }
    return { getUsdPrice: (symbol) => getPrice(symbol).usd, getOrigin: (symbol) => getPrice(symbol).origin };
  }

  function acceptNewest(entry: CacheEntry<PriceDocument>): PriceTable {
    // A load-balanced host may return an older document after a newer one. A timestamp in the future does not count.
    const newestTimestamp = newest?.entry.value.timestamp ?? 0;
    const isNewer = entry.value.timestamp >= newestTimestamp || newestTimestamp > now();
    if (isNewer && newest?.entry !== entry) {
      // A timestamp in the future would extend the maximum age.
      const timestamp = Math.min(entry.value.timestamp, now());
      newest = { entry, table: createTable({ ...entry.value, timestamp }) };
    }
    return newest?.table ?? fixedOnlyTable;
  }

  async function getTable(symbols: readonly string[]): Promise<PriceTable> {
    if (document === undefined || haveFixedPrices(symbols)) return fixedOnlyTable;
    return document.get().then(acceptNewest, () => fixedOnlyTable);
  }

  return {
    getTable,
    peekTable(symbols) {
      if (document === undefined || haveFixedPrices(symbols)) return fixedOnlyTable;
      const entry = document.peek();
      return entry === undefined ? undefined : acceptNewest(entry);
    },
    getUsdPrice: async (symbol) => (await getTable([symbol])).getUsdPrice(symbol),
  };
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
  return { state: ageMs < MAX_PRICE_AGE_MS ? health.state : "failing", ageMs };
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

/** How a price document crosses to other processes. */
export const priceDocumentCodec = {
  encode: ({ timestamp, prices }: PriceDocument) => ({ timestamp, prices: Object.fromEntries(prices) }),
  decode: parsePriceDocument,
};

function isPlausiblePrice(value: unknown): boolean {
  return typeof value === "number" && value > 0 && value < MAX_PRICE_USD;
}

/** Rounds USDC and USDT to six decimals before use, as the SDK does. */
function roundLikeSdk(symbol: string, price: number): number {
  return symbol === "USDC" || symbol === "USDT" ? Number(price.toFixed(6)) : price;
}

function upperCaseSymbols(prices: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...prices].map(([symbol, price]) => [symbol.toUpperCase(), price]));
}
