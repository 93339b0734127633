import { encodeWord } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import type { UniswapTickWindow } from "./uniswap-tick-window.js";

/** The transaction that delivers a transfer to its recipient. Its cost does not depend on the amount. */
export interface DeliveryTransaction {
  readonly from: string | undefined;
  readonly to: string;
  /** Calldata as 0x-prefixed hex, without the deadline. */
  readonly calldata: string;
  /** Time until the deadline, which is the last word of the calldata; undefined: it has none. */
  readonly deadlineSeconds: number | undefined;
  /** Gas if the estimate reverts. */
  readonly fallbackGas: bigint;
  /** Gas added to the node's estimate. */
  readonly gasMargin: bigint;
  /** Whether the chain charges for the transaction data on L1 like the OP Stack does. */
  readonly hasL1Fee: boolean;
}

/** Address of a StableSwap pool to read. */
export interface PoolRef {
  readonly address: string;
  /** Decimals of both tokens. */
  readonly decimals: number;
}

/**
 * What one route reads on one chain, by key. Equal reads of several routes have equal keys and are sent once. Plain data
 * except for the tick windows: another process can read it.
 */
export interface ReadSet {
  readonly pools: ReadonlyMap<string, PoolRef>;
  /** Contract functions that return one uint256. */
  readonly uintCalls: ReadonlyMap<string, ContractCall>;
  /** The same, for values without which a quote is still possible. */
  readonly optionalUintCalls: ReadonlyMap<string, ContractCall>;
  readonly deliveries: ReadonlyMap<string, DeliveryTransaction>;
  /** Tick windows of the Uniswap pools that swap USDC.e. */
  readonly tickWindows: ReadonlyMap<string, UniswapTickWindow>;
  readonly includesGasPrice: boolean;
}

/** Reads only the block. */
export const EMPTY_READ_SET: ReadSet = {
  pools: new Map(),
  uintCalls: new Map(),
  optionalUintCalls: new Map(),
  deliveries: new Map(),
  tickWindows: new Map(),
  includesGasPrice: false,
};

/** Creates a read set; undefined when there is nothing to read. */
export function createReadSet({
  pool,
  uintCall,
  delivery,
  includesGasPrice = false,
}: {
  readonly pool?: PoolRef | undefined;
  readonly uintCall?: ContractCall | undefined;
  readonly delivery?: DeliveryTransaction | undefined;
  readonly includesGasPrice?: boolean;
}): ReadSet | undefined {
  if (pool === undefined && uintCall === undefined && delivery === undefined && !includesGasPrice) return undefined;
  return {
    pools: toSingleEntryMap(pool, ({ address }) => address),
    uintCalls: toSingleEntryMap(uintCall, getCallKey),
    optionalUintCalls: new Map(),
    deliveries: toSingleEntryMap(delivery, getDeliveryKey),
    tickWindows: new Map(),
    includesGasPrice,
  };
}

/** Returns a read set with more calls, without which a quote is still possible; undefined when there is nothing to read. */
export function addOptionalCalls(
  readSet: ReadSet | undefined,
  optionalCalls: readonly ContractCall[],
): ReadSet | undefined {
  if (optionalCalls.length === 0) return readSet;
  const optionalUintCalls = new Map(optionalCalls.map((call) => [getCallKey(call), call] as const));
  return { ...(readSet ?? EMPTY_READ_SET), optionalUintCalls };
}

/** Returns a read set that reads a tick window too. */
export function addTickWindow(readSet: ReadSet | undefined, window: UniswapTickWindow): ReadSet {
  return { ...(readSet ?? EMPTY_READ_SET), tickWindows: new Map([[window.pool.address, window]]) };
}

/** Returns the union of the read sets. */
export function mergeReadSets(readSets: readonly ReadSet[]): ReadSet {
  return {
    pools: new Map(readSets.flatMap(({ pools }) => [...pools])),
    uintCalls: new Map(readSets.flatMap(({ uintCalls }) => [...uintCalls])),
    optionalUintCalls: new Map(readSets.flatMap(({ optionalUintCalls }) => [...optionalUintCalls])),
    deliveries: new Map(readSets.flatMap(({ deliveries }) => [...deliveries])),
    tickWindows: new Map(readSets.flatMap(({ tickWindows }) => [...tickWindows])),
    includesGasPrice: readSets.some(({ includesGasPrice }) => includesGasPrice),
  };
}

/** Returns a key that is equal for equal read sets of one chain. */
export function getReadSetKey(readSet: ReadSet): string {
  const { pools, uintCalls, optionalUintCalls, deliveries, tickWindows, includesGasPrice } = readSet;
  return JSON.stringify([
    ...[pools, uintCalls, optionalUintCalls, deliveries, tickWindows].map((reads) => [...reads.keys()]),
    includesGasPrice,
  ]);
}

export function getCallKey({ to, data }: ContractCall): string {
  return `${to} ${data}`;
}

export function getDeliveryKey(delivery: DeliveryTransaction): string {
  return `${delivery.from ?? ""} ${delivery.to} ${encodeDeliveryCalldata(delivery, 0)}`;
}

/** Returns the calldata of a delivery that is sent at this time, as 0x-prefixed hex. @param nowSeconds Unix seconds */
export function encodeDeliveryCalldata({ calldata, deadlineSeconds }: DeliveryTransaction, nowSeconds: number): string {
  return deadlineSeconds === undefined ? calldata : calldata + encodeWord(BigInt(nowSeconds + deadlineSeconds));
}

function toSingleEntryMap<T>(value: T | undefined, getKey: (value: T) => string): ReadonlyMap<string, T> {
  return new Map(value === undefined ? [] : [[getKey(value), value]]);
}
