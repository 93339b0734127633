import { describe, expect, test } from "vitest";
import { FEED_CHAINS, type FeedChain } from "../../../src/prices/chainlink-feeds.js";
import { readFeeds } from "../../../src/prices/read-chainlink-feeds.js";
import { createFeedChainStub, type FeedRound } from "../../support/stubs/feed-chain-stub.js";

const NOW_SECONDS = 1_795_000_000;
const HOUR = 3600;
const MARGIN = 15 * 60;
const [ethereum, arbitrum] = FEED_CHAINS as [FeedChain, FeedChain];

function read(
  feedChain: FeedChain,
  rounds: Readonly<Record<string, FeedRound | undefined>>,
  blockSeconds = NOW_SECONDS,
) {
  const client = createFeedChainStub(feedChain, () => rounds, blockSeconds);
  const multicallAddress = `0x${"ca".repeat(20)}`;
  return readFeeds({ client, multicallAddress, feedChain }, new AbortController().signal);
}

const UP: FeedRound = { answer: 0n, startedAt: NOW_SECONDS - HOUR - 1 };
const ALL: Readonly<Record<string, FeedRound>> = {
  ETH: { answer: 3000_12345678n, updatedAt: NOW_SECONDS - 1000 },
  MATIC: { answer: 70000000n },
  DAI: { answer: 99990000n },
  USDC: { answer: 99985432n },
  USDT: { answer: 100010000n },
  SNX: { answer: 200000000n },
  SUSD: { answer: 98000000n },
  RETH: { answer: 1_100000000000000000n, updatedAt: NOW_SECONDS - 2000 },
};

test("reads all feeds of a chain in one call, with the decimals of each", async () => {
  const { timestamp, prices, updatedAt, refusals } = await read(ethereum, ALL);
  // The time of the block: whether the clock of this machine is right is not known.
  expect(timestamp).toBe(NOW_SECONDS * 1000);
  expect(Object.fromEntries(prices)).toEqual({
    ...{ ETH: 3000.12345678, MATIC: 0.7, DAI: 0.9999, USDC: 0.99985432, USDT: 1.0001, SNX: 2, SUSD: 0.98 },
    RETH: 1.1 * 3000.12345678,
  });
  expect(updatedAt.get("ETH")).toBe((NOW_SECONDS - 1000) * 1000);
  expect(refusals.size).toBe(0);
});

test("is as old as the older of the two feeds that a price is computed from", async () => {
  const rethFirst = await read(ethereum, ALL);
  expect(rethFirst.updatedAt.get("RETH")).toBe((NOW_SECONDS - 2000) * 1000);
  const ethFirst = await read(ethereum, { ...ALL, RETH: { answer: 10n ** 18n, updatedAt: NOW_SECONDS - 5 } });
  expect(ethFirst.updatedAt.get("RETH")).toBe((NOW_SECONDS - 1000) * 1000);
});

describe("a feed is refused", () => {
  test.each<[string, FeedRound | undefined, string | undefined]>([
    ["whose call reverts", undefined, "unreadable"],
    ["that answers zero", { answer: 0n }, "not_positive"],
    ["that answers a negative number", { answer: -1n }, "not_positive"],
    ["that answers the least number", { answer: -(1n << 255n) }, "not_positive"],
    ["with other decimals", { answer: 10n ** 18n, decimals: 18n }, "decimals"],
    ["without an update in its heartbeat", { answer: 1n, updatedAt: NOW_SECONDS - HOUR - MARGIN - 1 }, "stale"],
    ["but not a moment before", { answer: 10n ** 8n, updatedAt: NOW_SECONDS - HOUR - MARGIN }, undefined],
    ["that was never updated", { answer: 1n, updatedAt: 0 }, "stale"],
    ["with an update after its block", { answer: 1n, updatedAt: NOW_SECONDS + 1 }, "future"],
    ["with a price of a billion", { answer: 10n ** 17n }, "implausible"],
  ])("%s", async (_, dai, refusal) => {
    const { prices, refusals } = await read(ethereum, { ...ALL, DAI: dai });
    expect(refusals.get("DAI")).toBe(refusal);
    expect(prices.has("DAI")).toBe(refusal === undefined);
    expect(prices.get("ETH")).toBe(3000.12345678);
  });

  test("with that of ether, if it is quoted in ether", async () => {
    const { prices, refusals } = await read(ethereum, { ...ALL, ETH: { answer: -1n } });
    expect(Object.fromEntries(refusals)).toEqual({ ETH: "not_positive", RETH: "base" });
    expect(prices.has("DAI")).toBe(true);
  });
});

describe("the sequencer of a chain", () => {
  const magic = { MAGIC: { answer: 50000000n } };

  test("is up: its feeds give prices", async () => {
    expect((await read(arbitrum, { ...magic, sequencer: UP })).prices.get("MAGIC")).toBe(0.5);
  });

  test.each<[string, FeedRound | undefined]>([
    ["is down", { answer: 1n, startedAt: NOW_SECONDS - 10 * HOUR }],
    ["is up for less than an hour", { answer: 0n, startedAt: NOW_SECONDS - HOUR + 1 }],
    ["has no round yet", { answer: 0n, startedAt: 0 }],
    ["has an unknown state", { answer: 2n, startedAt: NOW_SECONDS - 10 * HOUR }],
    ["cannot be read", undefined],
  ])("%s: its feeds give none", async (_, sequencer) => {
    const { prices, refusals } = await read(arbitrum, { ...magic, sequencer });
    expect(prices.size).toBe(0);
    expect(Object.fromEntries(refusals)).toEqual({ MAGIC: "sequencer" });
  });
});
