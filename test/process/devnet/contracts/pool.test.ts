import * as sdk from "@hop-protocol/sdk/contracts";
import { type BigNumber, Contract, providers } from "ethers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { getContract } from "../../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../../devnet/chain/tokens.js";
import type { TransactionReceipt } from "../../../../devnet/chain/transactions.js";
import { poolOwner } from "../../../../devnet/deploy/accounts.js";
import { createTestChains, parseLog } from "./contract-chains.js";

const slug = "gnosis";
const sender = "0x00000000000000000000000000000000000aA001";
const farAway = 4_000_000_000;

const poolAddress = getContract("USDC.e", slug, "l2SaddleSwap");
const canonical = getContract("USDC.e", slug, "l2CanonicalToken");
const hToken = getContract("USDC.e", slug, "l2HopBridgeToken");
const poolAbi = sdk.Swap__factory.createInterface();
const erc20Abi = sdk.HopBridgeToken__factory.createInterface();

const chains = createTestChains([slug]);
let pool: ReturnType<typeof sdk.Swap__factory.connect>;

beforeAll(async () => {
  await chains.start();
  const { url, chainId } = chains.on(slug);
  pool = sdk.Swap__factory.connect(poolAddress, new providers.StaticJsonRpcProvider(url, chainId));
  await fundAccount(chains.bySlug, slug, "USDC.e", sender, 10_000_000_000n);
  const owner = getContract("USDC.e", slug, "l2Bridge");
  await act(owner, hToken, erc20Abi.encodeFunctionData("mint", [sender, 10_000_000_000n]));
  for (const token of [canonical, hToken]) await chains.approve(slug, sender, token, poolAddress);
});

afterAll(() => chains.stop());

test("a swap pays what was calculated, keeps the books and says so", async () => {
  const [held, other] = [await pool.getTokenBalance(0), await pool.getTokenBalance(1)];
  const quoted = await pool.calculateSwap(0, 1, 1_000_000);
  const before = await tokensOf(hToken, sender);
  const data = poolAbi.encodeFunctionData("swap", [0, 1, 1_000_000, quoted, farAway]);
  const { logs } = await act(sender, poolAddress, data);
  expect((await tokensOf(hToken, sender)).sub(before)).toEqual(quoted);
  expect(await pool.getTokenBalance(0)).toEqual(held.add(1_000_000));
  expect(await pool.getTokenBalance(1)).toEqual(other.sub(quoted));
  expect(await tokensOf(canonical, poolAddress)).toEqual(held.add(1_000_000));
  const { name, args } = parseLog(poolAbi, logs.at(-1));
  expect([name, ...args].map(String)).toEqual(["TokenSwap", sender, "1000000", `${quoted}`, "0", "1"]);
});

test("what a swap refuses", async () => {
  const attempt = (...values: [number, number, number | BigNumber, number | BigNumber, number]): Promise<unknown> =>
    chains.estimate(slug, sender, poolAddress, poolAbi.encodeFunctionData("swap", values));
  const quoted = await pool.calculateSwap(0, 1, 1_000_000);
  await expect(attempt(0, 1, 1_000_000, quoted, farAway)).resolves.toBeDefined();
  await expect(attempt(0, 1, 1_000_000, quoted.add(1), farAway)).rejects.toThrow(/below minDy/);
  await expect(attempt(0, 1, 1_000_000, 0, 1)).rejects.toThrow(/deadline passed/);
  await expect(attempt(0, 0, 1_000_000, 0, farAway)).rejects.toThrow(/no such pair/);
  await expect(attempt(0, 2, 1_000_000, 0, farAway)).rejects.toThrow(/no such pair/);
});

test("liquidity mints its share of the pool and leaves the others no poorer", async () => {
  const { lpToken } = await pool.swapStorage();
  const lp = sdk.HopBridgeToken__factory.connect(lpToken, pool.provider);
  const [supply, price] = [await lp.totalSupply(), await pool.getVirtualPrice()];
  const data = poolAbi.encodeFunctionData("addLiquidity", [[2_000_000_000, 0], 1, farAway]);
  await act(sender, poolAddress, data);
  const minted = (await lp.totalSupply()).sub(supply);
  expect(await lp.balanceOf(sender)).toEqual(minted);
  expect((await pool.getVirtualPrice()).gte(price)).toBe(true);
  // One-sided, so worth a little less than what went in, yet within two thousandths.
  const worth = minted
    .mul(await pool.getVirtualPrice())
    .div(10n ** 18n)
    .div(10n ** 12n)
    .toNumber();
  expect(worth).toBeGreaterThan(2_000_000_000 * 0.998);
  expect(worth).toBeLessThan(2_000_000_000 * 1.002);
});

test("its owner ramps the amplification in time", async () => {
  const ramp = new Contract(poolAddress, ["function rampA(uint256 futureA, uint256 futureTime)"]);
  const now = Math.floor(Date.now() / 1_000);
  const span = 20 * 86_400;
  const data = (a: number, end: number): string => ramp.interface.encodeFunctionData("rampA", [a, end]);
  const attempt = (from: string, a: number, end: number): Promise<unknown> =>
    chains.estimate(slug, from, poolAddress, data(a, end));
  await expect(attempt(sender, 300, now + span)).rejects.toThrow(/not the owner/);
  await expect(attempt(poolOwner, 401, now + span)).rejects.toThrow(/changes too much/);
  await expect(attempt(poolOwner, 300, now + 86_400)).rejects.toThrow(/too short/);

  await act(poolOwner, poolAddress, data(300, now + span));
  await chains.on(slug).rpc("evm_setNextBlockTimestamp", [now + span / 2]);
  await chains.on(slug).rpc("evm_mine", []);
  // Half of the way, but for the seconds between now and the ramp's block.
  expect((await pool.getAPrecise()).toNumber()).toBeCloseTo(25_000, -1);
  await chains.on(slug).rpc("evm_setNextBlockTimestamp", [now + span]);
  await chains.on(slug).rpc("evm_mine", []);
  expect((await pool.getA()).toNumber()).toBe(300);
});

function act(from: string, to: string, data: string): Promise<TransactionReceipt> {
  return chains.send(slug, { from, to, data });
}

function tokensOf(token: string, account: string): Promise<BigNumber> {
  return sdk.HopBridgeToken__factory.connect(token, pool.provider).balanceOf(account);
}
