import { utils } from "ethers";
import fc from "fast-check";
import { Agent } from "undici";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Anvil, startAnvil } from "../../devnet/chain/anvil.js";
import { toHexQuantity } from "../../devnet/chain/json-rpc.js";
import { getChainId, getContract, getGasPrice } from "../../devnet/chain/local-chains.js";
import { faucet, poolOwner } from "../../devnet/deploy/accounts.js";
import { deployChain } from "../../devnet/deploy/deploy-chain.js";
import type { NetworkChainClients } from "../../src/chain/chains.js";
import { EndpointPool } from "../../src/chain/endpoints/endpoint-pool.js";
import { FeeSettingsSource } from "../../src/hop/fee-settings.js";
import { getNetwork } from "../../src/hop/networks.js";
import { findToken } from "../../src/hop/tokens.js";
import { ComparedTokenPrices } from "../../src/prices/token-prices.js";
import type { QuoteEngine } from "../../src/quotes/quote-engine.js";
import { SdkEngine } from "../../src/quotes/sdk-engine.js";
import { SnapshotEngine } from "../../src/quotes/snapshot-engine.js";
import type { QuoteRequest } from "../../src/quotes/state/quote-request.js";
import { AdaptiveLimiter } from "../../src/resilience/adaptive-limiter.js";

// Two private chains with Hop's contracts. The test trades in a pool and ramps its A; after each step, both engines quote
// new random amounts.

const abi = new utils.Interface([
  "function mint(address account, uint256 amount)",
  "function approve(address spender, uint256 amount)",
  "function swap(uint8 from, uint8 to, uint256 dx, uint256 minDy, uint256 deadline)",
  "function rampA(uint256 futureA, uint256 futureTime)",
  "function getA() view returns (uint256)",
  "function getAPrecise() view returns (uint256)",
]);
const trader = utils.getAddress(utils.hexDataSlice(utils.id("trader"), 12));
const DAY = 24 * 3600;

const mainnet = getNetwork("mainnet");
const slugs = ["polygon", "arbitrum"] as const;
const anvils = new Map<string, Anvil>();
const closing = new AbortController();
const dispatcher = new Agent();
let access: NetworkChainClients;
let engines: readonly [QuoteEngine, QuoteEngine];

const getAnvil = (slug: string): Anvil => {
  const anvil = anvils.get(slug);
  if (anvil === undefined) throw new Error(`no chain ${slug}`);
  return anvil;
};

beforeAll(async () => {
  await Promise.all(
    slugs.map(async (slug) => {
      const anvil = await startAnvil({ chainId: getChainId(slug), gasPrice: getGasPrice(slug) });
      anvils.set(slug, anvil);
      await deployChain({ slug, rpc: anvil.rpc });
      // Each block is one second later than the previous one, whatever the clock is: A depends on the block time.
      await anvil.rpc("anvil_setBlockTimestampInterval", [1]);
      await send(slug, faucet, getContract("USDT", slug, "l2CanonicalToken"), "mint", trader, 10n ** 15n);
      await send(slug, trader, getContract("USDT", slug, "l2CanonicalToken"), "approve", poolOn(slug), 10n ** 15n);
    }),
  );
  const clients = new Map(
    slugs.map((slug) => {
      const { url } = getAnvil(slug);
      const endpoint = { slug, chainId: getChainId(slug), urls: [url], dispatcher, maxBytes: 1e6 };
      const { client } = new EndpointPool({ ...endpoint, onFailure: () => {}, closing: closing.signal });
      return [slug as string, client] as const;
    }),
  );
  access = {
    hasCustomEndpoint: () => true,
    getClient(slug) {
      const client = clients.get(slug);
      if (client === undefined) throw new Error(`unexpected chain ${slug}`);
      return client;
    },
  };
  const prices = new Map([
    ["USDT", 0.9995],
    ["MATIC", 0.43],
    ["ETH", 3210.5],
  ]);
  const deps = {
    settings: new FeeSettingsSource(undefined),
    prices: new ComparedTokenPrices({ fixedPricesUsd: prices, sources: [] }),
    attestations: undefined,
    chains: () => access,
  };
  const clocks = { now: () => Date.now(), monotonicNow: () => performance.now() };
  engines = [
    new SnapshotEngine({ ...deps, maxAgeMs: undefined, maxStaleMs: 30_000, clocks }),
    new SdkEngine({ ...deps, limiter: new AdaptiveLimiter(Date.now) }),
  ];
  // The estimated calldata contains the time in seconds.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
});

afterAll(async () => {
  vi.useRealTimers();
  closing.abort();
  await Promise.all([dispatcher.destroy(), ...[...anvils.values()].map((anvil) => anvil.stop())]);
});

const poolOn = (slug: string): string => getContract("USDT", slug, "l2SaddleSwap");

async function send(slug: string, from: string, to: string, method: string, ...values: unknown[]): Promise<void> {
  const { rpc } = getAnvil(slug);
  await rpc("anvil_impersonateAccount", [from]);
  await rpc("anvil_setBalance", [from, toHexQuantity(10n ** 24n)]);
  const fees = { gas: toHexQuantity(5_000_000n), maxFeePerGas: toHexQuantity(10n ** 13n), maxPriorityFeePerGas: "0x0" };
  const transaction = { from, to, data: abi.encodeFunctionData(method, values), ...fees };
  const { status } = (await rpc("eth_sendTransactionSync", [transaction])) as { status: string };
  if (status !== "0x1") throw new Error(`${method} reverted`);
}

async function read(slug: string, method: string): Promise<bigint> {
  const data = abi.encodeFunctionData(method, []);
  return BigInt((await getAnvil(slug).rpc("eth_call", [{ to: poolOn(slug), data }, "latest"])) as string);
}

/** Returns the time of a chain's last block in Unix seconds. */
async function getBlockTime(slug: string): Promise<number> {
  const block = (await getAnvil(slug).rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
  return Number(block.timestamp);
}

async function advanceTime(slug: string, seconds: number): Promise<void> {
  await getAnvil(slug).rpc("evm_setNextBlockTimestamp", [(await getBlockTime(slug)) + seconds]);
  await getAnvil(slug).rpc("evm_mine", []);
}

/** Waits until the nodes return the initial gas price again: right after a block, it differs for a moment. */
async function waitForGasPrice(): Promise<void> {
  for (const slug of slugs) {
    const price = async (): Promise<bigint> => BigInt((await getAnvil(slug).rpc("eth_gasPrice", [])) as string);
    await vi.waitUntil(async () => (await price()) === getGasPrice(slug), { timeout: 60_000, interval: 20 });
  }
}

function request(from: string, to: string, amountIn: bigint, slippagePercent: number): QuoteRequest {
  const [token, source, destination] = [findToken(mainnet, "USDT"), mainnet.chains.get(from), mainnet.chains.get(to)];
  if (!token || !source || !destination) throw new Error("no such route");
  return { network: "mainnet", token, source, destination, amountIn, slippagePercent };
}

/** Expects equal quotes of both engines for several amounts; returns the first. */
async function compareEngines(): Promise<string> {
  await waitForGasPrice();
  const anyAmount = fc.integer({ min: 0, max: 44 }).chain((bits) => fc.bigInt({ min: 1n, max: 1n << BigInt(bits) }));
  const amounts = [25_000_000n, ...fc.sample(anyAmount, 5)];
  const quotes = await Promise.all(
    amounts.flatMap((amount) =>
      [slugs, [...slugs].reverse()].map(async ([from = "", to = ""]) => {
        const quoteRequest = request(from, to, amount, 0.5);
        const [actual, expected] = await Promise.all(
          engines.map((engine) =>
            engine
              .quoteWithCustomEndpoints(quoteRequest, access, { caller: "a", signal: closing.signal })
              .catch((error: Error) => error.message),
          ),
        );
        expect({ from, amount, quote: actual }).toEqual({ from, amount, quote: expected });
        return actual;
      }),
    ),
  );
  return JSON.stringify(quotes[0], (_, value) => (typeof value === "bigint" ? String(value) : value));
}

test("quotes stay equal to the SDK's while a pool and its A change", async () => {
  const results = [await compareEngines()];

  await send("polygon", trader, poolOn("polygon"), "swap", 0, 1, 400_000n * 10n ** 6n, 0, 10n ** 12n);
  results.push(await compareEngines());

  await advanceTime("polygon", 2 * DAY);
  const before = await read("polygon", "getAPrecise");
  await send(
    "polygon",
    poolOwner,
    poolOn("polygon"),
    "rampA",
    (await read("polygon", "getA")) * 2n,
    (await getBlockTime("polygon")) + 15 * DAY,
  );
  for (let step = 0; step < 4; step++) {
    await advanceTime("polygon", 3 * DAY + 12_345);
    results.push(await compareEngines());
  }
  expect(await read("polygon", "getAPrecise")).toBeGreaterThan(before);

  // Every step changed the quote.
  expect(new Set(results).size).toBe(results.length);
});
