import type { ContractCall } from "../../chain/abi/multicall.js";
import type { UniswapTickWindow } from "./uniswap-tick-window.js";

/** A transaction that brings a transfer to its recipient; what it costs does not depend on the amount. */
export interface DeliveryTransaction {
  readonly from: string | undefined;
  readonly to: string;
  /** Calldata as 0x-prefixed hex. @param nowSeconds Unix seconds */
  encodeCalldata(nowSeconds: number): string;
  /** Gas where the node says that it would revert. */
  readonly fallbackGas: bigint;
  /** Gas that is added to what the node estimates. */
  readonly gasMargin: bigint;
  /** Whether the chain charges for the transaction's bytes on L1, in the way of the OP stack. */
  readonly hasL1Fee: boolean;
}

/** A pool of the StableSwap kind. */
export interface PoolRef {
  readonly address: string;
  /** Of both of its tokens. */
  readonly decimals: number;
}

/** What one route needs of one chain, by names: what has the same name is the same for all routes, and read once. */
export interface ReadSet {
  readonly pools: ReadonlyMap<string, PoolRef>;
  /** Functions that return one number. */
  readonly uintCalls: ReadonlyMap<string, ContractCall>;
  readonly deliveries: ReadonlyMap<string, DeliveryTransaction>;
  /** Of pools that USDC.e is swapped in. */
  readonly tickWindows: ReadonlyMap<string, UniswapTickWindow>;
  /** Whether the price of gas has a part in it. */
  readonly includesGasPrice: boolean;
}

/** What needs are made of, where it is needed at all. */
export interface ReadSetParts {
  readonly pool?: PoolRef | undefined;
  readonly uintCall?: ContractCall | undefined;
  readonly delivery?: DeliveryTransaction | undefined;
  readonly includesGasPrice?: boolean;
}

/** undefined where nothing is needed. */
export function createReadSet({
  pool,
  uintCall,
  delivery,
  includesGasPrice = false,
}: ReadSetParts): ReadSet | undefined {
  if (pool === undefined && uintCall === undefined && delivery === undefined && !includesGasPrice) return undefined;
  return {
    pools: toSingleEntryMap(pool, ({ address }) => address),
    uintCalls: toSingleEntryMap(uintCall, getCallKey),
    deliveries: toSingleEntryMap(delivery, getDeliveryKey),
    tickWindows: new Map(),
    includesGasPrice,
  };
}

/** All that several routes need. */
export function mergeReadSets(needs: readonly ReadSet[]): ReadSet {
  return {
    pools: new Map(needs.flatMap(({ pools }) => [...pools])),
    uintCalls: new Map(needs.flatMap(({ uintCalls }) => [...uintCalls])),
    deliveries: new Map(needs.flatMap(({ deliveries }) => [...deliveries])),
    tickWindows: new Map(needs.flatMap(({ tickWindows }) => [...tickWindows])),
    includesGasPrice: needs.some(({ includesGasPrice }) => includesGasPrice),
  };
}

/** Name of a set of needs: equal for equal needs of one chain. */
export function getReadSetKey({ pools, uintCalls, deliveries, tickWindows, includesGasPrice }: ReadSet): string {
  return JSON.stringify([
    ...[pools, uintCalls, deliveries, tickWindows].map((each) => [...each.keys()]),
    includesGasPrice,
  ]);
}

export function getCallKey({ to, data }: ContractCall): string {
  return `${to} ${data}`;
}

export function getDeliveryKey(delivery: DeliveryTransaction): string {
  return `${delivery.from ?? ""} ${delivery.to} ${delivery.encodeCalldata(0)}`;
}

function toSingleEntryMap<T>(value: T | undefined, nameOf: (value: T) => string): ReadonlyMap<string, T> {
  return new Map(value === undefined ? [] : [[nameOf(value), value]]);
}
