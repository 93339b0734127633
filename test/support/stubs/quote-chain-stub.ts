import { constants, utils } from "ethers";
import type { ChainClient, RpcCallResult } from "../../../src/chain/chain-client.js";
import { RevertError } from "../../../src/chain/json-rpc/revert-error.js";
import { calculateSwap, type Pool } from "../reference/stable-swap.js";

/** What a chain without a node says. Its pools compute; every number is as it is given here. */
export interface QuoteChainState {
  readonly slug: string;
  /** Pools by address, lower case. */
  readonly pools: ReadonlyMap<string, Pool>;
  /** Wei. */
  readonly gasPrice: bigint;
  /** Gas of a transaction; "reverts" where the node says so. */
  estimateGas(transaction: { readonly from?: string; readonly to: string; readonly data: string }): bigint | "reverts";
  /** Wei for a transaction's bytes on L1. */
  l1Fee(bytes: string): bigint | "reverts";
  /** @param bridge address, lower case */
  minBonderFeeAbsolute(bridge: string): bigint;
  readonly minBonderFee: bigint;
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
  "function getTokenBalance(uint8 place) view returns (uint256)",
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
]);

/** A client of a chain that answers both what the SDK asks and what a snapshot is read by. */
export function createQuoteChainStub(state: QuoteChainState): ChainClient {
  function poolAt(to: string): Pool {
    const pool = state.pools.get(to.toLowerCase());
    if (pool === undefined) throw new Error(`no pool ${to} on ${state.slug}`);
    return pool;
  }

  function call(to: string, data: string): string {
    const { name, args } = contractAbi.parseTransaction({ data });
    const answer = (...values: unknown[]): string => contractAbi.encodeFunctionResult(name, values);
    const { uniswap } = state;
    switch (name) {
      case "calculateSwap":
        return answer(computeOrRevert(() => calculateSwap(poolAt(to), args.from, args.dx.toBigInt())));
      case "getTokenBalance":
        return answer(poolAt(to).balances[args.place]);
      case "getAPrecise":
        return answer(poolAt(to).aPrecise);
      case "swapStorage":
        return answer(0, 0, 0, 0, poolAt(to).swapFee, 0, 0, constants.AddressZero);
      case "getBlockNumber":
      case "arbBlockNumber":
      case "getCurrentBlockTimestamp":
        return answer(1);
      case "aggregate3":
        return answer(
          args.calls.map((each: { target: string; callData: string }) => [true, call(each.target, each.callData)]),
        );
      case "getL1Fee":
        return answer(computeOrRevert(() => state.l1Fee(args.data)));
      case "minBonderFee":
        return answer(state.minBonderFee);
      case "minBonderFeeAbsolute":
        return answer(state.minBonderFeeAbsolute(to.toLowerCase()));
      case "decimals":
        return answer(6);
      case "fee":
        return answer(uniswap?.fee);
      case "liquidity":
        return answer(uniswap?.liquidity);
      case "slot0":
        return answer(uniswap?.sqrtPriceX96, uniswap?.tick, 0, 1, 1, 0, true);
      case "quoteExactInput":
        return answer(uniswap?.quote(args.amountIn.toBigInt()));
      default:
        throw new Error(`unexpected call ${name}`);
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
