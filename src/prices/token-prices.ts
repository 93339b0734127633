import { ServiceError } from "../errors.js";
import type { Reading, RemoteDocument, SourceHealth } from "../resilience/stale-while-revalidate.js";

/** What the price document says: when it was made (milliseconds since 1970) and USD by token symbol. */
export interface PriceDocument {
  readonly timestamp: number;
  readonly prices: ReadonlyMap<string, number>;
}

/** The prices that are known at one time. */
export interface PriceBook {
  /**
   * Price of one whole token in US dollars.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no source has a usable price.
   */
  usd(symbol: string): number;
}

export interface TokenPrices {
  /** The newest prices of these tokens at least. */
  book(symbols: readonly string[]): Promise<PriceBook>;
  /** What book() would give without a wait; undefined where it would wait. The same object while nothing is new. */
  peek(symbols: readonly string[]): PriceBook | undefined;
  /** Price of one whole token, as in the newest book. */
  usd(symbol: string): Promise<number>;
}

export interface TokenPricesOptions {
  /** Fixed prices by symbol: used before any source. */
  readonly fixed: ReadonlyMap<string, number>;
  /** The price document; undefined: fixed prices only. */
  readonly document: Pick<RemoteDocument<PriceDocument>, "get" | "peek"> | undefined;
  readonly now: () => number;
}

/** A price document older than this is not believed, as in the SDK. */
const maxAgeMs = 10 * 60 * 1000;

/** No token is worth so much: whoever says so is mistaken. */
const highestUsd = 1e9;

/** Tokens that have the price of another, as in the SDK. */
const samePrice: Readonly<Record<string, string>> = {
  "USDC.e": "USDC",
  WETH: "ETH",
  WMATIC: "MATIC",
  WPOL: "MATIC",
  WXDAI: "DAI",
  XDAI: "DAI",
};

export function createTokenPrices({ fixed, document, now }: TokenPricesOptions): TokenPrices {
  const fixedBySymbol = upperCased(fixed);
  const withoutDocument = bookOf(undefined);
  let newest: { readonly reading: Reading<PriceDocument>; readonly book: PriceBook } | undefined;

  const fixedUsd = (asked: string): number | undefined =>
    fixedBySymbol.get(asked.toUpperCase()) ?? fixedBySymbol.get((samePrice[asked] ?? asked).toUpperCase());

  function bookOf(read: PriceDocument | undefined): PriceBook {
    return {
      usd(asked) {
        const symbol = samePrice[asked] ?? asked;
        const isCurrent = read !== undefined && read.timestamp > now() - maxAgeMs;
        const price = fixedUsd(asked) ?? (isCurrent ? read.prices.get(symbol.toUpperCase()) : undefined);
        if (price === undefined || !(price > 0)) {
          throw new ServiceError("UPSTREAM_UNAVAILABLE", `no price for ${symbol}`);
        }
        return rounded(symbol, price);
      },
    };
  }

  function keep(reading: Reading<PriceDocument>): PriceBook {
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

  async function book(symbols: readonly string[]): Promise<PriceBook> {
    if (document === undefined || areFixed(symbols)) return withoutDocument;
    return document.get().then(keep, () => withoutDocument);
  }

  return {
    book,
    peek(symbols) {
      if (document === undefined || areFixed(symbols)) return withoutDocument;
      const reading = document.peek();
      return reading === undefined ? undefined : keep(reading);
    },
    usd: async (symbol) => (await book([symbol])).usd(symbol),
  };
}

/** How a price document is, whose age counts from when it was made. */
export function priceHealth(
  document: Pick<RemoteDocument<PriceDocument>, "last" | "health">,
  now: () => number,
): SourceHealth {
  const health = document.health();
  const reading = document.last();
  if (reading === undefined) return health;
  const ageMs = Math.max(0, now() - reading.value.timestamp);
  // What is not believed any more is as good as not read.
  return { state: ageMs < maxAgeMs ? health.state : "failing", ageMs };
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
  const numbers = Object.entries(prices).filter((entry): entry is [string, number] => isPrice(entry[1]));
  return { timestamp, prices: upperCased(new Map(numbers)) };
}

function isPrice(value: unknown): boolean {
  return typeof value === "number" && value > 0 && value < highestUsd;
}

/** The SDK rounds these two to six decimals before it computes with them. */
function rounded(symbol: string, price: number): number {
  return symbol === "USDC" || symbol === "USDT" ? Number(price.toFixed(6)) : price;
}

function upperCased(prices: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...prices].map(([symbol, price]) => [symbol.toUpperCase(), price]));
}
