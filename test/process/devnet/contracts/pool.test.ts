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
const DEADLINE = 4_000_000_000;

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
  await sendFrom(owner, hToken, erc20Abi.encodeFunctionData("mint", [sender, 10_000_000_000n]));
  for (const token of [canonical, hToken]) await chains.approve(slug, sender, token, poolAddress);
});

afterAll(() => chains.stop());

test("a swap pays the calculated amount, updates the balances and emits TokenSwap", async () => {
  const [balance0, balance1] = [await pool.getTokenBalance(0), await pool.getTokenBalance(1)];
  const quoted = await pool.calculateSwap(0, 1, 1_000_000);
  const before = await balanceOf(hToken, sender);
  const data = poolAbi.encodeFunctionData("swap", [0, 1, 1_000_000, quoted, DEADLINE]);
  const { logs } = await sendFrom(sender, poolAddress, data);
  expect((await balanceOf(hToken, sender)).sub(before)).toEqual(quoted);
  expect(await pool.getTokenBalance(0)).toEqual(balance0.add(1_000_000));
  expect(await pool.getTokenBalance(1)).toEqual(balance1.sub(quoted));
  expect(await balanceOf(canonical, poolAddress)).toEqual(balance0.add(1_000_000));
  const { name, args } = parseLog(poolAbi, logs.at(-1));
  expect([name, ...args].map(String)).toEqual(["TokenSwap", sender, "1000000", `${quoted}`, "0", "1"]);
});

test("a swap reverts below minDy, after its deadline and for an invalid pair", async () => {
  const estimate = (...values: [number, number, number | BigNumber, number | BigNumber, number]): Promise<unknown> =>
    chains.estimate(slug, sender, poolAddress, poolAbi.encodeFunctionData("swap", values));
  const quoted = await pool.calculateSwap(0, 1, 1_000_000);
  await expect(estimate(0, 1, 1_000_000, quoted, DEADLINE)).resolves.toBeDefined();
  await expect(estimate(0, 1, 1_000_000, quoted.add(1), DEADLINE)).rejects.toThrow(/below minDy/);
  await expect(estimate(0, 1, 1_000_000, 0, 1)).rejects.toThrow(/deadline passed/);
  await expect(estimate(0, 0, 1_000_000, 0, DEADLINE)).rejects.toThrow(/no such pair/);
  await expect(estimate(0, 2, 1_000_000, 0, DEADLINE)).rejects.toThrow(/no such pair/);
});

test("adding liquidity mints LP tokens and does not lower the virtual price", async () => {
  const { lpToken } = await pool.swapStorage();
  const lp = sdk.HopBridgeToken__factory.connect(lpToken, pool.provider);
  const [supply, price] = [await lp.totalSupply(), await pool.getVirtualPrice()];
  const data = poolAbi.encodeFunctionData("addLiquidity", [[2_000_000_000, 0], 1, DEADLINE]);
  await sendFrom(sender, poolAddress, data);
  const minted = (await lp.totalSupply()).sub(supply);
  expect(await lp.balanceOf(sender)).toEqual(minted);
  expect((await pool.getVirtualPrice()).gte(price)).toBe(true);
  // A one-sided deposit is worth slightly less than the deposited amount, within 0.2 %.
  const value = minted
    .mul(await pool.getVirtualPrice())
    .div(10n ** 18n)
    .div(10n ** 12n)
    .toNumber();
  expect(value).toBeGreaterThan(2_000_000_000 * 0.998);
  expect(value).toBeLessThan(2_000_000_000 * 1.002);
});

test("the owner can ramp the amplification within limits", async () => {
  const ramp = new Contract(poolAddress, ["function rampA(uint256 futureA, uint256 futureTime)"]);
  const now = Math.floor(Date.now() / 1_000);
  const span = 20 * 86_400;
  const data = (a: number, end: number): string => ramp.interface.encodeFunctionData("rampA", [a, end]);
  const estimate = (from: string, a: number, end: number): Promise<unknown> =>
    chains.estimate(slug, from, poolAddress, data(a, end));
  await expect(estimate(sender, 300, now + span)).rejects.toThrow(/not the owner/);
  await expect(estimate(poolOwner, 401, now + span)).rejects.toThrow(/changes too much/);
  await expect(estimate(poolOwner, 300, now + 86_400)).rejects.toThrow(/too short/);

  await sendFrom(poolOwner, poolAddress, data(300, now + span));
  await chains.on(slug).rpc("evm_setNextBlockTimestamp", [now + span / 2]);
  await chains.on(slug).rpc("evm_mine", []);
  // Half of the change, apart from the seconds between now and the ramp's block.
  expect((await pool.getAPrecise()).toNumber()).toBeCloseTo(25_000, -1);
  await chains.on(slug).rpc("evm_setNextBlockTimestamp", [now + span]);
  await chains.on(slug).rpc("evm_mine", []);
  expect((await pool.getA()).toNumber()).toBe(300);
});

function sendFrom(from: string, to: string, data: string): Promise<TransactionReceipt> {
  return chains.send(slug, { from, to, data });
}

function balanceOf(token: string, account: string): Promise<BigNumber> {
  return sdk.HopBridgeToken__factory.connect(token, pool.provider).balanceOf(account);
}
