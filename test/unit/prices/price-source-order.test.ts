import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { PriceDocument } from "../../../src/prices/price-document.js";
import { createPriceSource, type PriceSource } from "../../../src/prices/price-source.js";
import { createTokenPrices } from "../../../src/prices/token-prices.js";
import { createStaleWhileRevalidateCache } from "../../../src/resilience/stale-while-revalidate.js";

const NOW = 1_795_000_000_000;
const clock = () => Date.now();
const ORIGIN_AT = NOW / 1000;

/** A source whose host answers what the test sets: prices, an error, or nothing. */
function createStub(name: PriceSource["name"], symbols?: readonly string[]) {
  const host = { answer: undefined as Record<string, number> | Error | undefined, loads: 0 };
  const cache = createStaleWhileRevalidateCache<PriceDocument>({
    load: async () => {
      host.loads += 1;
      if (host.answer instanceof Error) throw host.answer;
      if (host.answer === undefined) return new Promise(() => {});
      return { timestamp: clock(), prices: new Map(Object.entries(host.answer)) };
    },
    now: clock,
    ...{ freshMs: 55_000, staleMs: 300_000, errorTtlMs: 1_000 },
    onError: () => {},
  });
  const known = symbols && { symbols: new Set(symbols) };
  return { host, source: createPriceSource({ name, ...known, cache, now: clock, monotonicNow: clock }) };
}

function start(fixed: Record<string, number> = {}) {
  const assets = createStub("ASSETS");
  const feeds = createStub("CHAINLINK", ["ETH", "DAI"]);
  const events: string[] = [];
  const prices = createTokenPrices({
    fixedPricesUsd: new Map(Object.entries(fixed)),
    sources: [assets.source, feeds.source],
    now: clock,
    onDistrust: ({ source, token, isDistrusted }) => events.push(`${source} ${token} ${isDistrusted}`),
  });
  /** Asks like a quote, and waits for what it waits for. */
  const ask = async (symbol: string): Promise<string> => {
    const table = prices.peekTable([symbol]) ?? (await prices.getTable([symbol]));
    return `${table.getOrigin(symbol).source} ${table.getUsdPrice(symbol)}`;
  };
  return { assets: assets.host, feeds: feeds.host, prices, ask, events };
}

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("while the preferred source has the prices", () => {
  test("the next one is read in the background, once a minute and not in the first minute", async () => {
    const { assets, feeds, ask } = start();
    assets.answer = { ETH: 3000 };
    feeds.answer = { ETH: 3001 };
    const loadsAfter: number[] = [];
    for (let second = 0; second <= 300; second += 1) {
      expect(await ask("ETH")).toBe("ASSETS 3000");
      if (second % 60 === 59) loadsAfter.push(feeds.loads);
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(loadsAfter).toEqual([0, 1, 2, 3, 4]);
  });

  test("nobody waits for the next one, even if it never answers", async () => {
    const { assets, ask, prices } = start();
    assets.answer = { ETH: 3000 };
    await ask("ETH");
    await vi.advanceTimersByTimeAsync(61_000);
    await ask("ETH");
    expect(prices.peekTable(["ETH"])?.getUsdPrice("ETH")).toBe(3000);
  });

  test("a source without feeds for a token is not read for it, nor one for a fixed price", async () => {
    const { assets, feeds, ask } = start({ DAI: 1 });
    assets.answer = { HOP: 0.02 };
    for (let minute = 0; minute < 5; minute += 1) {
      expect(await ask("HOP")).toBe("ASSETS 0.02");
      expect(await ask("DAI")).toBe("FIXED 1");
      await vi.advanceTimersByTimeAsync(60_000);
    }
    expect(feeds.loads).toBe(0);
  });
});

describe("the next source is read before an answer", () => {
  test.each<[string, Record<string, number> | Error]>([
    ["fails", new Error("the host is gone")],
    ["does not have the token", { HOP: 1 }],
  ])("if the preferred one %s", async (_, answer) => {
    const { assets, feeds, ask } = start();
    assets.answer = answer;
    feeds.answer = { ETH: 3001 };
    expect(await ask("ETH")).toBe("CHAINLINK 3001");
  });

  test("if the preferred one does not answer for a second; others do not wait for it again", async () => {
    const { feeds, ask } = start();
    feeds.answer = { ETH: 3001 };
    const first = ask("ETH");
    await vi.advanceTimersByTimeAsync(999);
    expect(feeds.loads).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(await first).toBe("CHAINLINK 3001");
    expect(await ask("ETH")).toBe("CHAINLINK 3001");
  });

  test("until the preferred one answers again", async () => {
    const { assets, feeds, ask } = start();
    assets.answer = new Error("the host is gone");
    feeds.answer = { ETH: 3001 };
    await ask("ETH");
    assets.answer = { ETH: 3000 };
    await vi.advanceTimersByTimeAsync(1_000);
    await ask("ETH");
    await vi.advanceTimersByTimeAsync(0);
    expect(await ask("ETH")).toBe("ASSETS 3000");
  });

  test("if the preferred one's document expires", async () => {
    const { assets, feeds, ask } = start();
    assets.answer = { ETH: 3000 };
    feeds.answer = { ETH: 3001 };
    await ask("ETH");
    assets.answer = new Error("the host is gone");
    const answers = new Set<string>();
    for (let minute = 0; minute < 10; minute += 1) {
      answers.add(await ask("ETH"));
      await vi.advanceTimersByTimeAsync(59_000);
    }
    expect([...answers]).toEqual(["ASSETS 3000"]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await ask("ETH")).toBe("CHAINLINK 3001");
  });

  test("and if it fails too, the price is unavailable", async () => {
    const { assets, feeds, ask } = start();
    assets.answer = new Error("the host is gone");
    feeds.answer = new Error("the chain is gone");
    await expect(ask("ETH")).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message: "no price for ETH" });
  });
});

test("says when a source updated a price", async () => {
  const { assets, prices } = start();
  assets.answer = { ETH: 3000 };
  const table = await prices.getTable(["ETH"]);
  expect(table.getOrigin("ETH")).toEqual({ source: "ASSETS", updatedAtSeconds: ORIGIN_AT });
});

describe("two sources", () => {
  async function startWith(assetsUsd: number, feedsUsd: number) {
    const started = start();
    started.assets.answer = { ETH: assetsUsd };
    started.feeds.answer = { ETH: feedsUsd };
    await started.ask("ETH");
    await started.ask("ETH");
    await nextMinute(started.ask);
    return started;
  }

  async function nextMinute(ask: (symbol: string) => Promise<string>): Promise<string> {
    await vi.advanceTimersByTimeAsync(60_000);
    await ask("ETH").catch(() => "");
    // What was started in the background is there now.
    await vi.advanceTimersByTimeAsync(0);
    return ask("ETH");
  }

  test("are compared: the difference is relative to the second", async () => {
    const { prices } = await startWith(3000, 2900);
    expect(prices.compareSources().comparisons).toEqual([{ token: "ETH", difference: 3000 / 2900 - 1 }]);
  });

  test.each([4501, 1499])("of which the preferred one alone jumps to %d: it is not believed", async (usd) => {
    const { assets, ask, events, prices } = await startWith(3000, 3001);
    assets.answer = { ETH: usd };
    expect(await nextMinute(ask)).toBe("CHAINLINK 3001");
    expect(prices.compareSources().distrustedTokens).toEqual(["ETH"]);
    // However long it stays there.
    expect(await nextMinute(ask)).toBe("CHAINLINK 3001");
    expect(await nextMinute(ask)).toBe("CHAINLINK 3001");
    expect(events).toEqual(["ASSETS ETH true"]);
    assets.answer = { ETH: 3002 };
    expect(await nextMinute(ask)).toBe("ASSETS 3002");
    expect(events).toEqual(["ASSETS ETH true", "ASSETS ETH false"]);
  });

  test("of which the preferred one changes by half: it is believed", async () => {
    const { assets, ask, events } = await startWith(3000, 3001);
    assets.answer = { ETH: 4500 };
    expect(await nextMinute(ask)).toBe("ASSETS 4500");
    expect(events).toEqual([]);
  });

  test("that jump together are believed", async () => {
    const { assets, feeds, ask, prices } = await startWith(3000, 3001);
    assets.answer = { ETH: 6000 };
    feeds.answer = { ETH: 6010 };
    expect(await nextMinute(ask)).toBe("ASSETS 6000");
    expect(await nextMinute(ask)).toBe("ASSETS 6000");
    expect(prices.compareSources().distrustedTokens).toEqual([]);
  });

  test("that jump at the same time, but not to the same price: the preferred one is believed", async () => {
    const { assets, feeds, ask, events } = await startWith(3000, 3001);
    assets.answer = { ETH: 6000 };
    feeds.answer = { ETH: 9000 };
    expect(await nextMinute(ask)).toBe("ASSETS 6000");
    expect(events).toEqual([]);
  });

  test("of which the second follows the jump: the preferred one is believed again", async () => {
    const { assets, feeds, ask } = await startWith(3000, 3001);
    assets.answer = { ETH: 6000 };
    expect(await nextMinute(ask)).toBe("CHAINLINK 3001");
    feeds.answer = { ETH: 5990 };
    expect(await nextMinute(ask)).toBe("ASSETS 6000");
  });

  test("of which the second alone jumps: the preferred one is believed", async () => {
    const { feeds, ask, events } = await startWith(3000, 3001);
    feeds.answer = { ETH: 1 };
    expect(await nextMinute(ask)).toBe("ASSETS 3000");
    expect(events).toEqual([]);
  });

  test("of which the preferred one moves far over hours, without a jump: it is believed", async () => {
    const { assets, ask, events } = await startWith(3000, 3001);
    for (let usd = 3000; usd < 30_000; usd *= 1.4) {
      assets.answer = { ETH: usd };
      expect(await nextMinute(ask)).toBe(`ASSETS ${usd}`);
    }
    expect(events).toEqual([]);
  });

  test("of which the second fails after a jump: no price is better than a wrong one", async () => {
    const { assets, feeds, ask } = await startWith(3000, 3001);
    assets.answer = { ETH: 30 };
    await nextMinute(ask);
    feeds.answer = new Error("the chain is gone");
    await vi.advanceTimersByTimeAsync(600_000);
    await ask("ETH").catch(() => {});
    await expect(nextMinute(ask)).rejects.toThrow("no price for ETH");
  });
});
