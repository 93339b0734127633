import { constants, utils } from "ethers";
import type { ChainClient, RpcCallResult } from "../../../src/chain/chain-client.js";
import { RevertError } from "../../../src/chain/json-rpc/rpc-errors.js";
import { TOKEN_MINTERS } from "../../../src/hop/cctp.js";
import { calculateSwap, type Pool } from "../reference/stable-swap.js";

/** State of a simulated chain. Its pools compute swaps; all other values are constants. */
export interface QuoteChainState {
  readonly slug: string;
  /** Pools by address, lower case. */
  readonly pools: ReadonlyMap<string, Pool>;
  /** Wei. */
  readonly gasPrice: bigint;
  /** Gas of a transaction; "reverts" if it fails. */
  estimateGas(transaction: { readonly from?: string; readonly to: string; readonly data: string }): bigint | "reverts";
  /** L1 fee of a transaction's bytes, in wei. */
  l1Fee(bytes: string): bigint | "reverts";
  /** @param bridge address, lower case */
  minBonderFeeAbsolute(bridge: string): bigint;
  readonly minBonderFee: bigint;
  /** Of every bonder; undefined: the call reverts. */
  readonly credit?: bigint;
  readonly debit?: bigint;
  /** Of every token in CCTP. */
  readonly burnLimit?: bigint;
  readonly uniswap?: {
    readonly sqrtPriceX96: bigint;
    readonly tick: number;
    readonly liquidity: bigint;
    readonly fee: number;
    quote(amountIn: bigint): bigint;
  };
}

const contractAbi = new utils.Interface([
  "function calculateSwap(uint8 from, uint8 to, uint256 dx) view returns (uint256)",
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
  "function getL1Fee(bytes data) view returns (uint256)",
  "function minBonderFee() view returns (uint256)",
  "function minBonderFeeAbsolute() view returns (uint256)",
  "function getTokenBalance(uint8 index) view returns (uint256)",
  "function getAPrecise() view returns (uint256)",
  "function swapStorage() view returns (uint256, uint256, uint256, uint256, uint256, uint256, uint256, address)",
  "function getBlockNumber() view returns (uint256)",
  "function getCurrentBlockTimestamp() view returns (uint256)",
  "function arbBlockNumber() view returns (uint256)",
  "function decimals() view returns (uint8)",
  "function fee() view returns (uint24)",
  "function liquidity() view returns (uint128)",
  "function slot0() view returns (uint160, int24, uint16, uint16, uint16, uint8, bool)",
  "function quoteExactInput(bytes path, uint256 amountIn) view returns (uint256)",
  "function tickSpacing() view returns (int24)",
  "function tickBitmap(int16 position) view returns (uint256)",
  "function ticks(int24 tick) view returns (uint128, int128, uint256, uint256, int56, uint160, uint32, bool)",
  "function getCredit(address bonder) view returns (uint256)",
  "function getDebitAndAdditionalDebit(address bonder) view returns (uint256)",
  "function localMinter() view returns (address)",
  "function burnLimitsPerMessage(address token) view returns (uint256)",
]);

type CallArguments = ReturnType<typeof contractAbi.parseTransaction>["args"];

/** Creates a chain client that serves the calls of both the SDK engine and the snapshot engine. */
export function createQuoteChainStub(state: QuoteChainState): ChainClient {
  function poolAt(to: string): Pool {
    const pool = state.pools.get(to.toLowerCase());
    if (pool === undefined) throw new Error(`no pool ${to} on ${state.slug}`);
    return pool;
  }

  /** What each function returns. */
  const functions: Readonly<Record<string, (to: string, args: CallArguments) => readonly unknown[]>> = {
    calculateSwap: (to, { from, dx }) => [computeOrRevert(() => calculateSwap(poolAt(to), from, dx.toBigInt()))],
    getTokenBalance: (to, { index }) => [poolAt(to).balances[index]],
    getAPrecise: (to) => [poolAt(to).aPrecise],
    swapStorage: (to) => [0, 0, 0, 0, poolAt(to).swapFee, 0, 0, constants.AddressZero],
    getBlockNumber: () => [1],
    arbBlockNumber: () => [1],
    getCurrentBlockTimestamp: () => [1],
    aggregate3: (_, { calls }) => [calls.map(tryCall)],
    getL1Fee: (_, { data }) => [computeOrRevert(() => state.l1Fee(data))],
    minBonderFee: () => [state.minBonderFee],
    minBonderFeeAbsolute: (to) => [state.minBonderFeeAbsolute(to.toLowerCase())],
    decimals: () => [6],
    fee: () => [state.uniswap?.fee],
    liquidity: () => [state.uniswap?.liquidity],
    slot0: () => [state.uniswap?.sqrtPriceX96, state.uniswap?.tick, 0, 1, 1, 0, true],
    quoteExactInput: (_, { amountIn }) => [state.uniswap?.quote(amountIn.toBigInt())],
    tickSpacing: () => [1],
    tickBitmap: () => [0],
    getCredit: () => [computeOrRevert(() => state.credit ?? "reverts")],
    getDebitAndAdditionalDebit: () => [computeOrRevert(() => state.debit ?? "reverts")],
    localMinter: () => [TOKEN_MINTERS[state.slug]],
    burnLimitsPerMessage: () => [computeOrRevert(() => state.burnLimit ?? "reverts")],
  };

  function call(to: string, data: string): string {
    const { name, args } = contractAbi.parseTransaction({ data });
    const run = functions[name];
    if (run === undefined) throw new Error(`unexpected call ${name}`);
    return contractAbi.encodeFunctionResult(name, run(to, args));
  }

  interface Call {
    readonly target: string;
    readonly allowFailure: boolean;
    readonly callData: string;
  }

  /** Returns whether a call of a multicall succeeds, and its result. */
  function tryCall({ target, allowFailure, callData }: Call): readonly [boolean, string] {
    try {
      return [true, call(target, callData)];
    } catch (error) {
      if (allowFailure && error instanceof RevertError) return [false, "0x"];
      throw error;
    }
  }

  async function send(method: string, params: readonly unknown[]): Promise<unknown> {
    const [first] = params as [{ to: string; data: string }];
    if (method === "eth_gasPrice") return utils.hexValue(state.gasPrice);
    if (method === "eth_estimateGas") return utils.hexValue(computeOrRevert(() => state.estimateGas(first)));
    if (method === "eth_call") return call(first.to, first.data);
    throw new Error(`unexpected method ${method}`);
  }

  async function outcomeOf(method: string, params: readonly unknown[]): Promise<RpcCallResult> {
    try {
      return { result: await send(method, params) };
    } catch (error) {
      if (error instanceof RevertError) return { revert: error };
      throw error;
    }
  }

  return {
    slug: state.slug,
    send,
    sendBatch: (calls) => Promise.all(calls.map(({ method, params }) => outcomeOf(method, params))),
    getLogs: () => Promise.reject(new Error("quotes search no logs")),
  };
}

function computeOrRevert(compute: () => bigint | "reverts"): bigint {
  try {
    const value = compute();
    if (value !== "reverts") return value;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw new RevertError("execution reverted", 3, "0x");
}
