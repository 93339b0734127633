import { decodeUintAt, encodeBytes, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import { encodeRlpList } from "../../chain/abi/rlp.js";
import {
  type ChainClient,
  getRpcResult,
  isReverted,
  type RpcCall,
  type RpcCallResult,
} from "../../chain/chain-client.js";
import { isQuantity } from "../../chain/hex.js";
import { type Block, decodeUintResult, readContracts } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { Chain } from "../../hop/networks.js";
import type { StableSwapPool } from "../math/stable-swap.js";
import type { UniswapSwapCalculator } from "../math/uniswap-v3.js";
import { type DeliveryTransaction, mergeReadSets, type ReadSet } from "./read-set.js";

/** Result of one read of a chain. The methods throw ServiceError UPSTREAM_UNAVAILABLE for a value that was not read. */
export interface ChainState {
  /** The block of all contract reads. */
  readonly block: Block;
  /** Start of the read, milliseconds on a monotonic clock; the state's age counts from here. */
  readonly readAt: number;
  /** The same time in Unix seconds; deadlines in the deliveries count from here. */
  readonly readAtUnixSeconds: number;
  /** Wei; undefined if no read set includes it. */
  readonly gasPrice: bigint | undefined;
  getPool(key: string): StableSwapPool;
  getUint(key: string): bigint;
  getDeliveryGasCost(key: string): DeliveryGasCost;
  /** undefined: the pool's responses do not allow local swap arithmetic; call its Quoter contract instead. */
  findUniswapSwap(key: string): UniswapSwapCalculator | undefined;
}

/** The time of a read on both clocks. */
export type ReadTimestamps = Pick<ChainState, "readAt" | "readAtUnixSeconds">;

export interface DeliveryGasCost {
  readonly gas: bigint;
  /** Wei; 0 where the chain charges none. */
  readonly l1Fee: bigint;
}

const getTokenBalanceSelector = toFunctionSelector("getTokenBalance(uint8)");
const getAPreciseSelector = toFunctionSelector("getAPrecise()");
const swapStorageSelector = toFunctionSelector("swapStorage()");
/** Index of the swap fee in the result of `swapStorage()`. */
const SWAP_FEE_WORD_INDEX = 4;
const getL1FeeSelector = toFunctionSelector("getL1Fee(bytes)");
/** The OP Stack's GasPriceOracle predeploy, which prices transaction data on L1. */
const GAS_PRICE_ORACLE_ADDRESS = "0x420000000000000000000000000000000000000f";

/** Chains where a contract sees the block number of L1 instead of its own. */
const L1_BLOCK_NUMBER_SLUGS = new Set(["arbitrum", "nova"]);

/**
 * Reads the read sets of routes on a chain in one request, and a second one where L1 fees depend on the estimated gas. An
 * invalid contract response only affects the routes that read it.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond
 */
export async function readChainState(
  client: ChainClient,
  chain: Chain,
  readSets: readonly ReadSet[],
  { readAt, readAtUnixSeconds }: ReadTimestamps,
  signal: AbortSignal,
): Promise<ChainState> {
  const { pools, uintCalls, deliveries, tickWindows, includesGasPrice } = mergeReadSets(readSets);
  const windowReads = new Map([...tickWindows].map(([key, window]) => [key, window.planRead()]));
  const contractCalls = new Map([
    ...buildContractCalls(pools, uintCalls),
    ...[...windowReads.values()].flatMap((windowRead) => [...windowRead.calls]),
  ]);
  const transactions = [...deliveries].map(([key, delivery]) => buildDeliveryCall(key, delivery, readAtUnixSeconds));
  const result = await readContracts(
    client,
    { multicallAddress: chain.multicallAddress, hasL1BlockNumbers: L1_BLOCK_NUMBER_SLUGS.has(chain.slug) },
    [...contractCalls.values()],
    [
      ...(includesGasPrice ? [{ method: "eth_gasPrice", params: [] }] : []),
      ...transactions.map(({ call }) => ({ method: "eth_estimateGas", params: [call] })),
    ],
    signal,
  );
  const gasOutcomes = includesGasPrice ? result.outcomes.slice(1) : result.outcomes;
  const gasPrice = includesGasPrice ? parseQuantityOutcome(result.outcomes[0]) : undefined;
  if (includesGasPrice && gasPrice === undefined) throw createInvalidResponseError(client);
  const estimatedCalls = transactions.map((transaction, index) => addGasEstimate(transaction, gasOutcomes[index]));
  const deliveryCosts = await readL1Fees(client, estimatedCalls, gasPrice, signal);

  const returnData = new Map([...contractCalls.keys()].map((key, index) => [key, result.returnData[index]]));
  const swaps = new Map(
    [...windowReads].map(([key, windowRead]) => [key, windowRead.decodeSwap((callKey) => returnData.get(callKey))]),
  );
  const findUint = (key: string, wordIndex = 0): bigint | undefined =>
    decodeUintAt(returnData.get(key) ?? "0x", wordIndex);
  function requireRead<T>(value: T | undefined): T {
    if (value === undefined) throw createInvalidResponseError(client);
    return value;
  }
  return {
    block: result.block,
    readAt,
    readAtUnixSeconds,
    gasPrice,
    getPool: (key) => ({
      decimals: requireRead(pools.get(key)).decimals,
      balances: [requireRead(findUint(`${key} 0`)), requireRead(findUint(`${key} 1`))],
      aPrecise: requireRead(findUint(`${key} a`)),
      swapFee: requireRead(findUint(`${key} fee`, SWAP_FEE_WORD_INDEX)),
    }),
    getUint: (key) => requireRead(findUint(key)),
    getDeliveryGasCost: (key) => requireRead(deliveryCosts.get(key)),
    findUniswapSwap: (key) => swaps.get(key),
  };
}

/** @throws ServiceError UPSTREAM_UNAVAILABLE when a value of the read set is missing from the state */
export function assertStateCovers(state: ChainState, { pools, uintCalls, deliveries }: ReadSet): void {
  for (const key of pools.keys()) state.getPool(key);
  for (const key of uintCalls.keys()) state.getUint(key);
  for (const key of deliveries.keys()) state.getDeliveryGasCost(key);
}

function buildContractCalls(
  pools: ReadSet["pools"],
  uintCalls: ReadSet["uintCalls"],
): ReadonlyMap<string, ContractCall> {
  const calls = new Map(uintCalls);
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
  const data = delivery.encodeCalldata(nowSeconds);
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
  const result = getRpcResult(outcome);
  return isQuantity(result) ? BigInt(result) : undefined;
}

function createInvalidResponseError({ slug }: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned an invalid response for a Hop contract`);
}
