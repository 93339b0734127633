import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient, RpcCall, RpcCallResult } from "../../../../src/chain/chain-client.js";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { findUsdcSwapPool } from "../../../../src/hop/cctp.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { getSqrtPriceAtTick } from "../../../../src/quotes/math/uniswap-v3.js";
import { readChainState } from "../../../../src/quotes/state/read-chain-state.js";
import {
  createPoolRead,
  createReadSet,
  createUintRead,
  type DeliveryTransaction,
  EMPTY_READ_SET,
  getDeliveryTransactionKey,
  type ReadSet,
} from "../../../../src/quotes/state/read-set.js";
import { UniswapTickWindow } from "../../../../src/quotes/state/uniswap-tick-window.js";

const REVERT = { revert: new RevertError("execution reverted", 3, "0x") };
const GAS_PRICE_ORACLE = "0x420000000000000000000000000000000000000f";
const abi = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
  "function getL1Fee(bytes data) view returns (uint256)",
  "function getTokenBalance(uint8 index) view returns (uint256)",
]);
const selectorOf = (signature: string): string => utils.id(signature).slice(0, 10);
const encodeWords = (...words: readonly (bigint | number)[]): string =>
  utils.defaultAbiCoder.encode(
    words.map(() => "int256"),
    words,
  );

const POOL = `0x${"aa".repeat(20)}`;
const BRIDGE = `0x${"bb".repeat(20)}`;
const pool = createPoolRead(POOL, 6);
const minFee = createUintRead({ to: BRIDGE, data: selectorOf("minBonderFee()") });
const credit = createUintRead({ to: BRIDGE, data: selectorOf("credit()") }, true);
const delivery: DeliveryTransaction = {
  from: `0x${"cc".repeat(20)}`,
  to: `0x${"dd".repeat(20)}`,
  calldata: "0x030405",
  deadlineSeconds: undefined,
  fallbackGas: 1_000n,
  gasMargin: 50n,
  hasL1Fee: false,
};
const readSetOf = (parts: Parameters<typeof createReadSet>[0]): ReadSet => createReadSet(parts) ?? EMPTY_READ_SET;

/** What the contracts return, by contract and calldata; all others revert. */
const contracts: Readonly<Record<string, string>> = {
  [`${POOL} ${abi.encodeFunctionData("getTokenBalance", [0])}`]: encodeWords(101),
  [`${POOL} ${abi.encodeFunctionData("getTokenBalance", [1])}`]: encodeWords(102),
  [`${POOL} ${selectorOf("getAPrecise()")}`]: encodeWords(103),
  [`${POOL} ${selectorOf("swapStorage()")}`]: encodeWords(1, 2, 3, 4, 104, 6, 7, 8),
  [minFee.key]: encodeWords(105),
  [`${BRIDGE} ${selectorOf("credit()")}`]: encodeWords(106),
};

interface StubOptions {
  readonly slug?: string;
  readonly contracts?: Readonly<Record<string, string>>;
  readonly gasPrice?: RpcCallResult;
  estimateGas?(transaction: { readonly from?: string; readonly to: string; readonly data: string }): RpcCallResult;
  getL1Fee?(bytes: string): RpcCallResult;
}

/** A chain whose block number is 20, and on Arbitrum's chains 21; the contracts there see 20. */
function setup(options: StubOptions = {}) {
  const slug = options.slug ?? "polygon";
  const chain = getNetwork("mainnet").chains.get(slug);
  if (chain === undefined) throw new Error(`no chain ${slug}`);
  const batches: (readonly RpcCall[])[] = [];
  const results: Readonly<Record<string, string>> = {
    [`${chain.multicallAddress} ${selectorOf("getCurrentBlockTimestamp()")}`.toLowerCase()]: encodeWords(1_700_000_000),
    [`${chain.multicallAddress} ${selectorOf("getBlockNumber()")}`.toLowerCase()]: encodeWords(20),
    [`0x${"64".padStart(40, "0")} ${selectorOf("arbBlockNumber()")}`]: encodeWords(21),
    ...(options.contracts ?? contracts),
  };
  function respond({ method, params }: RpcCall): RpcCallResult {
    const transaction = params[0] as { readonly to: string; readonly data: string };
    if (method === "eth_gasPrice" && params.length === 0) return options.gasPrice ?? { result: "0x7" };
    if (method === "eth_estimateGas") return options.estimateGas?.(transaction) ?? { result: "0x64" };
    expect(method).toBe("eth_call");
    expect(params[1]).toBe("latest");
    if (transaction.to === GAS_PRICE_ORACLE)
      return options.getL1Fee?.(abi.decodeFunctionData("getL1Fee", transaction.data).data) ?? REVERT;
    expect(transaction.to).toBe(chain?.multicallAddress);
    const { calls } = abi.decodeFunctionData("aggregate3", transaction.data);
    const returned = calls.map(({ target, callData }: { target: string; callData: string }) => {
      const result = results[`${target} ${callData}`.toLowerCase()];
      return [result !== undefined, result ?? "0x"];
    });
    return { result: abi.encodeFunctionResult("aggregate3", [returned]) };
  }
  const client: ChainClient = {
    slug,
    send: () => Promise.reject(new Error("not expected")),
    getLogs: () => Promise.reject(new Error("not expected")),
    async sendBatch(calls) {
      batches.push(calls);
      return calls.map(respond);
    },
  };
  const timestamps = { readAt: 13, readAtUnixSeconds: 1_000 };
  const { signal } = new AbortController();
  const read = (...readSets: ReadSet[]) => readChainState(client, chain, readSets, { ...timestamps, signal });
  return { batches, chain, read };
}

describe("a read of a chain", () => {
  test("gets what several routes read, in one request and of one block", async () => {
    const { batches, read } = setup();
    const fees = readSetOf({ contractReads: [minFee, credit], delivery, includesGasPrice: true });
    expect(await read(readSetOf({ contractReads: [pool] }), fees)).toMatchObject({
      block: { number: 20n, timeSeconds: 1_700_000_000n },
      readAt: 13,
      readAtUnixSeconds: 1_000,
      gasPrice: 7n,
      values: new Map<string, unknown>([
        [POOL, { decimals: 6, balances: [101n, 102n], aPrecise: 103n, swapFee: 104n }],
        [minFee.key, 105n],
        [credit.key, 106n],
        [getDeliveryTransactionKey(delivery), { gas: 150n, l1Fee: 0n }],
      ]),
    });
    expect(batches).toHaveLength(1);
  });

  test("of nothing but the block asks for no gas price", async () => {
    const { batches, read } = setup();
    expect(await read(EMPTY_READ_SET)).toMatchObject({ block: { number: 20n }, gasPrice: undefined });
    expect(batches.flat().map(({ method }) => method)).toEqual(["eth_call"]);
  });

  test.each([
    ["arbitrum", 21n],
    ["nova", 21n],
    ["optimism", 20n],
  ])("of %s has the number of its own block", async (slug, number) => {
    expect((await setup({ slug }).read(EMPTY_READ_SET)).block.number).toBe(number);
  });

  test("has the ticks of a pool that swaps USDC.e", async () => {
    const swapPool = findUsdcSwapPool("polygon");
    if (swapPool === undefined) throw new Error("USDC.e is swapped on polygon");
    const to = swapPool.address.toLowerCase();
    const { read } = setup({
      contracts: {
        [`${to} ${selectorOf("slot0()")}`]: encodeWords(getSqrtPriceAtTick(0), 0),
        [`${to} ${selectorOf("liquidity()")}`]: encodeWords(10n ** 15n),
        [`${to} ${selectorOf("tickSpacing()")}`]: encodeWords(1),
        [`${to} ${selectorOf("tickBitmap(int16)")}${encodeWords(0).slice(2)}`]: encodeWords(0),
        [`${to} ${selectorOf("tickBitmap(int16)")}${encodeWords(-1).slice(2)}`]: encodeWords(0),
      },
    });
    const state = await read(readSetOf({ contractReads: [new UniswapTickWindow(swapPool)] }));
    expect(state.findUniswapSwap(swapPool.address)?.(1_000_000n)).toBe(999_899n);
  });
});

describe("an invalid response", () => {
  test.each(Object.keys(contracts).slice(0, 4))("leaves out the pool of which %s reverts, alone", async (missing) => {
    const { [missing]: _, ...others } = contracts;
    const { values } = await setup({ contracts: others }).read(readSetOf({ contractReads: [pool, minFee] }));
    expect(values).toEqual(new Map([[minFee.key, 105n]]));
  });

  test("leaves out a fee, and tells that an optional value could not be read", async () => {
    const { values } = await setup({ contracts: {} }).read(readSetOf({ contractReads: [minFee, credit] }));
    expect(values).toEqual(new Map([[credit.key, undefined]]));
  });

  test.each([[{ result: null }], [{ result: "7" }], [{ result: "0x" }], [REVERT]])(
    "for the gas price fails the read: %o",
    async (gasPrice) => {
      await expect(setup({ gasPrice }).read(readSetOf({ includesGasPrice: true }))).rejects.toMatchObject({
        reason: "UPSTREAM_UNAVAILABLE",
        message: "polygon returned an invalid response for a Hop contract",
      });
    },
  );
});

describe("the gas of a delivery", () => {
  test("is estimated for the transaction as it is sent now, from its sender if it has one", async () => {
    const sent: unknown[] = [];
    const estimateGas = (transaction: unknown): RpcCallResult => {
      sent.push(transaction);
      return { result: "0x64" };
    };
    const distributing = { ...delivery, from: undefined, deadlineSeconds: 24 };
    await setup({ estimateGas }).read(readSetOf({ delivery }), readSetOf({ delivery: distributing }));
    expect(sent).toEqual([
      { from: delivery.from, to: delivery.to, data: "0x030405" },
      { to: delivery.to, data: `0x030405${encodeWords(1_024).slice(2)}` },
    ]);
  });

  test("is the SDK's where the estimate reverts, and unknown where the node gives none", async () => {
    const other = { ...delivery, to: `0x${"ee".repeat(20)}` };
    const invalid = { ...delivery, to: `0x${"ff".repeat(20)}` };
    const estimateGas = ({ to }: { readonly to: string }): RpcCallResult =>
      to === other.to ? REVERT : { result: to === invalid.to ? "100" : "0x64" };
    const readSets = [other, invalid, delivery].map((each) => readSetOf({ delivery: each, includesGasPrice: true }));
    const { values } = await setup({ estimateGas }).read(...readSets);
    expect(values).toEqual(
      new Map([
        [getDeliveryTransactionKey(other), { gas: 1_000n, l1Fee: 0n }],
        [getDeliveryTransactionKey(delivery), { gas: 150n, l1Fee: 0n }],
      ]),
    );
  });
});

describe("the L1 fee of a delivery", () => {
  const charged = { ...delivery, hasL1Fee: true };
  const readSet = readSetOf({ delivery: charged, includesGasPrice: true });

  test("is that of the unsigned transaction with the estimated gas, as ethers serializes it", async () => {
    const priced: string[] = [];
    const getL1Fee = (bytes: string): RpcCallResult => {
      priced.push(bytes);
      return { result: encodeWords(9) };
    };
    const { batches, read } = setup({ slug: "optimism", getL1Fee });
    const free = { ...delivery, to: `0x${"ee".repeat(20)}` };
    const { values } = await read(readSet, readSetOf({ delivery: free }));
    expect(values.get(getDeliveryTransactionKey(charged))).toEqual({ gas: 150n, l1Fee: 9n });
    expect(values.get(getDeliveryTransactionKey(free))).toEqual({ gas: 150n, l1Fee: 0n });
    const { to, calldata: data } = charged;
    expect(priced).toEqual([utils.serializeTransaction({ nonce: 0, gasPrice: 7, gasLimit: 150, to, value: 0, data })]);
    expect(batches).toHaveLength(2);
  });

  test.each([
    ["is 0 where the oracle reverts", REVERT, { gas: 150n, l1Fee: 0n }],
    ["makes the cost unknown where the oracle returns nothing", { result: "0x" }, undefined],
    ["makes the cost unknown where the node returns no data", { result: 9 }, undefined],
  ])("%s", async (_, response, expected) => {
    const { values } = await setup({ slug: "optimism", getL1Fee: () => response }).read(readSet);
    expect(values.get(getDeliveryTransactionKey(charged))).toEqual(expected);
    expect(values.size).toBe(expected === undefined ? 0 : 1);
  });
});
