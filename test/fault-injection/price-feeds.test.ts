import { beforeEach, describe, expect, test, vi } from "vitest";
import { PRICES_USD } from "../../devnet/assets-server.js";
import { getLocalChain } from "../../devnet/chain/local-chains.js";
import { sendTransaction } from "../../devnet/chain/transactions.js";
import { encodeWord, toFunctionSelector } from "../../src/chain/abi/abi-encoding.js";
import { FEED_CHAINS } from "../../src/prices/chainlink-feeds.js";
import { closeAfterTest } from "../support/close-after-test.js";
import { startGatewayForTest } from "../support/service/in-process-gateway.js";
import { useOwnNetwork } from "../support/service/own-network.js";
import { startRpcProxy } from "../support/stubs/rpc-proxy.js";

// What quotes do while a price feed is wrong. The network is of its own: feeds are changed on the chains.

const SENDER = `0x${"5e".repeat(20)}`;
const DECIMALS = 8;
const HOUR = 3600;
const { network, chains } = useOwnNetwork();

interface Round {
  readonly decimals?: number;
  readonly usd?: number;
  readonly startedAt?: number;
  /** 0: now. */
  readonly updatedAt?: number;
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

async function setRound(symbol: string, { decimals = DECIMALS, usd = 1, startedAt = 1, updatedAt = 0 }: Round) {
  const feedChain = FEED_CHAINS.find(({ feeds, sequencerFeed }) =>
    symbol === "sequencer" ? sequencerFeed !== undefined : feeds.some((feed) => feed.symbol === symbol),
  );
  const feed = feedChain?.feeds.find((candidate) => candidate.symbol === symbol);
  const to = feed?.address ?? feedChain?.sequencerFeed ?? "";
  const answer = BigInt(Math.round(usd * 10 ** decimals));
  const words = [BigInt(decimals), BigInt.asUintN(256, answer), BigInt(startedAt), BigInt(updatedAt)].map(encodeWord);
  const data = toFunctionSelector("setRound(uint8,int256,uint256,uint256)") + words.join("");
  await sendTransaction(getLocalChain(chains, feedChain?.slug ?? ""), { from: SENDER, to, data });
}

const buildQuotePath = (from: string, to: string, token: string): string =>
  `/v1/quote?amount=10000000000000000000&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5&view=FULL`;
const ETH_QUOTE = buildQuotePath("optimism", "arbitrum", "ETH");
const MAGIC_QUOTE = buildQuotePath("arbitrum", "ethereum", "MAGIC");

/** Quotes with a service that has just started. */
async function quote(path: string, sources: string) {
  const gateway = await startGatewayForTest({ ...network.environment, PRICE_SOURCES: sources });
  const { status, body } = await gateway.get(path);
  return { status, body: body as Record<string, unknown> & { details?: { prices: Record<string, unknown> } } };
}

beforeEach(async () => {
  await setRound("ETH", { usd: PRICES_USD.ETH ?? 0 });
  await setRound("MAGIC", { usd: PRICES_USD.MAGIC ?? 0 });
  await setRound("sequencer", { decimals: 0, usd: 0 });
});

const ETH_FAULTS: readonly (readonly [string, () => Round])[] = [
  ["was not updated within its heartbeat", () => ({ usd: 3000, updatedAt: nowSeconds() - 2 * HOUR })],
  ["is zero", () => ({ usd: 0 })],
  ["is negative", () => ({ usd: -3000 })],
  ["has other decimals", () => ({ usd: 3000, decimals: 6 })],
  ["is updated in the future", () => ({ usd: 3000, updatedAt: nowSeconds() + HOUR })],
  ["is implausible", () => ({ usd: 2e9 })],
];
const SEQUENCER_FAULTS: readonly (readonly [string, () => Round])[] = [
  ["is down", () => ({ decimals: 0, usd: 1 })],
  ["is up again for less than an hour", () => ({ decimals: 0, usd: 0, startedAt: nowSeconds() - HOUR / 2 })],
];

describe.each(ETH_FAULTS)("while the price of ether %s", (_, createRound) => {
  beforeEach(() => setRound("ETH", createRound()));

  test("nothing is quoted with it", async () => {
    const { status, body } = await quote(ETH_QUOTE, "chainlink");
    expect({ status, body }).toMatchObject({ status: 503, body: { message: "no price for ETH" } });
  });

  test("the next source has the price", async () => {
    const { status, body } = await quote(ETH_QUOTE, "chainlink,assets");
    expect(status).toBe(200);
    expect(body.details?.prices).toMatchObject({ tokenUsd: 3000, tokenSource: "ASSETS" });
  });
});

describe.each(SEQUENCER_FAULTS)("while the sequencer of arbitrum %s", (_, createRound) => {
  beforeEach(() => setRound("sequencer", createRound()));

  test("the feeds there give no price, and those of ethereum do", async () => {
    const magic = await quote(MAGIC_QUOTE, "chainlink");
    expect(magic).toMatchObject({ status: 503, body: { message: "no price for MAGIC" } });
    expect((await quote(ETH_QUOTE, "chainlink")).status).toBe(200);
  });
});

test("prices of the feeds are those of the chain, with their time", async () => {
  const updatedAt = nowSeconds() - HOUR / 2;
  await setRound("ETH", { usd: 3123.45678901, updatedAt });
  const { body } = await quote(MAGIC_QUOTE, "chainlink,assets");
  expect(body.details?.prices).toEqual({
    ...{ tokenUsd: 0.5, nativeUsd: 3123.45678901 },
    ...{ tokenSource: "CHAINLINK", tokenUpdatedAt: expect.any(Number) },
    ...{ nativeSource: "CHAINLINK", nativeUpdatedAt: updatedAt },
  });
});

test("the prices of a chain are there again soon after it responds", async () => {
  const proxy = closeAfterTest(await startRpcProxy(network.chains.ethereum?.url ?? ""));
  proxy.behaviour.errorStatus = 500;
  const environment = { ...network.environment, PRICE_SOURCES: "chainlink", RPC_URL_ETHEREUM: proxy.url };
  const gateway = await startGatewayForTest(environment);
  const { status, body } = await gateway.get(ETH_QUOTE);
  expect({ status, body }).toMatchObject({ status: 503, body: { message: "no price for ETH" } });
  proxy.behaviour.errorStatus = undefined;
  await vi.waitFor(async () => expect((await gateway.get(ETH_QUOTE)).status).toBe(200), { timeout: 60_000 });
});
