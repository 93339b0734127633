import { readFileSync } from "node:fs";
import { utils } from "ethers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ContractArtifact, compileContracts } from "../../../../devnet/cache/compile-contracts.js";
import { type Anvil, startAnvil } from "../../../../devnet/chain/anvil.js";

/** A recorded result of the deployed StableSwap contract: the pool's state and one swap. */
interface Vector {
  readonly decimals: number;
  readonly balances: readonly [string, string];
  readonly swapFee: number;
  readonly i: number;
  readonly j: number;
  readonly dx: string;
  /** null: the call reverted. */
  readonly dy: string | null;
}

interface Golden {
  readonly vectors: readonly (Vector & { readonly aPrecise: string })[];
  readonly ramp: readonly (Vector & {
    readonly initialA: number;
    readonly futureA: number;
    readonly initialATime: number;
    readonly futureATime: number;
    readonly blockTimestamp: number;
    readonly getA: string;
    readonly getAPrecise: string;
  })[];
  readonly virtualPrice: readonly (Omit<Vector, "i" | "j" | "dx" | "dy"> & {
    readonly aPrecise: string;
    readonly lpTotalSupply: string;
    readonly virtualPrice: string;
  })[];
}

interface Amplification {
  readonly initialA: number | string;
  readonly futureA: number | string;
  readonly initialATime: number;
  readonly futureATime: number;
}

const golden = JSON.parse(readFileSync("test/golden/stableswap.json", "utf8")) as Golden;
const artifacts = compileContracts();
const multicall = "0x0000000000000000000000000000000000000a01";
const pool = "0x0000000000000000000000000000000000000A02";
const lpToken = "0x0000000000000000000000000000000000000A03";
const holder = "0x0000000000000000000000000000000000000A04";

const multicallAbi = abiOf("Multicall3");
const poolAbi = abiOf("StableSwap");
const tokenAbi = abiOf("Token");

let anvil: Anvil;

beforeAll(async () => {
  anvil = await startAnvil({ chainId: 31_337, gasPrice: 1n });
  const code = { [multicall]: "Multicall3", [pool]: "StableSwap", [lpToken]: "Token" };
  for (const [address, name] of Object.entries(code)) {
    await anvil.rpc("anvil_setCode", [address, artifact(name).deployedBytecode]);
  }
});

afterAll(() => anvil?.stop());

test("returns the recorded amount or revert for every recorded swap", async () => {
  expect(golden.vectors).toHaveLength(1500);
  const results = await inParallel(golden.vectors, async (vector) => {
    const fixed = { initialA: vector.aPrecise, futureA: vector.aPrecise, initialATime: 0, futureATime: 0 };
    const [, swap] = await callSequentially([initialize(vector, fixed), calculateSwap(vector)]);
    return swap;
  });
  expect(results).toEqual(golden.vectors.map(({ dy }) => dy));
});

test("returns the recorded amplification and amount at every recorded time of a ramp", async () => {
  expect(golden.ramp).toHaveLength(200);
  const results = await inParallel(golden.ramp, async (vector) => {
    const reads = ["getA", "getAPrecise"].map((name) => poolCall(name, []));
    const calls = [initialize(vector, vector), ...reads, calculateSwap(vector)];
    const [, getA, getAPrecise, dy] = await callSequentially(calls, vector.blockTimestamp);
    return { getA, getAPrecise, dy };
  });
  expect(results).toEqual(golden.ramp.map(({ getA, getAPrecise, dy }) => ({ getA, getAPrecise, dy })));
});

test("returns every recorded virtual price", async () => {
  expect(golden.virtualPrice).toHaveLength(30);
  const results = await inParallel(golden.virtualPrice, async (vector) => {
    const fixed = { initialA: vector.aPrecise, futureA: vector.aPrecise, initialATime: 0, futureATime: 0 };
    const holding = { holder, amount: vector.lpTotalSupply };
    const token = tokenAbi.encodeFunctionData("initialize", ["LP", "LP", 18, pool, [], [holding]]);
    const calls = [{ to: lpToken, data: token }, initialize(vector, fixed), poolCall("getVirtualPrice", [])];
    return (await callSequentially(calls))[2];
  });
  expect(results).toEqual(golden.virtualPrice.map(({ virtualPrice }) => virtualPrice));
});

function initialize(vector: Pick<Vector, "decimals" | "balances" | "swapFee">, a: Amplification): Call {
  const { initialA, futureA, initialATime, futureATime } = a;
  const fees = { swapFee: vector.swapFee, adminFee: 0, defaultWithdrawFee: 0 };
  const parameters = { initialA, futureA, initialATime, futureATime, ...fees, lpToken };
  return poolCall("initialize", [holder, [holder, holder], vector.decimals, vector.balances, parameters]);
}

function calculateSwap({ i, j, dx }: Vector): Call {
  return poolCall("calculateSwap", [i, j, dx]);
}

interface Call {
  readonly to: string;
  readonly data: string;
}

function poolCall(name: string, values: readonly unknown[]): Call {
  return { to: pool, data: poolAbi.encodeFunctionData(name, values) };
}

/**
 * Runs calls in one `eth_call`, so that each sees the state changes of the ones before it and nothing is stored. Returns
 * the single number that each call returned. Only the last call may revert; its result is then null.
 */
async function callSequentially(calls: readonly Call[], time?: number): Promise<(string | null)[]> {
  const data = multicallAbi.encodeFunctionData("aggregate3", [
    calls.map(({ to, data }, index) => [to, index === calls.length - 1, data]),
  ]);
  const block = time === undefined ? [] : [{}, { time: utils.hexValue(time) }];
  const returnData = (await anvil.rpc("eth_call", [{ to: multicall, data }, "latest", ...block])) as string;
  const [outcomes] = multicallAbi.decodeFunctionResult("aggregate3", returnData) as unknown as [
    readonly { success: boolean; returnData: string }[],
  ];
  return outcomes.map(({ success, returnData }) => {
    if (!success) return null;
    return returnData === "0x" ? "" : BigInt(returnData).toString();
  });
}

/** Runs 50 at a time; more would only queue in the node. */
async function inParallel<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += 50) {
    results.push(...(await Promise.all(items.slice(start, start + 50).map(run))));
  }
  return results;
}

function artifact(name: string): ContractArtifact {
  const match = artifacts[name];
  if (match === undefined) throw new Error(`no contract ${name}`);
  return match;
}

function abiOf(name: string): utils.Interface {
  return new utils.Interface(artifact(name).abi as string[]);
}
