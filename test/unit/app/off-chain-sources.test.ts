import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OffChainSources } from "../../../src/app/off-chain-sources.js";
import { loadConfig } from "../../../src/config/config.js";
import { createLogger } from "../../../src/observability/log.js";
import { FEED_CHAINS, type FeedChain } from "../../../src/prices/chainlink-feeds.js";
import { createFeedChainStub } from "../../support/stubs/feed-chain-stub.js";
import { createSharedStoreStub, type SharedStoreStub } from "../../support/stubs/shared-store.js";

const NOW = 1_795_000_000_000;
const [ethereum, arbitrum] = FEED_CHAINS as [FeedChain, FeedChain];
let store: SharedStoreStub;
let reads: string[];
let isSequencerDown: boolean;
const started: OffChainSources[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  store = createSharedStoreStub();
  reads = [];
  isSequencerDown = false;
});
afterEach(async () => {
  for (const sources of started.splice(0)) await sources.close();
  vi.useRealTimers();
});

/** Starts a process whose only source of prices are the feeds. */
function start(): OffChainSources {
  const getClient = (slug: string) => {
    const feedChain = slug === "ethereum" ? ethereum : arbitrum;
    const seconds = Math.floor(Date.now() / 1000);
    const getRounds = () => {
      reads.push(slug);
      // The price tells which read it comes from.
      const answer = BigInt(100 + reads.length) * 10n ** 8n;
      const sequencer = { answer: isSequencerDown ? 1n : 0n, startedAt: seconds - 100_000 };
      return { ETH: { answer, updatedAt: seconds - reads.length }, MAGIC: { answer: 5n * 10n ** 7n }, sequencer };
    };
    return createFeedChainStub(feedChain, getRounds, seconds);
  };
  const clock = () => Date.now();
  const sources = new OffChainSources({
    config: loadConfig({ ASSETS_URL: "off", EXPLORER_API_URL: "off", ATTESTATION_API_URL: "off" }),
    chains: { forNetwork: () => ({ getClient, hasCustomEndpoint: () => false }) },
    logger: createLogger("silent", { write: () => {} }),
    clocks: { now: clock, monotonicNow: clock },
    sharedCache: store.start(),
  });
  started.push(sources);
  return sources;
}

test("feeds are not read at the start, nor by probes", async () => {
  const sources = start();
  sources.warmUp();
  for (let minute = 0; minute < 10; minute += 1) {
    sources.refreshStale();
    await vi.advanceTimersByTimeAsync(60_000);
  }
  expect(reads).toEqual([]);
  expect(sources.health()).toMatchObject({ prices: undefined, chainlink_ethereum: { state: "unknown" } });
});

test("one process reads the feeds of a chain for all, about once a minute, and those of another when they are needed", async () => {
  const all = [start(), start(), start()];
  const seconds = 300;
  for (let second = 0; second < seconds; second += 1) {
    for (const { prices } of all) {
      const table = prices.peekTable(["ETH"]) ?? prices.getTable(["ETH"]);
      await vi.advanceTimersByTimeAsync(0);
      await table;
    }
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(reads.every((slug) => slug === "ethereum")).toBe(true);
  expect(reads.length).toBeGreaterThanOrEqual(5);
  expect(reads.length).toBeLessThanOrEqual(7);
  const tables = all.map(({ prices }) => prices.peekTable(["ETH"]));
  expect(new Set(tables.map((table) => table?.getUsdPrice("ETH"))).size).toBe(1);
  expect(new Set(tables.map((table) => table?.getOrigin("ETH").updatedAtSeconds)).size).toBe(1);

  const magic = await all[0]?.prices.getTable(["MAGIC"]);
  expect(magic?.getUsdPrice("MAGIC")).toBe(0.5);
  expect(reads.filter((slug) => slug === "arbitrum")).toHaveLength(1);
});

test("feeds that give no price are listed", async () => {
  const sources = start();
  await sources.prices.getTable(["ETH"]);
  expect(sources.listRefusedFeeds()).toContainEqual({ token: "SNX", reason: "unreadable" });
  expect(sources.listRefusedFeeds()).toContainEqual({ token: "RETH", reason: "unreadable" });
  expect(sources.health().chainlink_ethereum).toMatchObject({ state: "ok" });
});

test("the only feed of a chain is listed while it gives no price", async () => {
  const sources = start();
  isSequencerDown = true;
  await sources.prices.getTable(["MAGIC"]);
  expect(sources.listRefusedFeeds()).toEqual([{ token: "MAGIC", reason: "sequencer" }]);
  expect(sources.health().chainlink_arbitrum).toMatchObject({ state: "failing" });
});
