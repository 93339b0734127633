import { describe, expect, test } from "vitest";
import { createTokenPrices, getPriceSourceHealth, parsePriceDocument } from "../../../src/prices/token-prices.js";

const now = 1_795_000_000_000;

function prices(fixed: Record<string, number>, document?: Record<string, number>, ageMs = 0) {
  const value = parsePriceDocument({ timestamp: now - ageMs, prices: document ?? {} });
  const reading = { value, readAt: now };
  return createTokenPrices({
    fixedPricesUsd: new Map(Object.entries(fixed)),
    document: document && { get: async () => reading, peek: () => reading },
    now: () => now,
  });
}

describe("token prices", () => {
  test("fixed ones come before the document", async () => {
    expect(await prices({ ETH: 1 }, { ETH: 2, HOP: 3 }).getUsdPrice("ETH")).toBe(1);
    expect(await prices({ ETH: 1 }, { ETH: 2, HOP: 3 }).getUsdPrice("HOP")).toBe(3);
  });

  test.each([
    ["USDC.e", "USDC"],
    ["WETH", "ETH"],
    ["XDAI", "DAI"],
    ["WXDAI", "DAI"],
    ["WMATIC", "MATIC"],
  ])("%s has the price of %s", async (asked, symbol) => {
    expect(await prices({ [symbol]: 7 }).getUsdPrice(asked)).toBe(7);
    expect(await prices({}, { [symbol.toLowerCase()]: 8 }).getUsdPrice(asked)).toBe(8);
  });

  test("USDC and USDT are rounded to six decimals, as the SDK does", async () => {
    expect(await prices({ USDC: 0.99987654321 }).getUsdPrice("USDC")).toBe(0.999877);
    expect(await prices({ DAI: 0.99987654321 }).getUsdPrice("DAI")).toBe(0.99987654321);
  });

  test.each([
    ["is unknown", prices({})],
    ["is not in the document", prices({}, { HOP: 1 })],
    ["is too old", prices({}, { ETH: 1 }, 600_000)],
    ["is zero", prices({}, { ETH: 0 })],
    ["is negative", prices({}, { ETH: -1 })],
    ["is more than anything is worth", prices({}, { ETH: 1e9 })],
    ["has no end", prices({}, { ETH: Number.POSITIVE_INFINITY })],
    ["is a text", prices({}, { ETH: "3000" as unknown as number })],
    [
      "has a source that fails",
      createTokenPrices({
        fixedPricesUsd: new Map(),
        document: { get: () => Promise.reject(new Error("x")), peek: () => undefined },
        now: () => now,
      }),
    ],
  ])("a price that %s is an upstream's fault", async (_, source) => {
    await expect(source.getUsdPrice("ETH")).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "no price for ETH",
    });
  });

  test("a document that calls itself younger than it can be is not believed for longer", () => {
    let time = now;
    const reading = { value: parsePriceDocument({ timestamp: now + 1e12, prices: { ETH: 2 } }), readAt: now };
    const source = createTokenPrices({
      fixedPricesUsd: new Map(),
      document: { get: async () => reading, peek: () => reading },
      now: () => time,
    });
    expect(source.peekTable(["ETH"])?.getUsdPrice("ETH")).toBe(2);
    time += 599_999;
    expect(source.peekTable(["ETH"])?.getUsdPrice("ETH")).toBe(2);
    time += 1;
    expect(() => source.peekTable(["ETH"])?.getUsdPrice("ETH")).toThrow("no price for ETH");
  });

  test.each([null, {}, { timestamp: "1", prices: {} }, { timestamp: 1, prices: null }])(
    "refuses the document %j",
    (json) => {
      expect(() => parsePriceDocument(json)).toThrow(TypeError);
    },
  );
});

describe("a book of prices", () => {
  test("is the same as long as nothing new is read", async () => {
    const source = prices({ ETH: 1 }, { HOP: 3 });
    const book = source.peekTable(["HOP"]);
    expect(book?.getUsdPrice("HOP")).toBe(3);
    expect(source.peekTable(["HOP", "ETH"])).toBe(book);
    expect(await source.getTable(["HOP"])).toBe(book);
  });

  test("is at hand without any source where all its prices are fixed, and else where a source must answer first", async () => {
    const source = createTokenPrices({
      fixedPricesUsd: new Map([["ETH", 2]]),
      document: { get: () => new Promise(() => {}), peek: () => undefined },
      now: () => now,
    });
    expect(source.peekTable(["ETH", "WETH"])?.getUsdPrice("WETH")).toBe(2);
    expect((await source.getTable(["ETH"])).getUsdPrice("ETH")).toBe(2);
    expect(source.peekTable(["ETH", "HOP"])).toBeUndefined();
  });

  test("names the token that no source has", () => {
    expect(() => prices({ ETH: 1 }).peekTable(["ETH"])?.getUsdPrice("HOP")).toThrow("no price for HOP");
  });

  test("gives no older document for a newer one, unless that was from the future", () => {
    const read = (ageMs: number, usd: number) => ({
      value: parsePriceDocument({ timestamp: now - ageMs, prices: { ETH: usd } }),
      readAt: now,
    });
    let reading = read(1_000, 2);
    const document = { get: async () => reading, peek: () => reading };
    const source = createTokenPrices({ fixedPricesUsd: new Map(), document, now: () => now });
    const usd = (): number | undefined => source.peekTable(["ETH"])?.getUsdPrice("ETH");
    expect(usd()).toBe(2);
    reading = read(60_000, 1);
    expect(usd()).toBe(2);
    reading = read(0, 3);
    expect(usd()).toBe(3);
    reading = read(-86_400_000, 9);
    expect(usd()).toBe(9);
    reading = read(10, 4);
    expect(usd()).toBe(4);
  });
});

test.each([
  ["ok", 0, "ok"],
  ["ok", 599_999, "ok"],
  // It is read well, and not believed any more.
  ["ok", 600_000, "failing"],
  ["failing", 5, "failing"],
] as const)("a price document that is %s and was made %i ms ago is %s", (state, ageMs, expected) => {
  const value = parsePriceDocument({ timestamp: now - ageMs, prices: {} });
  const document = { peekStale: () => ({ value, readAt: 1 }), health: () => ({ state, ageMs: 77 }) };
  expect(getPriceSourceHealth(document, () => now)).toEqual({ state: expected, ageMs });
});
