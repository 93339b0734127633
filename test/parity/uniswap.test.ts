import { utils } from "ethers";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { type Anvil, startAnvil } from "../../devnet/chain/anvil.js";
import { createJsonRpc, toHexQuantity } from "../../devnet/chain/json-rpc.js";
import { getChainId, getGasPrice, type LocalChain } from "../../devnet/chain/local-chains.js";
import { faucet, uniswapLiquidityProvider } from "../../devnet/deploy/accounts.js";
import { deployChain } from "../../devnet/deploy/deploy-chain.js";
import { findUniswapContracts } from "../../devnet/deploy/uniswap-contracts.js";
import type { ChainClient } from "../../src/chain/chain-client.js";
import { findUsdcSwapPool, type UsdcSwapPool } from "../../src/hop/cctp.js";
import { type Chain, getNetwork } from "../../src/hop/networks.js";
import { SwapRevertError } from "../../src/quotes/math/stable-swap.js";
import { getSqrtPriceAtTick, type UniswapV3Pool } from "../../src/quotes/math/uniswap-v3.js";
import type { ChainState } from "../../src/quotes/state/chain-state.js";
import { readChainState } from "../../src/quotes/state/read-chain-state.js";
import { EMPTY_READ_SET } from "../../src/quotes/state/read-set.js";
import { UniswapTickWindow } from "../../src/quotes/state/uniswap-tick-window.js";
import { swapInSteps } from "../support/reference/uniswap-v3.js";

// The reference is Uniswap's bytecode: the Quoter contract, called at the block in which the state was read.

const abi = new utils.Interface([
  "function quoteExactInput(bytes path, uint256 amountIn) returns (uint256)",
  "function slot0() view returns (uint160 sqrtPriceX96, int24 tick)",
  "function fee() view returns (uint24)",
  "function provide(address pool, int24 lower, int24 upper, uint128 liquidity)",
  "function mint(address account, uint256 amount)",
  "function approve(address spender, uint256 amount)",
  "function exactInput((bytes path, address recipient, uint256 amountIn, uint256 amountOutMinimum) params)",
]);
const trader = utils.getAddress(utils.hexDataSlice(utils.id("trader"), 12));

interface PoolSetup {
  readonly chain: Chain;
  readonly local: LocalChain;
  readonly swap: UsdcSwapPool;
  readonly zeroForOne: boolean;
}

function createPoolSetup(slug: string, url: string): PoolSetup {
  const chain = getNetwork("mainnet").chains.get(slug);
  const swap = findUsdcSwapPool(slug);
  if (chain === undefined || swap === undefined) throw new Error(`USDC.e is not swapped on ${slug}`);
  const local = { slug, chainId: chain.chainId, rpc: createJsonRpc(url) };
  return { chain, local, swap, zeroForOne: BigInt(swap.bridgedUsdc) < BigInt(swap.nativeUsdc) };
}

/** Reads the chain state like the service; updates the window. */
function readState({ chain, local, swap }: PoolSetup, window: UniswapTickWindow): Promise<ChainState> {
  const client: ChainClient = {
    slug: chain.slug,
    send: local.rpc,
    sendBatch: (calls) =>
      Promise.all(calls.map(async ({ method, params }) => ({ result: await local.rpc(method, params) }))),
    getLogs: () => Promise.reject(new Error("quotes do not read logs")),
  };
  const readSet = { ...EMPTY_READ_SET, contractReads: new Map([[swap.address, window]]) };
  return readChainState(client, chain, [readSet], {
    readAt: 0,
    readAtUnixSeconds: 0,
    signal: AbortSignal.timeout(20_000),
  });
}

async function callContract(
  { local }: PoolSetup,
  to: string,
  method: string,
  values: readonly unknown[],
  block?: bigint,
) {
  const data = abi.encodeFunctionData(method, values);
  const blockTag = block === undefined ? "latest" : toHexQuantity(block);
  return abi.decodeFunctionResult(method, (await local.rpc("eth_call", [{ to, data }, blockTag])) as string);
}

async function readPrice(setting: PoolSetup): Promise<{ sqrtPriceX96: bigint; tick: number }> {
  const { sqrtPriceX96, tick } = await callContract(setting, setting.swap.address, "slot0", []);
  return { sqrtPriceX96: sqrtPriceX96.toBigInt(), tick };
}

async function quoteOnChain(setting: PoolSetup, amountIn: bigint, block: bigint): Promise<bigint | "reverts"> {
  const { swap } = setting;
  const path = utils.solidityPack(["address", "uint24", "address"], [swap.bridgedUsdc, swap.feePips, swap.nativeUsdc]);
  try {
    return (await callContract(setting, swap.quoterAddress, "quoteExactInput", [path, amountIn], block))[0].toBigInt();
  } catch (error) {
    if (error instanceof Error && /revert|overflow/i.test(error.message)) return "reverts";
    throw error;
  }
}

function computeLocally(state: ChainState, { swap }: PoolSetup, amountIn: bigint): bigint | "reverts" | undefined {
  try {
    return state.findUniswapSwap(swap.address)?.(amountIn);
  } catch (error) {
    if (error instanceof SwapRevertError) return "reverts";
    throw error;
  }
}

/** Returns the input amounts at which the price reaches its stops, as far as the pool's ticks are known. */
function computeStopAmounts(state: ChainState, { swap, zeroForOne }: PoolSetup): readonly bigint[] {
  return swapInSteps(state.values.get(swap.address) as UniswapV3Pool, zeroForOne, 1n << 200n).amountsInAtStops;
}

/** Returns amounts of every magnitude up to 2^47 (about 140 million USDC), and those at and next to every stop. */
function getAmounts(stops: readonly bigint[]): readonly bigint[] {
  const spread = Array.from({ length: 48 }, (_, bits) => 1n << BigInt(bits)).flatMap((power, index) =>
    [0n, 1n, 2n, 3n].map((part) => power + (power * (part * 97n + BigInt(index))) / 400n),
  );
  const aroundStops = stops.flatMap((stop) => [stop - 1n, stop, stop + 1n]);
  return [...new Set([...spread, ...aroundStops])].filter((amount) => amount > 0n);
}

/** Compares local results with the Quoter contract. @returns the largest amount with a local result */
async function compareWithQuoter(setting: PoolSetup, state: ChainState, amounts: readonly bigint[]): Promise<bigint> {
  let largest = 0n;
  const queue = [...amounts];
  const processQueue = async (): Promise<void> => {
    for (let amountIn = queue.pop(); amountIn !== undefined; amountIn = queue.pop()) {
      const actual = computeLocally(state, setting, amountIn);
      if (actual === undefined) continue;
      const expected = await quoteOnChain(setting, amountIn, state.block.number);
      expect(actual, `${amountIn} on ${setting.chain.slug}`).toBe(expected);
      if (actual !== "reverts" && amountIn > largest) largest = amountIn;
    }
  };
  await Promise.all(Array.from({ length: 8 }, processQueue));
  return largest;
}

describe.each(["polygon", "optimism", "arbitrum", "base"])("USDC.e on %s", (slug) => {
  const setting = createPoolSetup(slug, inject("network").chains[slug]?.url ?? "");

  test("is swapped in a pool with the assumed fee", async () => {
    expect(BigInt((await callContract(setting, setting.swap.address, "fee", []))[0])).toBe(setting.swap.feePips);
  });

  test("equals the Quoter contract at every magnitude and at every stop of the price", async () => {
    const window = new UniswapTickWindow(setting.swap);
    const first = await readState(setting, window);
    const state = await readState(setting, window);
    const amounts = getAmounts(computeStopAmounts(state, setting));
    expect(amounts.length).toBeGreaterThan(200);
    // The first read covers usual amounts; the second one, more than anyone owns.
    expect(await compareWithQuoter(setting, first, amounts)).toBeGreaterThan(10n ** 11n);
    expect(await compareWithQuoter(setting, state, amounts)).toBeGreaterThan(5n * 10n ** 12n);
  });

  test("beyond the window, is left to the Quoter contract or reverts like it", async () => {
    const state = await readState(setting, new UniswapTickWindow(setting.swap));
    for (const amountIn of [1n << 60n, 1n << 100n, (1n << 255n) - 1n]) {
      expect(computeLocally(state, setting, amountIn)).toBeUndefined();
      expect(await quoteOnChain(setting, amountIn, state.block.number)).toBeTypeOf("bigint");
    }
    for (const amountIn of [1n << 255n, (1n << 256n) - 1n]) {
      expect(computeLocally(state, setting, amountIn)).toBe("reverts");
      expect(await quoteOnChain(setting, amountIn, state.block.number)).toBe("reverts");
    }
  });
});

// Private chains, since other tests use the shared ones: one for each direction and each Quoter contract.
describe.each(["polygon", "base"])("a changing pool on %s", (slug) => {
  let anvil: Anvil;
  let setting: PoolSetup;
  let window: UniswapTickWindow;

  beforeAll(async () => {
    anvil = await startAnvil({ chainId: getChainId(slug), gasPrice: getGasPrice(slug) });
    await deployChain({ slug, rpc: anvil.rpc });
    setting = createPoolSetup(slug, anvil.url);
    window = new UniswapTickWindow(setting.swap);
    for (const token of [setting.swap.bridgedUsdc, setting.swap.nativeUsdc]) {
      await send(faucet, token, "mint", trader, 10n ** 32n);
      await send(trader, token, "approve", findUniswapContracts(slug)?.router, 10n ** 32n);
    }
  });
  afterAll(() => anvil?.stop());

  async function send(from: string, to: string, method: string, ...values: unknown[]): Promise<void> {
    const { rpc } = setting.local;
    await rpc("anvil_setBalance", [from, toHexQuantity(10n ** 24n)]);
    // A fixed gas limit: one second after the node's estimate, the pool writes more of its oracle history.
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

  /** Expects no wrong results from the first read after a change, and full coverage from the second one. */
  async function expectEqual(minCovered: bigint): Promise<void> {
    const stale = await readState(setting, window);
    const state = await readState(setting, window);
    const amounts = getAmounts(computeStopAmounts(state, setting));
    await compareWithQuoter(setting, stale, amounts);
    expect(await compareWithQuoter(setting, state, amounts)).toBeGreaterThan(minCovered);
  }

  test("equals the Quoter contract after every change", async () => {
    const { bridgedUsdc, nativeUsdc } = setting.swap;
    const direction = setting.zeroForOne ? -1 : 1;
    await expectEqual(5n * 10n ** 12n);

    // Many adjacent ticks on both sides of the price.
    for (let tick = -12; tick < 12; tick += 3) await provide(tick, tick + 2, 10n ** 14n + BigInt(tick));
    await expectEqual(5n * 10n ** 12n);

    // A swap that ends exactly on a tick; in one direction, the pool's tick is then one below that of the price.
    const [, , third] = computeStopAmounts(await readState(setting, window), setting);
    await trade(bridgedUsdc, nativeUsdc, third ?? 0n);
    const price = await readPrice(setting);
    expect(price.sqrtPriceX96).toBe(getSqrtPriceAtTick(setting.zeroForOne ? price.tick + 1 : price.tick));
    await expectEqual(5n * 10n ** 12n);

    // Back to the other side of the initial price.
    await trade(nativeUsdc, bridgedUsdc, 3n * 10n ** 12n);
    await expectEqual(5n * 10n ** 12n);

    // Into other bitmap words with hardly any liquidity; then add some there.
    await trade(bridgedUsdc, nativeUsdc, 12n * 10n ** 12n);
    await expectEqual(10n ** 8n);
    const { tick } = await readPrice(setting);
    expect(tick * direction).toBeGreaterThan(100);
    await provide(tick - 1, tick + 2, 10n ** 13n);
    await provide(tick - 300, tick + 300, 10n ** 12n);
    await expectEqual(10n ** 9n);

    // To the price limit, where nothing can be swapped.
    await trade(bridgedUsdc, nativeUsdc, 10n ** 31n);
    const state = await readState(setting, window);
    const amountsAtLimit = [1n, 10n ** 6n, 10n ** 12n];
    await compareWithQuoter(setting, state, amountsAtLimit);
    for (const amountIn of amountsAtLimit)
      expect(await quoteOnChain(setting, amountIn, state.block.number)).toBe("reverts");
    const nextState = await readState(setting, window);
    for (const amountIn of amountsAtLimit) expect(computeLocally(nextState, setting, amountIn)).toBe("reverts");

    // And back from the limit.
    await trade(nativeUsdc, bridgedUsdc, 13n * 10n ** 12n);
    await expectEqual(10n ** 8n);
  });
});
