import { decodeUintAt, encodeBytes, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import { encodeRlpList } from "../../chain/abi/rlp.js";
import {
  type ChainClient,
  findRpcResult,
  isReverted,
  type RpcCall,
  type RpcCallResult,
} from "../../chain/chain-client.js";
import { isQuantity } from "../../chain/hex.js";
import { decodeUintResult, readContracts } from "../../chain/read/contract-reads.js";
import type { Chain } from "../../hop/networks.js";
import type { StableSwapPool } from "../math/stable-swap.js";
import {
  ChainState,
  type ChainStateValues,
  createInvalidResponseError,
  type DeliveryGasCost,
  type ReadTimestamps,
} from "./chain-state.js";
import { type DeliveryTransaction, encodeDeliveryCalldata, mergeReadSets, type ReadSet } from "./read-set.js";
import type { TickWindowRead } from "./uniswap-tick-window.js";

const getTokenBalanceSelector = toFunctionSelector("getTokenBalance(uint8)");
const getAPreciseSelector = toFunctionSelector("getAPrecise()");
const swapStorageSelector = toFunctionSelector("swapStorage()");
/** Index of the swap fee in the result of `swapStorage()`. */
const SWAP_FEE_WORD_INDEX = 4;
const getL1FeeSelector = toFunctionSelector("getL1Fee(bytes)");
/** The OP Stack's GasPriceOracle predeploy, which prices transaction data on L1. */
const GAS_PRICE_ORACLE_ADDRESS = "0x420000000000000000000000000000000000000f";

/**
 * Reads the read sets of routes on a chain in one request, and a second one where L1 fees depend on the estimated gas. An
 * invalid contract response only affects the routes that read it.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond
 */
export async function readChainState(
  client: ChainClient,
  chain: Chain,
  readSets: readonly ReadSet[],
  { readAt, readAtUnixSeconds, signal }: ReadTimestamps & { readonly signal: AbortSignal },
): Promise<ChainState> {
  const readSet = mergeReadSets(readSets);
  const { deliveries, tickWindows, includesGasPrice } = readSet;
  const windowReads = new Map([...tickWindows].map(([key, window]) => [key, window.planRead()]));
  const contractCalls = new Map([
    ...buildContractCalls(readSet),
    ...[...windowReads.values()].flatMap((windowRead) => [...windowRead.calls]),
  ]);
  const transactions = [...deliveries].map(([key, delivery]) => buildDeliveryCall(key, delivery, readAtUnixSeconds));
  const result = await readContracts(
    client,
    chain.multicallAddress,
    {
      contractCalls: [...contractCalls.values()],
      otherCalls: [
        ...(includesGasPrice ? [{ method: "eth_gasPrice", params: [] }] : []),
        ...transactions.map(({ call }) => ({ method: "eth_estimateGas", params: [call] })),
      ],
    },
    signal,
  );
  const gasOutcomes = includesGasPrice ? result.outcomes.slice(1) : result.outcomes;
  const gasPrice = includesGasPrice ? parseQuantityOutcome(result.outcomes[0]) : undefined;
  if (includesGasPrice && gasPrice === undefined) throw createInvalidResponseError(client.slug);
  const estimatedCalls = transactions.map((transaction, index) => addGasEstimate(transaction, gasOutcomes[index]));
  const deliveryCosts = await readL1Fees(client, estimatedCalls, gasPrice, signal);
  const returnData = new Map([...contractCalls.keys()].map((key, index) => [key, result.returnData[index]]));
  const values: ChainStateValues = {
    block: result.block,
    readAt,
    readAtUnixSeconds,
    gasPrice,
    deliveries: deliveryCosts,
    ...decodeContractValues(readSet, windowReads, returnData),
  };
  return new ChainState(values, client.slug);
}

type ReturnData = ReadonlyMap<string, string | undefined>;
type ContractValues = Pick<ChainStateValues, "pools" | "uints" | "optionalUints" | "swapPools">;

/** Decodes what the contracts returned. @param returnData by key of the calls */
function decodeContractValues(
  { pools, uintCalls, optionalUintCalls }: ReadSet,
  windowReads: ReadonlyMap<string, TickWindowRead>,
  returnData: ReturnData,
): ContractValues {
  const findUint = (key: string, wordIndex = 0): bigint | undefined =>
    decodeUintAt(returnData.get(key) ?? "0x", wordIndex);
  function findPool(key: string, decimals: number): StableSwapPool | undefined {
    const [first, second, aPrecise] = [findUint(`${key} 0`), findUint(`${key} 1`), findUint(`${key} a`)];
    const swapFee = findUint(`${key} fee`, SWAP_FEE_WORD_INDEX);
    const isComplete = first !== undefined && second !== undefined && aPrecise !== undefined && swapFee !== undefined;
    return isComplete ? { decimals, balances: [first, second], aPrecise, swapFee } : undefined;
  }
  return {
    pools: mapDefined(pools, (key, { decimals }) => findPool(key, decimals)),
    uints: mapDefined(uintCalls, (key) => findUint(key)),
    optionalUints: new Map([...optionalUintCalls.keys()].map((key) => [key, findUint(key)])),
    swapPools: new Map(
      [...windowReads].map(([key, windowRead]) => [key, windowRead.decodePool((callKey) => returnData.get(callKey))]),
    ),
  };
}

/** Returns the results by key, without those that are undefined. */
function mapDefined<Value, Result>(
  entries: ReadonlyMap<string, Value>,
  convert: (key: string, value: Value) => Result | undefined,
): ReadonlyMap<string, Result> {
  const results = new Map<string, Result>();
  for (const [key, value] of entries) {
    const result = convert(key, value);
    if (result !== undefined) results.set(key, result);
  }
  return results;
}

function buildContractCalls({ pools, uintCalls, optionalUintCalls }: ReadSet): ReadonlyMap<string, ContractCall> {
  const calls = new Map([...uintCalls, ...optionalUintCalls]);
  for (const [key, { address: to }] of pools) {
    calls.set(`${key} 0`, { to, data: getTokenBalanceSelector + encodeWord(0n) });
    calls.set(`${key} 1`, { to, data: getTokenBalanceSelector + encodeWord(1n) });
    calls.set(`${key} a`, { to, data: getAPreciseSelector });
    calls.set(`${key} fee`, { to, data: swapStorageSelector });
  }
  return calls;
}

/** The call of a delivery that is sent now. */
interface DeliveryCall {
  readonly key: string;
  readonly delivery: DeliveryTransaction;
  readonly call: { readonly from?: string; readonly to: string; readonly data: string };
}

function buildDeliveryCall(key: string, delivery: DeliveryTransaction, nowSeconds: number): DeliveryCall {
  const { from, to } = delivery;
  const data = encodeDeliveryCalldata(delivery, nowSeconds);
  return { key, delivery, call: from === undefined ? { to, data } : { from, to, data } };
}

interface EstimatedDeliveryCall extends DeliveryCall {
  /** undefined: the node returned no estimate. */
  readonly gas: bigint | undefined;
}

function addGasEstimate(transaction: DeliveryCall, outcome: RpcCallResult | undefined): EstimatedDeliveryCall {
  const { fallbackGas, gasMargin } = transaction.delivery;
  if (isReverted(outcome)) return { ...transaction, gas: fallbackGas };
  const estimate = parseQuantityOutcome(outcome);
  return { ...transaction, gas: estimate === undefined ? undefined : estimate + gasMargin };
}

/** Returns the cost of each delivery by key, without those that have no estimate or no L1 fee. */
async function readL1Fees(
  client: ChainClient,
  estimatedCalls: readonly EstimatedDeliveryCall[],
  gasPrice: bigint | undefined,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, DeliveryGasCost>> {
  const costs = new Map<string, DeliveryGasCost>();
  const feeCalls: { readonly key: string; readonly gas: bigint; readonly call: RpcCall }[] = [];
  for (const { key, delivery, call, gas } of estimatedCalls) {
    if (gas === undefined) continue;
    if (!delivery.hasL1Fee || gasPrice === undefined) {
      costs.set(key, { gas, l1Fee: 0n });
      continue;
    }
    // Like the SDK's estimateOptimismL1FeeFromData: an unsigned legacy transaction with empty nonce and value.
    const bytes = encodeRlpList([0n, gasPrice, gas, call.to, 0n, call.data]);
    const data = getL1FeeSelector + encodeWord(32n) + encodeBytes(bytes);
    const feeCall = { method: "eth_call", params: [{ to: GAS_PRICE_ORACLE_ADDRESS, data }, "latest"] };
    feeCalls.push({ key, gas, call: feeCall });
  }
  if (feeCalls.length === 0) return costs;
  const calls = feeCalls.map(({ call }) => call);
  const outcomes = await client.sendBatch(calls, signal);
  for (const [index, { key, gas }] of feeCalls.entries()) {
    const outcome = outcomes[index];
    // Like the SDK, charges nothing where the oracle reverts.
    const l1Fee = isReverted(outcome) ? 0n : decodeUintResult(outcome);
    if (l1Fee !== undefined) costs.set(key, { gas, l1Fee });
  }
  return costs;
}

function parseQuantityOutcome(outcome: RpcCallResult | undefined): bigint | undefined {
  const result = findRpcResult(outcome);
  return isQuantity(result) ? BigInt(result) : undefined;
}
