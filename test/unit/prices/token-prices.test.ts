import { describe, expect, test } from "vitest";
import {
  getFeedsHealth,
  getPriceSourceHealth,
  type PriceDocument,
  PriceSource,
  parsePriceDocument,
} from "../../../src/prices/price-source.js";
import { ComparedTokenPrices } from "../../../src/prices/token-prices.js";
import type { CacheEntry } from "../../../src/resilience/stale-while-revalidate.js";

const NOW = 1_795_000_000_000;

type PriceCache = ConstructorParameters<typeof PriceSource>[0]["cache"];

const health = () => ({ state: "unknown", ageMs: undefined }) as const;

/** Creates the only source, from what its cache returns. */
function createSources(
  cache: Pick<PriceCache, "get"> & { peek(): CacheEntry<PriceDocument> | undefined },
  now = () => NOW,
) {
  return [
    new PriceSource({ name: "ASSETS", cache: { ...cache, peekStale: cache.peek, health }, now, monotonicNow: now }),
  ];
}

function createPrices(fixed: Record<string, number>, document?: Record<string, number>, ageMs = 0) {
  const value = parsePriceDocument({ timestamp: NOW - ageMs, prices: document ?? {} });
  const entry = { value, readAt: NOW };
  return new ComparedTokenPrices({
    fixedPricesUsd: new Map(Object.entries(fixed)),
    sources: document ? createSources({ get: async () => entry, peek: () => entry }) : [],
  });
}

describe("getUsdPrice", () => {
  test("prefers a fixed price to the document", async () => {
    expect(await createPrices({ ETH: 1 }, { ETH: 2, HOP: 3 }).getUsdPrice("ETH")).toBe(1);
    expect(await createPrices({ ETH: 1 }, { ETH: 2, HOP: 3 }).getUsdPrice("HOP")).toBe(3);
  });

  test.each([
    ["USDC.e", "USDC"],
    ["WETH", "ETH"],
    ["XDAI", "DAI"],
    ["WXDAI", "DAI"],
    ["WMATIC", "MATIC"],
  ])("returns for %s the price of %s", async (asked, symbol) => {
    expect(await createPrices({ [symbol]: 7 }).getUsdPrice(asked)).toBe(7);
    expect(await createPrices({}, { [symbol.toLowerCase()]: 8 }).getUsdPrice(asked)).toBe(8);
  });

  test("rounds USDC to six decimals, as the SDK does, but not DAI", async () => {
    expect(await createPrices({ USDC: 0.99987654321 }).getUsdPrice("USDC")).toBe(0.999877);
    expect(await createPrices({ DAI: 0.99987654321 }).getUsdPrice("DAI")).toBe(0.99987654321);
  });

  test.each([
    ["is unknown", createPrices({})],
    ["is not in the document", createPrices({}, { HOP: 1 })],
    ["is too old", createPrices({}, { ETH: 1 }, 600_000)],
    ["is zero", createPrices({}, { ETH: 0 })],
    ["is negative", createPrices({}, { ETH: -1 })],
    ["is implausibly high", createPrices({}, { ETH: 1e9 })],
    ["is infinite", createPrices({}, { ETH: Number.POSITIVE_INFINITY })],
    ["is a string", createPrices({}, { ETH: "3000" as unknown as number })],
    [
      "has a source that fails",
      new ComparedTokenPrices({
        fixedPricesUsd: new Map(),
        sources: createSources({ get: () => Promise.reject(new Error("x")), peek: () => undefined }),
      }),
    ],
  ])("fails with UPSTREAM_UNAVAILABLE for a price that %s", async (_, source) => {
    await expect(source.getUsdPrice("ETH")).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "no price for ETH",
    });
  });

  test("does not use a document with a timestamp in the future for longer than others", () => {
    let time = NOW;
    const entry = { value: parsePriceDocument({ timestamp: NOW + 1e12, prices: { ETH: 2 } }), readAt: NOW };
    const source = new ComparedTokenPrices({
      fixedPricesUsd: new Map(),
      sources: createSources({ get: async () => entry, peek: () => entry }, () => time),
    });
    expect(source.peekTable(["ETH"])?.getUsdPrice("ETH")).toBe(2);
    time += 599_999;
    expect(source.peekTable(["ETH"])?.getUsdPrice("ETH")).toBe(2);
    // By the time when it came, not by one that moves.
    expect(source.peekTable(["ETH"])?.getOrigin("ETH")).toEqual({ source: "ASSETS", updatedAtSeconds: NOW / 1000 });
    time += 1;
    expect(() => source.peekTable(["ETH"])?.getUsdPrice("ETH")).toThrow("no price for ETH");
  });

  test.each([null, {}, { timestamp: "1", prices: {} }, { timestamp: 1, prices: null }])(
    "rejects the document %j",
    (json) => {
      expect(() => parsePriceDocument(json)).toThrow(TypeError);
    },
  );
});

describe("a price table", () => {
  test("is the same object until a newer document is read", async () => {
    const source = createPrices({ ETH: 1 }, { HOP: 3 });
    const table = source.peekTable(["HOP"]);
    expect(table?.getUsdPrice("HOP")).toBe(3);
    expect(source.peekTable(["HOP", "ETH"])).toBe(table);
    expect(await source.getTable(["HOP"])).toBe(table);
  });

  test("is available without the document only if all requested prices are fixed", async () => {
    const source = new ComparedTokenPrices({
      fixedPricesUsd: new Map([["ETH", 2]]),
      sources: createSources({ get: () => new Promise(() => {}), peek: () => undefined }),
    });
    expect(source.peekTable(["ETH", "WETH"])?.getUsdPrice("WETH")).toBe(2);
    expect((await source.getTable(["ETH"])).getUsdPrice("ETH")).toBe(2);
    expect(source.peekTable(["ETH", "HOP"])).toBeUndefined();
  });

  test("says where a price comes from and how old it is", () => {
    const table = createPrices({ ETH: 1 }, { HOP: 3 }, 90_500).peekTable(["HOP"]);
    expect(table?.getOrigin("WETH")).toEqual({ source: "FIXED", updatedAtSeconds: 0 });
    expect(table?.getOrigin("HOP")).toEqual({ source: "ASSETS", updatedAtSeconds: NOW / 1000 - 91 });
    expect(() => table?.getOrigin("DAI")).toThrow("no price for DAI");
  });

  test.each([20, -20])(
    "has prices once it is known that the clock was %i minutes ahead when they were read",
    (minutes) => {
      let offsetMs = minutes * 60_000;
      let elapsedMs = 0;
      const entry = { value: parsePriceDocument({ timestamp: NOW - 1_000, prices: { ETH: 3 } }), readAt: 0 };
      const cache = { get: async () => entry, peek: () => entry, peekStale: () => entry, health };
      const clocks = { now: () => NOW + elapsedMs + offsetMs, monotonicNow: () => elapsedMs };
      const sources = [new PriceSource({ name: "ASSETS", cache, ...clocks })];
      const table = new ComparedTokenPrices({ fixedPricesUsd: new Map(), sources }).peekTable(["ETH"]);
      offsetMs = 0;
      expect(table?.getUsdPrice("ETH")).toBe(3);
      elapsedMs = 599_000;
      expect(() => table?.getUsdPrice("ETH")).toThrow("no price for ETH");
    },
  );

  test("keeps the newest document, unless its timestamp is in the future", () => {
    const createEntry = (ageMs: number, usd: number) => ({
      value: parsePriceDocument({ timestamp: NOW - ageMs, prices: { ETH: usd } }),
      readAt: NOW,
    });
    let entry = createEntry(1_000, 2);
    const sources = createSources({ get: async () => entry, peek: () => entry });
    const source = new ComparedTokenPrices({ fixedPricesUsd: new Map(), sources });
    const usd = (): number | undefined => source.peekTable(["ETH"])?.getUsdPrice("ETH");
    expect(usd()).toBe(2);
    entry = createEntry(60_000, 1);
    expect(usd()).toBe(2);
    entry = createEntry(0, 3);
    expect(usd()).toBe(3);
    entry = createEntry(-86_400_000, 9);
    expect(usd()).toBe(9);
    entry = createEntry(10, 4);
    expect(usd()).toBe(4);
  });
});

test.each([
  ["ok", 0, "ok"],
  ["ok", 599_999, "ok"],
  // It can be read, but has expired.
  ["ok", 600_000, "failing"],
  ["failing", 5, "failing"],
] as const)("reports a document whose source is %s and whose age is %i ms as %s", (state, ageMs, expected) => {
  const value = parsePriceDocument({ timestamp: NOW - ageMs, prices: {} });
  const document = { peekStale: () => ({ value, readAt: 1 }), health: () => ({ state, ageMs: 77 }) };
  expect(getPriceSourceHealth(document, () => NOW)).toEqual({ state: expected, ageMs });
});

test.each([
  [599_999, "ok"],
  // The chain was stalled.
  [600_000, "failing"],
] as const)(
  "reports feeds whose block was %i ms old when they were read as %s, however long ago",
  (blockAgeMs, state) => {
    const value = parsePriceDocument({ timestamp: NOW - 3_600_000 - blockAgeMs, prices: {} });
    const feeds = {
      peekStale: () => ({ value, readAt: 5 }),
      health: () => ({ state: "ok", ageMs: 3_600_000 }) as const,
    };
    const clocks = { now: () => NOW, monotonicNow: () => 3_600_005 };
    expect(getFeedsHealth(feeds, clocks)).toEqual({ state, ageMs: 3_600_000 });
  },
);
