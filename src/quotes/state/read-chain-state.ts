import { encodeBytes, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
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
import { ChainState, createInvalidResponseError, type DeliveryGasCost, type ReadTimestamps } from "./chain-state.js";
import { type DeliveryTransaction, encodeDeliveryCalldata, mergeReadSets, type ReadSet } from "./read-set.js";

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
  const { contractReads, deliveries, includesGasPrice } = mergeReadSets(readSets);
  // Single values before pools, and these before tick windows: the order in the recordings of `hop-gateway compare`.
  const plans = [...contractReads.values()]
    .map((read) => ({ read, ...read.plan() }))
    .sort((one, other) => one.calls.length - other.calls.length);
  const calls = [...deliveries.values()].map((delivery) => buildDeliveryCall(delivery, readAtUnixSeconds));
  const { block, returnData, outcomes } = await readContracts(
    client,
    chain.multicallAddress,
    {
      contractCalls: plans.flatMap((plan) => plan.calls),
      otherCalls: [
        ...(includesGasPrice ? [{ method: "eth_gasPrice", params: [] }] : []),
        ...calls.map((call) => ({ method: "eth_estimateGas", params: [call] })),
      ],
    },
    signal,
  );
  const gasOutcomes = includesGasPrice ? outcomes.slice(1) : outcomes;
  const gasPrice = includesGasPrice ? parseQuantityOutcome(outcomes[0]) : undefined;
  if (includesGasPrice && gasPrice === undefined) throw createInvalidResponseError(client.slug);
  const estimates = [...deliveries].map(([key, delivery], index): DeliveryEstimate => {
    return { key, delivery, call: calls[index] as DeliveryCall, gas: parseGas(delivery, gasOutcomes[index]) };
  });
  const values = new Map<string, unknown>(await readL1Fees(client, estimates, gasPrice, signal));
  let offset = 0;
  for (const { read, calls, decode } of plans) {
    const value = decode(returnData.slice(offset, offset + calls.length));
    offset += calls.length;
    if (value !== undefined || read.isOptional) values.set(read.key, value);
  }
  return new ChainState({ block, readAt, readAtUnixSeconds, gasPrice, values }, client.slug);
}

/** The call of a delivery that is sent now. */
type DeliveryCall = ReturnType<typeof buildDeliveryCall>;

function buildDeliveryCall(delivery: DeliveryTransaction, nowSeconds: number) {
  const { from, to } = delivery;
  const data = encodeDeliveryCalldata(delivery, nowSeconds);
  return from === undefined ? { to, data } : { from, to, data };
}

interface DeliveryEstimate {
  readonly key: string;
  readonly delivery: DeliveryTransaction;
  readonly call: DeliveryCall;
  /** undefined: the node returned no estimate. */
  readonly gas: bigint | undefined;
}

function parseGas(
  { fallbackGas, gasMargin }: DeliveryTransaction,
  outcome: RpcCallResult | undefined,
): bigint | undefined {
  if (isReverted(outcome)) return fallbackGas;
  const estimate = parseQuantityOutcome(outcome);
  return estimate === undefined ? undefined : estimate + gasMargin;
}

/** Returns the cost of each delivery by key, without those that have no estimate or no L1 fee. */
async function readL1Fees(
  client: ChainClient,
  estimates: readonly DeliveryEstimate[],
  gasPrice: bigint | undefined,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, DeliveryGasCost>> {
  const costs = new Map<string, DeliveryGasCost>();
  const feeCalls: { readonly key: string; readonly gas: bigint; readonly call: RpcCall }[] = [];
  for (const { key, delivery, call, gas } of estimates) {
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
