import { dynamicBytes, selectorOf, uintAt, word } from "../../chain/abi/abi-encoding.js";
import type { View } from "../../chain/abi/multicall.js";
import { rlpList } from "../../chain/abi/rlp.js";
import {
  type ChainClient,
  isQuantity,
  isRevert,
  type RpcCall,
  type RpcOutcome,
  resultOf,
} from "../../chain/chain-client.js";
import { type Block, readViews, wordOf } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { Chain } from "../../hop/networks.js";
import type { Pool } from "../math/stable-swap.js";
import type { UniswapSwap } from "../math/uniswap-v3.js";
import { type ChainNeeds, type Delivery, union } from "./read-set.js";

/** What a chain said in one read. The methods throw ServiceError UPSTREAM_UNAVAILABLE for what could not be read. */
export interface ChainFacts {
  /** The block in which everything that contracts said was read. */
  readonly block: Block;
  /** When the read began, milliseconds on a steady clock: their age counts from here. */
  readonly readAt: number;
  /** Unix seconds then: deadlines in the deliveries count from here. */
  readonly nowSeconds: number;
  /** Wei; undefined where nobody needed it. */
  readonly gasPrice: bigint | undefined;
  pool(name: string): Pool;
  number(name: string): bigint;
  delivery(name: string): GasCost;
  /** undefined: the pool's answers tell of no swap, and its quoter must be asked. */
  uniswapSwap(name: string): UniswapSwap | undefined;
}

/** What a read takes for now. */
export type ReadTime = Pick<ChainFacts, "readAt" | "nowSeconds">;

export interface GasCost {
  readonly gas: bigint;
  /** Wei; 0 where the chain charges none. */
  readonly l1Fee: bigint;
}

const getTokenBalance = selectorOf("getTokenBalance(uint8)");
const getAPrecise = selectorOf("getAPrecise()");
const swapStorage = selectorOf("swapStorage()");
/** Place of the swap fee in what `swapStorage()` returns. */
const swapFeeWord = 4;
const getL1Fee = selectorOf("getL1Fee(bytes)");
/** The OP stack's contract that prices a transaction's bytes on L1. */
const gasPriceOracle = "0x420000000000000000000000000000000000000f";

const arbitrumSlugs = new Set(["arbitrum", "nova"]);

/**
 * Reads what routes need of a chain: one request, and a second one where L1 fees depend on the gas that the first found.
 * What a contract does not say as it should is missing for the routes that need it, and for no other.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer
 */
export async function readChainFacts(
  client: ChainClient,
  chain: Chain,
  needs: readonly ChainNeeds[],
  { readAt, nowSeconds }: ReadTime,
  signal: AbortSignal,
): Promise<ChainFacts> {
  const { pools, numbers, deliveries, windows, gasPrice: needsGasPrice } = union(needs);
  const plans = new Map([...windows].map(([name, window]) => [name, window.plan()]));
  const views = new Map([...viewsOf(pools, numbers), ...[...plans.values()].flatMap((plan) => [...plan.views])]);
  const transactions = [...deliveries].map(([name, delivery]) => transactionOf(name, delivery, nowSeconds));
  const reading = await readViews(
    client,
    { multicall: chain.multicall, seesL1Blocks: arbitrumSlugs.has(chain.slug) },
    [...views.values()],
    [
      ...(needsGasPrice ? [{ method: "eth_gasPrice", params: [] }] : []),
      ...transactions.map(({ call }) => ({ method: "eth_estimateGas", params: [call] })),
    ],
    signal,
  );
  const gasOutcomes = needsGasPrice ? reading.outcomes.slice(1) : reading.outcomes;
  const gasPrice = needsGasPrice ? quantityOf(reading.outcomes[0]) : undefined;
  if (needsGasPrice && gasPrice === undefined) throw unlikeHop(client);
  const estimated = transactions.map((transaction, place) => withGas(transaction, gasOutcomes[place]));
  const costs = await readL1Fees(client, estimated, gasPrice, signal);

  const answers = new Map([...views.keys()].map((key, place) => [key, reading.answers[place]]));
  const swaps = new Map([...plans].map(([name, plan]) => [name, plan.swapFrom((key) => answers.get(key))]));
  const numberAt = (key: string, place = 0): bigint | undefined => uintAt(answers.get(key) ?? "0x", place);
  function found<T>(value: T | undefined): T {
    if (value === undefined) throw unlikeHop(client);
    return value;
  }
  return {
    block: reading.block,
    readAt,
    nowSeconds,
    gasPrice,
    pool: (name) => ({
      decimals: found(pools.get(name)).decimals,
      balances: [found(numberAt(`${name} 0`)), found(numberAt(`${name} 1`))],
      aPrecise: found(numberAt(`${name} a`)),
      swapFee: found(numberAt(`${name} fee`, swapFeeWord)),
    }),
    number: (name) => found(numberAt(name)),
    delivery: (name) => found(costs.get(name)),
    uniswapSwap: (name) => swaps.get(name),
  };
}

/** @throws ServiceError UPSTREAM_UNAVAILABLE when facts lack something of what is needed */
export function checkFacts(facts: ChainFacts, { pools, numbers, deliveries }: ChainNeeds): void {
  for (const name of pools.keys()) facts.pool(name);
  for (const name of numbers.keys()) facts.number(name);
  for (const name of deliveries.keys()) facts.delivery(name);
}

function viewsOf(pools: ChainNeeds["pools"], numbers: ChainNeeds["numbers"]): ReadonlyMap<string, View> {
  const views = new Map(numbers);
  for (const [name, { address: to }] of pools) {
    views.set(`${name} 0`, { to, data: getTokenBalance + word(0n) });
    views.set(`${name} 1`, { to, data: getTokenBalance + word(1n) });
    views.set(`${name} a`, { to, data: getAPrecise });
    views.set(`${name} fee`, { to, data: swapStorage });
  }
  return views;
}

/** A delivery as it would be sent now. */
interface Transaction {
  readonly name: string;
  readonly delivery: Delivery;
  readonly call: { readonly from?: string; readonly to: string; readonly data: string };
}

function transactionOf(name: string, delivery: Delivery, nowSeconds: number): Transaction {
  const { from, to } = delivery;
  const data = delivery.data(nowSeconds);
  return { name, delivery, call: from === undefined ? { to, data } : { from, to, data } };
}

interface Estimated extends Transaction {
  /** undefined: the chain did not say. */
  readonly gas: bigint | undefined;
}

function withGas(transaction: Transaction, outcome: RpcOutcome | undefined): Estimated {
  const { fallbackGas, margin } = transaction.delivery;
  if (isRevert(outcome)) return { ...transaction, gas: fallbackGas };
  const estimate = quantityOf(outcome);
  return { ...transaction, gas: estimate === undefined ? undefined : estimate + margin };
}

/** The cost of each transaction by name; one that the chain did not say is missing. */
async function readL1Fees(
  client: ChainClient,
  estimated: readonly Estimated[],
  gasPrice: bigint | undefined,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, GasCost>> {
  const costs = new Map<string, GasCost>();
  const asked: { readonly name: string; readonly gas: bigint; readonly call: RpcCall }[] = [];
  for (const { name, delivery, call, gas } of estimated) {
    if (gas === undefined) continue;
    if (!delivery.hasL1Fee || gasPrice === undefined) {
      costs.set(name, { gas, l1Fee: 0n });
      continue;
    }
    // The unsigned transaction in its old form, as the SDK hands it to the oracle: nonce and value are empty.
    const bytes = rlpList([0n, gasPrice, gas, call.to, 0n, call.data]);
    const data = getL1Fee + word(32n) + dynamicBytes(bytes);
    asked.push({ name, gas, call: { method: "eth_call", params: [{ to: gasPriceOracle, data }, "latest"] } });
  }
  if (asked.length === 0) return costs;
  const calls = asked.map(({ call }) => call);
  const outcomes = await client.batch(calls, signal);
  for (const [place, { name, gas }] of asked.entries()) {
    const outcome = outcomes[place];
    // As in the SDK: what the oracle reverts on costs nothing.
    const l1Fee = isRevert(outcome) ? 0n : wordOf(outcome);
    if (l1Fee !== undefined) costs.set(name, { gas, l1Fee });
  }
  return costs;
}

function quantityOf(outcome: RpcOutcome | undefined): bigint | undefined {
  const result = resultOf(outcome);
  return isQuantity(result) ? BigInt(result) : undefined;
}

function unlikeHop({ slug }: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} gives an answer that Hop's contracts could not give`);
}
