import { utils } from "ethers";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { type Anvil, startAnvil } from "../../devnet/chain/anvil.js";
import { createJsonRpc, toHexQuantity } from "../../devnet/chain/json-rpc.js";
import { getChainId, getGasPrice, type LocalChain } from "../../devnet/chain/local-chains.js";
import { faucet, uniswapLiquidityProvider } from "../../devnet/deploy/accounts.js";
import { deployChain } from "../../devnet/deploy/deploy-chain.js";
import { findUniswapContracts } from "../../devnet/deploy/uniswap-contracts.js";
import type { ChainClient } from "../../src/chain/chain-client.js";
import { type Chain, getNetwork } from "../../src/hop/networks.js";
import { findUsdcSwapPool, type UsdcSwapPool } from "../../src/hop/usdc-swap-pools.js";
import { SwapRevertError } from "../../src/quotes/math/swap-revert-error.js";
import { getSqrtPriceAtTick, type UniswapV3Pool } from "../../src/quotes/math/uniswap-v3.js";
import { type ChainState, readChainState } from "../../src/quotes/state/chain-state.js";
import { createUniswapTickWindow, type UniswapTickWindow } from "../../src/quotes/state/uniswap-tick-window.js";
import { swapInSteps } from "../support/reference/uniswap-v3.js";

// The judge is Uniswap's own bytecode: its pool, asked through its quoter in the block in which the facts were read.

const abi = new utils.Interface([
  "function quoteExactInput(bytes path, uint256 amountIn) returns (uint256)",
  "function slot0() view returns (uint160 sqrtPriceX96, int24 tick)",
  "function liquidity() view returns (uint128)",
  "function tickBitmap(int16 place) view returns (uint256)",
  "function ticks(int24 tick) view returns (uint128 gross, int128 net)",
  "function fee() view returns (uint24)",
  "function provide(address pool, int24 lower, int24 upper, uint128 liquidity)",
  "function mint(address account, uint256 amount)",
  "function approve(address spender, uint256 amount)",
  "function exactInput((bytes path, address recipient, uint256 amountIn, uint256 amountOutMinimum) params)",
]);
const trader = utils.getAddress(utils.hexDataSlice(utils.id("trader"), 12));

interface Setting {
  readonly chain: Chain;
  readonly local: LocalChain;
  readonly swap: UsdcSwapPool;
  readonly zeroForOne: boolean;
}

function settingOf(slug: string, url: string): Setting {
  const chain = getNetwork("mainnet").chains.get(slug);
  const swap = findUsdcSwapPool(slug);
  if (chain === undefined || swap === undefined) throw new Error(`USDC.e is not swapped on ${slug}`);
  const local = { slug, chainId: chain.chainId, rpc: createJsonRpc(url) };
  return { chain, local, swap, zeroForOne: BigInt(swap.bridgedUsdc) < BigInt(swap.nativeUsdc) };
}

/** Reads as the service does; a window learns from it. */
function read({ chain, local, swap }: Setting, window: UniswapTickWindow): Promise<ChainState> {
  const client: ChainClient = {
    slug: chain.slug,
    send: local.rpc,
    sendBatch: (calls) =>
      Promise.all(calls.map(async ({ method, params }) => ({ result: await local.rpc(method, params) }))),
    getLogs: () => Promise.reject(new Error("nothing here searches logs")),
  };
  const needs = {
    pools: new Map(),
    uintCalls: new Map(),
    deliveries: new Map(),
    tickWindows: new Map([[swap.address, window]]),
    includesGasPrice: false,
  };
  return readChainState(client, chain, [needs], { readAt: 0, readAtUnixSeconds: 0 }, AbortSignal.timeout(20_000));
}

async function ask({ local }: Setting, to: string, method: string, values: readonly unknown[], block?: bigint) {
  const data = abi.encodeFunctionData(method, values);
  const at = block === undefined ? "latest" : toHexQuantity(block);
  return abi.decodeFunctionResult(method, (await local.rpc("eth_call", [{ to, data }, at])) as string);
}

/** Where the price is. */
async function priceOf(setting: Setting, block?: bigint): Promise<{ sqrtPriceX96: bigint; tick: number }> {
  const { sqrtPriceX96, tick } = await ask(setting, setting.swap.address, "slot0", [], block);
  return { sqrtPriceX96: sqrtPriceX96.toBigInt(), tick };
}

async function quoted(setting: Setting, amountIn: bigint, block: bigint): Promise<bigint | "reverts"> {
  const { swap } = setting;
  const path = utils.solidityPack(["address", "uint24", "address"], [swap.bridgedUsdc, swap.feePips, swap.nativeUsdc]);
  try {
    return (await ask(setting, swap.quoterAddress, "quoteExactInput", [path, amountIn], block))[0].toBigInt();
  } catch (error) {
    if (error instanceof Error && /revert|overflow/i.test(error.message)) return "reverts";
    throw error;
  }
}

function computed(facts: ChainState, { swap }: Setting, amountIn: bigint): bigint | "reverts" | undefined {
  try {
    return facts.findUniswapSwap(swap.address)?.(amountIn);
  } catch (error) {
    if (error instanceof SwapRevertError) return "reverts";
    throw error;
  }
}

/** The stops of the price, as amounts in, as far as five words reach. */
async function stopsOf(setting: Setting, block?: bigint): Promise<readonly bigint[]> {
  const { swap, zeroForOne } = setting;
  const poolSays = (method: string, ...values: unknown[]) => ask(setting, swap.address, method, values, block);
  const { sqrtPriceX96, tick } = await priceOf(setting, block);
  const [liquidity] = await poolSays("liquidity");
  const places = Array.from({ length: 5 }, (_, index) => (tick >> 8) + index - 2);
  const bitmapWords = new Map(
    await Promise.all(
      places.map(async (place) => [place, (await poolSays("tickBitmap", place))[0].toBigInt()] as const),
    ),
  );
  const initialised = [...bitmapWords].flatMap(([place, word]: readonly [number, bigint]) =>
    Array.from({ length: 256 }, (_, bit) => bit)
      .filter((bit) => (word >> BigInt(bit)) & 1n)
      .map((bit) => place * 256 + bit),
  );
  const nets = initialised.map(async (each) => [each, (await poolSays("ticks", each)).net.toBigInt()] as const);
  const pool: UniswapV3Pool = {
    sqrtPriceX96,
    tick,
    liquidity: liquidity.toBigInt(),
    feePips: swap.feePips,
    tickSpacing: 1,
    bitmapWords,
    liquidityNet: new Map(await Promise.all(nets)),
  };
  return swapInSteps(pool, zeroForOne, 1n << 200n).amountsInAtStops;
}

/** Every magnitude up to 2^47, about 140 million USDC, and both sides of every stop. */
function amountsOf(stops: readonly bigint[]): readonly bigint[] {
  const spread = Array.from({ length: 48 }, (_, bits) => 1n << BigInt(bits)).flatMap((power, index) =>
    [0n, 1n, 2n, 3n].map((part) => power + (power * (part * 97n + BigInt(index))) / 400n),
  );
  const beside = stops.flatMap((stop) => [stop - 1n, stop, stop + 1n]);
  return [...new Set([...spread, ...beside])].filter((amount) => amount > 0n);
}

/** Holds all amounts against the quoter. @returns the largest that was told without it */
async function compare(setting: Setting, facts: ChainState, amounts: readonly bigint[]): Promise<bigint> {
  let largest = 0n;
  const left = [...amounts];
  const work = async (): Promise<void> => {
    for (let amountIn = left.pop(); amountIn !== undefined; amountIn = left.pop()) {
      const ours = computed(facts, setting, amountIn);
      if (ours === undefined) continue;
      const theirs = await quoted(setting, amountIn, facts.block.number);
      expect(ours, `${amountIn} on ${setting.chain.slug}`).toBe(theirs);
      if (ours !== "reverts" && amountIn > largest) largest = amountIn;
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  return largest;
}

describe.each(["polygon", "optimism", "arbitrum", "base"])("USDC.e on %s", (slug) => {
  const setting = settingOf(slug, inject("network").chains[slug]?.url ?? "");

  test("is swapped in a pool of the fee that is taken for it", async () => {
    expect(BigInt((await ask(setting, setting.swap.address, "fee", []))[0])).toBe(setting.swap.feePips);
  });

  test("gives what the quoter says, at every magnitude and at every stop of the price", async () => {
    const window = createUniswapTickWindow(setting.swap);
    const first = await read(setting, window);
    const facts = await read(setting, window);
    const amounts = amountsOf(await stopsOf(setting, facts.block.number));
    expect(amounts.length).toBeGreaterThan(200);
    // What is usual is told from the first reading on, and then more than anybody has.
    expect(await compare(setting, first, amounts)).toBeGreaterThan(10n ** 11n);
    expect(await compare(setting, facts, amounts)).toBeGreaterThan(5n * 10n ** 12n);
  });

  test("is left to the quoter, or reverts as there, beyond what is known", async () => {
    const facts = await read(setting, createUniswapTickWindow(setting.swap));
    for (const amountIn of [1n << 60n, 1n << 100n, (1n << 255n) - 1n]) {
      expect(computed(facts, setting, amountIn)).toBeUndefined();
      expect(await quoted(setting, amountIn, facts.block.number)).toBeTypeOf("bigint");
    }
    for (const amountIn of [1n << 255n, (1n << 256n) - 1n]) {
      expect(computed(facts, setting, amountIn)).toBe("reverts");
      expect(await quoted(setting, amountIn, facts.block.number)).toBe("reverts");
    }
  });
});

// On chains of their own, as others use the shared ones at the same time: one for each direction and each quoter.
describe.each(["polygon", "base"])("a pool that moves on %s", (slug) => {
  let anvil: Anvil;
  let setting: Setting;
  let window: UniswapTickWindow;

  beforeAll(async () => {
    anvil = await startAnvil({ chainId: getChainId(slug), gasPrice: getGasPrice(slug) });
    await deployChain({ slug, rpc: anvil.rpc });
    setting = settingOf(slug, anvil.url);
    window = createUniswapTickWindow(setting.swap);
    for (const token of [setting.swap.bridgedUsdc, setting.swap.nativeUsdc]) {
      await send(faucet, token, "mint", trader, 10n ** 32n);
      await send(trader, token, "approve", findUniswapContracts(slug)?.router, 10n ** 32n);
    }
  });
  afterAll(() => anvil?.stop());

  async function send(from: string, to: string, method: string, ...values: unknown[]): Promise<void> {
    const { rpc } = setting.local;
    await rpc("anvil_setBalance", [from, toHexQuantity(10n ** 24n)]);
    // As much gas as it may take: a second later than the node's estimate, the pool writes more of its history.
    const fees = {
      gas: toHexQuantity(100_000_000n),
      maxFeePerGas: toHexQuantity(10n ** 13n),
      maxPriorityFeePerGas: "0x0",
    };
    const transaction = { from, to, data: abi.encodeFunctionData(method, values), ...fees };
    const { status } = (await rpc("eth_sendTransactionSync", [transaction])) as { status: string };
    if (status !== "0x1") throw new Error(`${method} reverted`);
  }
  const provide = (lower: number, upper: number, liquidity: bigint) =>
    send(uniswapLiquidityProvider, uniswapLiquidityProvider, "provide", setting.swap.address, lower, upper, liquidity);

  function trade(tokenIn: string, tokenOut: string, amountIn: bigint) {
    const path = utils.solidityPack(["address", "uint24", "address"], [tokenIn, setting.swap.feePips, tokenOut]);
    return send(trader, findUniswapContracts(slug)?.router ?? "", "exactInput", [path, trader, amountIn, 0n]);
  }

  /** After a change: nothing wrong from what is left of the knowledge before it, and from the next reading all again. */
  async function expectEqual(usual: bigint): Promise<void> {
    const stale = await read(setting, window);
    const amounts = amountsOf(await stopsOf(setting, stale.block.number));
    await compare(setting, stale, amounts);
    const facts = await read(setting, window);
    expect(await compare(setting, facts, amounts)).toBeGreaterThan(usual);
  }

  test("is told as it is after every move", { timeout: 180_000 }, async () => {
    const { bridgedUsdc, nativeUsdc } = setting.swap;
    const towards = setting.zeroForOne ? -1 : 1;
    await expectEqual(5n * 10n ** 12n);

    // Many ticks close together, on both sides of the price.
    for (let tick = -12; tick < 12; tick += 3) await provide(tick, tick + 2, 10n ** 14n + BigInt(tick));
    await expectEqual(5n * 10n ** 12n);

    // A swap that ends on a tick to the unit, where the pool's tick is not the price's own in one of the directions.
    const [, , third] = await stopsOf(setting);
    await trade(bridgedUsdc, nativeUsdc, third ?? 0n);
    const there = await priceOf(setting);
    expect(there.sqrtPriceX96).toBe(getSqrtPriceAtTick(setting.zeroForOne ? there.tick + 1 : there.tick));
    await expectEqual(5n * 10n ** 12n);

    // Back, and over to the other side.
    await trade(nativeUsdc, bridgedUsdc, 3n * 10n ** 12n);
    await expectEqual(5n * 10n ** 12n);

    // Far away, into other words, where there is hardly anything; then liquidity there.
    await trade(bridgedUsdc, nativeUsdc, 12n * 10n ** 12n);
    await expectEqual(10n ** 8n);
    const { tick } = await priceOf(setting);
    expect(tick * towards).toBeGreaterThan(100);
    await provide(tick - 1, tick + 2, 10n ** 13n);
    await provide(tick - 300, tick + 300, 10n ** 12n);
    await expectEqual(10n ** 9n);

    // To the very limit: nothing more can be swapped.
    await trade(bridgedUsdc, nativeUsdc, 10n ** 31n);
    const facts = await read(setting, window);
    const atLimit = [1n, 10n ** 6n, 10n ** 12n];
    await compare(setting, facts, atLimit);
    for (const amountIn of atLimit) expect(await quoted(setting, amountIn, facts.block.number)).toBe("reverts");
    const again = await read(setting, window);
    for (const amountIn of atLimit) expect(computed(again, setting, amountIn)).toBe("reverts");

    // And back from there.
    await trade(nativeUsdc, bridgedUsdc, 13n * 10n ** 12n);
    await expectEqual(10n ** 8n);
  });
});
