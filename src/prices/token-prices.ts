import { ServiceError } from "../errors.js";
import type { RemoteDocument } from "../remote/document.js";

/** What the price document says: when it was made (milliseconds since 1970) and USD by token symbol. */
export interface PriceDocument {
  readonly timestamp: number;
  readonly prices: ReadonlyMap<string, number>;
}

export interface TokenPrices {
  /**
   * Price of one whole token in US dollars.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no source has a usable price.
   */
  usd(symbol: string): Promise<number>;
}

export interface TokenPricesOptions {
  /** Fixed prices by symbol: used before any source. */
  readonly fixed: ReadonlyMap<string, number>;
  /** The price document; undefined: fixed prices only. */
  readonly document: RemoteDocument<PriceDocument> | undefined;
  readonly now: () => number;
}

/** A price document older than this is not believed, as in the SDK. */
const maxAgeMs = 10 * 60 * 1000;

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

  async function fromDocument(symbol: string): Promise<number | undefined> {
    if (document === undefined) return undefined;
    const reading = await document.get().catch(() => undefined);
    if (reading === undefined || reading.value.timestamp <= now() - maxAgeMs) return undefined;
    return reading.value.prices.get(symbol.toUpperCase());
  }

  return {
    async usd(asked) {
      const symbol = samePrice[asked] ?? asked;
      const price =
        fixedBySymbol.get(asked.toUpperCase()) ??
        fixedBySymbol.get(symbol.toUpperCase()) ??
        (await fromDocument(symbol));
      if (price === undefined || !(price > 0)) throw new ServiceError("UPSTREAM_UNAVAILABLE", `no price for ${symbol}`);
      return rounded(symbol, price);
    },
  };
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
  const numbers = Object.entries(prices).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  return { timestamp, prices: upperCased(new Map(numbers)) };
}

/** The SDK rounds these two to six decimals before it computes with them. */
function rounded(symbol: string, price: number): number {
  return symbol === "USDC" || symbol === "USDT" ? Number(price.toFixed(6)) : price;
}

function upperCased(prices: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...prices].map(([symbol, price]) => [symbol.toUpperCase(), price]));
}
