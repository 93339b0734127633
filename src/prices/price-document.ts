import type { SourceHealth, StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";

/** Prices of one source at one time, in USD by upper-case token symbol. Times are milliseconds since 1970. */
export interface PriceDocument {
  /** When the document was created. */
  readonly timestamp: number;
  readonly prices: ReadonlyMap<string, number>;
  /** When single prices were updated; one that is not listed is as old as the document. */
  readonly updatedAt?: ReadonlyMap<string, number>;
}

/** Maximum age of a price document, as in the SDK. */
export const MAX_PRICE_AGE_MS = 10 * 60 * 1000;

/** Plausibility limit; no token is worth as much. */
const MAX_PRICE_USD = 1e9;

export function isPlausiblePrice(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value < MAX_PRICE_USD;
}

/** @param now milliseconds since 1970 */
export function isCurrentDocument({ timestamp }: PriceDocument, now: number): boolean {
  return timestamp > now - MAX_PRICE_AGE_MS;
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
  encode: ({ timestamp, prices, updatedAt }: PriceDocument) => ({
    timestamp,
    prices: Object.fromEntries(prices),
    ...(updatedAt && { updatedAt: Object.fromEntries(updatedAt) }),
  }),
  decode(json: unknown): PriceDocument {
    const document = parsePriceDocument(json);
    const { updatedAt } = json as { updatedAt?: unknown };
    if (typeof updatedAt !== "object" || updatedAt === null) return document;
    const times = Object.entries(updatedAt).filter((entry): entry is [string, number] => Number.isFinite(entry[1]));
    return { ...document, updatedAt: new Map(times) };
  },
};

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

export function upperCaseSymbols(prices: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...prices].map(([symbol, price]) => [symbol.toUpperCase(), price]));
}
