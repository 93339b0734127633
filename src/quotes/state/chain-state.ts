import { decodeUintAt, encodeBytes, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import { encodeRlpList } from "../../chain/abi/rlp.js";
import { type ChainClient, getResult, isReverted, type RpcCall, type RpcOutcome } from "../../chain/chain-client.js";
import { isQuantity } from "../../chain/hex.js";
import { type Block, decodeUintResult, readContracts } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { Chain } from "../../hop/networks.js";
import type { StableSwapPool } from "../math/stable-swap.js";
import type { UniswapSwapCalculator } from "../math/uniswap-v3.js";
import { type DeliveryTransaction, mergeReadSets, type ReadSet } from "./read-set.js";

/** What a chain said in one read. The methods throw ServiceError UPSTREAM_UNAVAILABLE for what could not be read. */
export interface ChainState {
  /** The block in which everything that contracts said was read. */
  readonly block: Block;
  /** When the read began, milliseconds on a steady clock: their age counts from here. */
  readonly readAt: number;
  /** Unix seconds then: deadlines in the deliveries count from here. */
  readonly readAtUnixSeconds: number;
  /** Wei; undefined where nobody needed it. */
  readonly gasPrice: bigint | undefined;
  getPool(name: string): StableSwapPool;
  getUint(name: string): bigint;
  getDeliveryGasCost(name: string): DeliveryGasCost;
  /** undefined: the pool's answers tell of no swap, and its quoter must be asked. */
  findUniswapSwap(name: string): UniswapSwapCalculator | undefined;
}

/** What a read takes for now. */
export type ReadTimestamps = Pick<ChainState, "readAt" | "readAtUnixSeconds">;

export interface DeliveryGasCost {
  readonly gas: bigint;
  /** Wei; 0 where the chain charges none. */
  readonly l1Fee: bigint;
}

const getTokenBalanceSelector = toFunctionSelector("getTokenBalance(uint8)");
const getAPreciseSelector = toFunctionSelector("getAPrecise()");
const swapStorageSelector = toFunctionSelector("swapStorage()");
/** Place of the swap fee in what `swapStorage()` returns. */
const SWAP_FEE_WORD_INDEX = 4;
const getL1FeeSelector = toFunctionSelector("getL1Fee(bytes)");
/** The OP stack's contract that prices a transaction's bytes on L1. */
const GAS_PRICE_ORACLE_ADDRESS = "0x420000000000000000000000000000000000000f";

const arbitrumSlugs = new Set(["arbitrum", "nova"]);

/**
 * Reads what routes need of a chain: one request, and a second one where L1 fees depend on the gas that the first found.
 * What a contract does not say as it should is missing for the routes that need it, and for no other.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer
 */
export async function readChainState(
  client: ChainClient,
  chain: Chain,
  needs: readonly ReadSet[],
  { readAt, readAtUnixSeconds }: ReadTimestamps,
  signal: AbortSignal,
): Promise<ChainState> {
  const { pools, uintCalls, deliveries, tickWindows, includesGasPrice: needsGasPrice } = mergeReadSets(needs);
  const plans = new Map([...tickWindows].map(([name, window]) => [name, window.planRead()]));
  const views = new Map([
    ...buildContractCalls(pools, uintCalls),
    ...[...plans.values()].flatMap((plan) => [...plan.calls]),
  ]);
  const transactions = [...deliveries].map(([name, delivery]) => buildDeliveryCall(name, delivery, readAtUnixSeconds));
  const reading = await readContracts(
    client,
    { multicall: chain.multicallAddress, seesL1Blocks: arbitrumSlugs.has(chain.slug) },
    [...views.values()],
    [
      ...(needsGasPrice ? [{ method: "eth_gasPrice", params: [] }] : []),
      ...transactions.map(({ call }) => ({ method: "eth_estimateGas", params: [call] })),
    ],
    signal,
  );
  const gasOutcomes = needsGasPrice ? reading.outcomes.slice(1) : reading.outcomes;
  const gasPrice = needsGasPrice ? parseQuantityOutcome(reading.outcomes[0]) : undefined;
  if (needsGasPrice && gasPrice === undefined) throw createInvalidResponseError(client);
  const estimated = transactions.map((transaction, place) => addGasEstimate(transaction, gasOutcomes[place]));
  const costs = await readL1Fees(client, estimated, gasPrice, signal);

  const answers = new Map([...views.keys()].map((key, place) => [key, reading.returnData[place]]));
  const swaps = new Map([...plans].map(([name, plan]) => [name, plan.decodeSwap((key) => answers.get(key))]));
  const numberAt = (key: string, place = 0): bigint | undefined => decodeUintAt(answers.get(key) ?? "0x", place);
  function found<T>(value: T | undefined): T {
    if (value === undefined) throw createInvalidResponseError(client);
    return value;
  }
  return {
    block: reading.block,
    readAt,
    readAtUnixSeconds,
    gasPrice,
    getPool: (name) => ({
      decimals: found(pools.get(name)).decimals,
      balances: [found(numberAt(`${name} 0`)), found(numberAt(`${name} 1`))],
      aPrecise: found(numberAt(`${name} a`)),
      swapFee: found(numberAt(`${name} fee`, SWAP_FEE_WORD_INDEX)),
    }),
    getUint: (name) => found(numberAt(name)),
    getDeliveryGasCost: (name) => found(costs.get(name)),
    findUniswapSwap: (name) => swaps.get(name),
  };
}

/** @throws ServiceError UPSTREAM_UNAVAILABLE when facts lack something of what is needed */
export function assertStateCovers(facts: ChainState, { pools, uintCalls, deliveries }: ReadSet): void {
  for (const name of pools.keys()) facts.getPool(name);
  for (const name of uintCalls.keys()) facts.getUint(name);
  for (const name of deliveries.keys()) facts.getDeliveryGasCost(name);
}

function buildContractCalls(pools: ReadSet["pools"], numbers: ReadSet["uintCalls"]): ReadonlyMap<string, ContractCall> {
  const views = new Map(numbers);
  for (const [name, { address: to }] of pools) {
    views.set(`${name} 0`, { to, data: getTokenBalanceSelector + encodeWord(0n) });
    views.set(`${name} 1`, { to, data: getTokenBalanceSelector + encodeWord(1n) });
    views.set(`${name} a`, { to, data: getAPreciseSelector });
    views.set(`${name} fee`, { to, data: swapStorageSelector });
  }
  return views;
}

/** A delivery as it would be sent now. */
interface DeliveryCall {
  readonly key: string;
  readonly delivery: DeliveryTransaction;
  readonly call: { readonly from?: string; readonly to: string; readonly data: string };
}

function buildDeliveryCall(name: string, delivery: DeliveryTransaction, nowSeconds: number): DeliveryCall {
  const { from, to } = delivery;
  const data = delivery.encodeCalldata(nowSeconds);
  return { key: name, delivery, call: from === undefined ? { to, data } : { from, to, data } };
}

interface EstimatedDeliveryCall extends DeliveryCall {
  /** undefined: the chain did not say. */
  readonly gas: bigint | undefined;
}

function addGasEstimate(transaction: DeliveryCall, outcome: RpcOutcome | undefined): EstimatedDeliveryCall {
  const { fallbackGas, gasMargin } = transaction.delivery;
  if (isReverted(outcome)) return { ...transaction, gas: fallbackGas };
  const estimate = parseQuantityOutcome(outcome);
  return { ...transaction, gas: estimate === undefined ? undefined : estimate + gasMargin };
}

/** The cost of each transaction by name; one that the chain did not say is missing. */
async function readL1Fees(
  client: ChainClient,
  estimated: readonly EstimatedDeliveryCall[],
  gasPrice: bigint | undefined,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, DeliveryGasCost>> {
  const costs = new Map<string, DeliveryGasCost>();
  const asked: { readonly name: string; readonly gas: bigint; readonly call: RpcCall }[] = [];
  for (const { key: name, delivery, call, gas } of estimated) {
    if (gas === undefined) continue;
    if (!delivery.hasL1Fee || gasPrice === undefined) {
      costs.set(name, { gas, l1Fee: 0n });
      continue;
    }
    // The unsigned transaction in its old form, as the SDK hands it to the oracle: nonce and value are empty.
    const bytes = encodeRlpList([0n, gasPrice, gas, call.to, 0n, call.data]);
    const data = getL1FeeSelector + encodeWord(32n) + encodeBytes(bytes);
    asked.push({ name, gas, call: { method: "eth_call", params: [{ to: GAS_PRICE_ORACLE_ADDRESS, data }, "latest"] } });
  }
  if (asked.length === 0) return costs;
  const calls = asked.map(({ call }) => call);
  const outcomes = await client.sendBatch(calls, signal);
  for (const [place, { name, gas }] of asked.entries()) {
    const outcome = outcomes[place];
    // As in the SDK: what the oracle reverts on costs nothing.
    const l1Fee = isReverted(outcome) ? 0n : decodeUintResult(outcome);
    if (l1Fee !== undefined) costs.set(name, { gas, l1Fee });
  }
  return costs;
}

function parseQuantityOutcome(outcome: RpcOutcome | undefined): bigint | undefined {
  const result = getResult(outcome);
  return isQuantity(result) ? BigInt(result) : undefined;
}

function createInvalidResponseError({ slug }: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} gives an answer that Hop's contracts could not give`);
}
