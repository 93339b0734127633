import { beforeEach, describe, expect, test, vi } from "vitest";
import { type PriceDocument, PriceSource } from "../../../src/prices/price-source.js";
import { ComparedTokenPrices } from "../../../src/prices/token-prices.js";
import { StaleWhileRevalidateCache } from "../../../src/resilience/stale-while-revalidate.js";
import { settle } from "../../support/steady-timers.js";

const NOW = 1_795_000_000_000;
const clock = () => Date.now();
const ORIGIN_AT = NOW / 1000;

/** A source whose host answers what the test sets: prices, an error, or nothing. */
function createStub(name: PriceSource["name"], symbols?: readonly string[]) {
  const host = { answer: undefined as Record<string, number> | Error | undefined, delayMs: 0, loads: 0 };
  const cache = new StaleWhileRevalidateCache<PriceDocument>({
    load: async () => {
      host.loads += 1;
      if (host.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, host.delayMs));
      if (host.answer instanceof Error) throw host.answer;
      if (host.answer === undefined) return new Promise(() => {});
      return { timestamp: clock(), prices: new Map(Object.entries(host.answer)) };
    },
    now: clock,
    ...{ freshMs: 55_000, staleMs: 300_000, errorTtlMs: 1_000 },
    onError: () => {},
  });
  const known = symbols && { symbols: new Set(symbols) };
  return { host, cache, source: new PriceSource({ name, ...known, cache, now: clock, monotonicNow: clock }) };
}

function start(fixed: Record<string, number> = {}) {
  const assets = createStub("ASSETS");
  const feeds = createStub("CHAINLINK", ["ETH", "DAI"]);
  const events: string[] = [];
  const prices = new ComparedTokenPrices({
    fixedPricesUsd: new Map(Object.entries(fixed)),
    sources: [assets.source, feeds.source],
    onDistrust: ({ source, token, isDistrusted, otherPrice }) =>
      events.push(`${source} ${token} ${isDistrusted} ${otherPrice}`),
  });
  /** Asks like a quote, and waits for what it waits for. */
  const ask = async (symbol: string): Promise<string> => {
    const table = prices.peekTable([symbol]) ?? (await prices.getTable([symbol]));
    return `${table.getOrigin(symbol).source} ${table.getUsdPrice(symbol)}`;
  };
  return { assets: assets.host, assetsCache: assets.cache, feeds: feeds.host, prices, ask, events };
}

function startAgreeing() {
  const started = start();
  started.assets.answer = { ETH: 3000 };
  started.feeds.answer = { ETH: 3001 };
  return started;
}

/** The preferred source fails, so that the next one is read. */
function startFailing() {
  const started = startAgreeing();
  started.assets.answer = new Error("the host is gone");
  return started;
}

beforeEach(() => void vi.useFakeTimers({ now: NOW }));

describe("while the preferred source has the prices", () => {
  test("the next one is read in the background, once a minute and not in the first minute", async () => {
    const { feeds, ask } = startAgreeing();
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
    const { assets, ask } = startFailing();
    await ask("ETH");
    assets.answer = { ETH: 3000 };
    await vi.advanceTimersByTimeAsync(1_000);
    await ask("ETH");
    await vi.advanceTimersByTimeAsync(0);
    expect(await ask("ETH")).toBe("ASSETS 3000");
  });

  test("until the preferred one has answered late: it is awaited again", async () => {
    const { assets, feeds, ask } = start();
    Object.assign(assets, { answer: { ETH: 3000, HOP: 0.02 }, delayMs: 2_000 });
    feeds.answer = { ETH: 3001 };
    expect(await settle(ask("ETH"), 2_000)).toBe("CHAINLINK 3001");
    await vi.advanceTimersByTimeAsync(600_000);
    expect(await settle(ask("HOP"), 2_000)).toBe("ASSETS 0.02");
  });

  test("if the preferred one's document expires", async () => {
    const { assets, ask } = startAgreeing();
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
    const { feeds, ask } = startFailing();
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

  type Minutes = readonly (readonly [assetsUsd: number, feedsUsd: number, answer: string])[];
  const rise = Array.from({ length: 7 }, (_, hour) => 3000 * 1.4 ** hour);

  test.each<[string, Minutes]>([
    ["the preferred one changes by half", [[4500, 3001, "ASSETS 4500"]]],
    ["both jump at the same time, but not to the same price", [[6000, 9000, "ASSETS 6000"]]],
    ["the second alone jumps", [[3000, 1, "ASSETS 3000"]]],
    ["the preferred one moves far over hours, without a jump", rise.map((usd) => [usd, 3001, `ASSETS ${usd}`])],
  ])("of which %s: the preferred one is believed", async (_, minutes) => {
    const { assets, feeds, ask, events } = await startWith(3000, 3001);
    for (const [assetsUsd, feedsUsd, answer] of minutes) {
      assets.answer = { ETH: assetsUsd };
      feeds.answer = { ETH: feedsUsd };
      expect(await nextMinute(ask)).toBe(answer);
    }
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

  test("of which the second follows the jump: the preferred one is believed again", async () => {
    const { assets, feeds, ask } = await startWith(3000, 3001);
    assets.answer = { ETH: 6000 };
    expect(await nextMinute(ask)).toBe("CHAINLINK 3001");
    feeds.answer = { ETH: 5990 };
    expect(await nextMinute(ask)).toBe("ASSETS 6000");
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

describe("a jump of the preferred source before the next one was read", () => {
  /** Reads the preferred source twice: the price jumps. Returns what is asked then. */
  async function jumpTo(usd: number, feeds: Record<string, number> | Error | undefined, delayMs = 800) {
    const started = start();
    started.assets.answer = { ETH: 3000 };
    Object.assign(started.feeds, { answer: feeds, delayMs });
    expect(await started.ask("ETH")).toBe("ASSETS 3000");
    await vi.advanceTimersByTimeAsync(50_000);
    const held = started.prices.peekTable(["ETH"]);
    started.assets.answer = { ETH: usd };
    await vi.advanceTimersByTimeAsync(10_000);
    await started.ask("ETH");
    await vi.advanceTimersByTimeAsync(0);
    return { ...started, held };
  }

  test("waits for that one, and is not believed if it differs", async () => {
    const { ask, held, prices, events } = await jumpTo(1200, { ETH: 3001 });
    const answers = ["peeked", "got"].map(() => ask("ETH"));
    answers.push(prices.getTable(["ETH"]).then((table) => `CHAINLINK ${table.getUsdPrice("ETH")}`));
    // A quote in progress keeps the price before.
    expect(held?.getUsdPrice("ETH")).toBe(3000);
    expect(prices.compareSources().distrustedTokens).toEqual(["ETH"]);
    await vi.advanceTimersByTimeAsync(800);
    expect(await Promise.all(answers)).toEqual(["CHAINLINK 3001", "CHAINLINK 3001", "CHAINLINK 3001"]);
    expect(events).toEqual(["ASSETS ETH true undefined"]);
  });

  test("is seen by whoever asks first", async () => {
    const { assets, feeds, prices } = start();
    assets.answer = { ETH: 3000 };
    Object.assign(feeds, { answer: { ETH: 3001 }, delayMs: 800 });
    await prices.getUsdPrice("ETH");
    assets.answer = { ETH: 1200 };
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await prices.getUsdPrice("ETH")).toBe(3000);
    await vi.advanceTimersByTimeAsync(0);
    expect(await settle(prices.getUsdPrice("ETH"), 800)).toBe(3001);
  });

  test("is seen although probes and metrics read two documents before anybody asks", async () => {
    const { assets, assetsCache, ask, prices } = startAgreeing();
    await ask("ETH");
    assets.answer = { ETH: 30 };
    for (let minute = 0; minute < 2; minute += 1) {
      await vi.advanceTimersByTimeAsync(60_000);
      assetsCache.peek();
      await vi.advanceTimersByTimeAsync(0);
      prices.compareSources();
    }
    expect(await ask("ETH")).toBe("CHAINLINK 3001");
  });

  test("is seen although nobody asks between the document that came too late and the next one", async () => {
    const { assets, assetsCache, ask } = startAgreeing();
    await ask("ETH");
    await vi.advanceTimersByTimeAsync(360_000);
    Object.assign(assets, { answer: { ETH: 30 }, delayMs: 2_000 });
    expect(await settle(ask("ETH"), 2_000)).toBe("ASSETS 3000");
    await vi.advanceTimersByTimeAsync(60_000);
    assetsCache.peek();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await ask("ETH")).toBe("CHAINLINK 3001");
  });

  test.each([
    ["agrees", { ETH: 1201 }, "1201"],
    ["was read and has no price", { DAI: 1 }, "undefined"],
  ])("is believed once that one %s", async (_, feeds, otherPrice) => {
    const { ask, events, prices } = await jumpTo(1200, feeds);
    expect(await settle(ask("ETH"), 800)).toBe("ASSETS 1200");
    expect(events).toEqual(["ASSETS ETH true undefined", `ASSETS ETH false ${otherPrice}`]);
    expect(prices.compareSources().distrustedTokens).toEqual([]);
  });

  test.each([
    ["fails", new Error("the chain is gone"), 0],
    ["does not answer", undefined, 0],
  ])("is an error while that one %s, also after the next document", async (_, feeds, delayMs) => {
    const { ask } = await jumpTo(1200, feeds, delayMs);
    for (let minute = 0; minute < 3; minute += 1) {
      const refused = expect(ask("ETH")).rejects.toMatchObject({
        reason: "UPSTREAM_UNAVAILABLE",
        message: "no price for ETH: it jumped in one source, and no other confirms it",
      });
      await vi.advanceTimersByTimeAsync(8_000);
      await refused;
      await vi.advanceTimersByTimeAsync(52_000);
    }
  });

  /** Asks at each minute after the jump, and waits; returns the minutes that had a price. */
  async function askEachMinute(ask: (symbol: string) => Promise<string>, minutes: number): Promise<number[]> {
    const priced: number[] = [];
    for (let minute = 1; minute <= minutes; minute += 1) {
      await vi.advanceTimersByTimeAsync(60_000);
      await ask("ETH").catch(() => "");
      await vi.advanceTimersByTimeAsync(0);
      await ask("ETH").then(
        () => priced.push(minute),
        () => {},
      );
    }
    return priced;
  }

  test("is believed once its price has stayed for ten minutes while that one fails", async () => {
    const { ask, events } = await jumpTo(1200, new Error("the chain is gone"), 0);
    expect(await askEachMinute(ask, 11)).toEqual([10, 11]);
    expect(await ask("ETH")).toBe("ASSETS 1200");
    expect(events).toEqual(["ASSETS ETH true undefined", "ASSETS ETH false undefined"]);
  });

  test("has to stay for ten minutes more after another jump", async () => {
    const { assets, ask } = await jumpTo(1200, new Error("the chain is gone"), 0);
    expect(await askEachMinute(ask, 5)).toEqual([]);
    assets.answer = { ETH: 9000 };
    expect(await askEachMinute(ask, 11)).toEqual([11]);
  });

  test("ends when the price is back", async () => {
    const { assets, ask, prices } = await jumpTo(1200, new Error("the chain is gone"), 0);
    assets.answer = { ETH: 2900 };
    await vi.advanceTimersByTimeAsync(60_000);
    await ask("ETH").catch(() => {});
    await vi.advanceTimersByTimeAsync(0);
    expect(await ask("ETH")).toBe("ASSETS 2900");
    expect(prices.compareSources().distrustedTokens).toEqual([]);
  });

  test("is believed of a token that no other source can have", async () => {
    const { assets, ask } = start();
    assets.answer = { HOP: 0.02 };
    await ask("HOP");
    assets.answer = { HOP: 0.05 };
    await vi.advanceTimersByTimeAsync(60_000);
    await ask("HOP");
    await vi.advanceTimersByTimeAsync(0);
    expect(await ask("HOP")).toBe("ASSETS 0.05");
  });
});
