import type { View } from "../../chain/abi/multicall.js";
import type { UniswapWindow } from "./uniswap-tick-window.js";

/** A transaction that brings a transfer to its recipient; what it costs does not depend on the amount. */
export interface Delivery {
  readonly from: string | undefined;
  readonly to: string;
  /** Calldata as 0x-prefixed hex. @param nowSeconds Unix seconds */
  data(nowSeconds: number): string;
  /** Gas where the node says that it would revert. */
  readonly fallbackGas: bigint;
  /** Gas that is added to what the node estimates. */
  readonly margin: bigint;
  /** Whether the chain charges for the transaction's bytes on L1, in the way of the OP stack. */
  readonly hasL1Fee: boolean;
}

/** A pool of the StableSwap kind. */
export interface PoolNeed {
  readonly address: string;
  /** Of both of its tokens. */
  readonly decimals: number;
}

/** What one route needs of one chain, by names: what has the same name is the same for all routes, and read once. */
export interface ChainNeeds {
  readonly pools: ReadonlyMap<string, PoolNeed>;
  /** Functions that return one number. */
  readonly numbers: ReadonlyMap<string, View>;
  readonly deliveries: ReadonlyMap<string, Delivery>;
  /** Of pools that USDC.e is swapped in. */
  readonly windows: ReadonlyMap<string, UniswapWindow>;
  /** Whether the price of gas has a part in it. */
  readonly gasPrice: boolean;
}

/** What needs are made of, where it is needed at all. */
export interface NeedParts {
  readonly pool?: PoolNeed | undefined;
  readonly number?: View | undefined;
  readonly delivery?: Delivery | undefined;
  readonly gasPrice?: boolean;
}

/** undefined where nothing is needed. */
export function needsOf({ pool, number, delivery, gasPrice = false }: NeedParts): ChainNeeds | undefined {
  if (pool === undefined && number === undefined && delivery === undefined && !gasPrice) return undefined;
  return {
    pools: mapOf(pool, ({ address }) => address),
    numbers: mapOf(number, numberName),
    deliveries: mapOf(delivery, deliveryName),
    windows: new Map(),
    gasPrice,
  };
}

/** All that several routes need. */
export function union(needs: readonly ChainNeeds[]): ChainNeeds {
  return {
    pools: new Map(needs.flatMap(({ pools }) => [...pools])),
    numbers: new Map(needs.flatMap(({ numbers }) => [...numbers])),
    deliveries: new Map(needs.flatMap(({ deliveries }) => [...deliveries])),
    windows: new Map(needs.flatMap(({ windows }) => [...windows])),
    gasPrice: needs.some(({ gasPrice }) => gasPrice),
  };
}

/** Name of a set of needs: equal for equal needs of one chain. */
export function needsName({ pools, numbers, deliveries, windows, gasPrice }: ChainNeeds): string {
  return JSON.stringify([...[pools, numbers, deliveries, windows].map((each) => [...each.keys()]), gasPrice]);
}

export function numberName({ to, data }: View): string {
  return `${to} ${data}`;
}

export function deliveryName(delivery: Delivery): string {
  return `${delivery.from ?? ""} ${delivery.to} ${delivery.data(0)}`;
}

function mapOf<T>(value: T | undefined, nameOf: (value: T) => string): ReadonlyMap<string, T> {
  return new Map(value === undefined ? [] : [[nameOf(value), value]]);
}
