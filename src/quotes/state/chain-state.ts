import type { Block } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { Clocks } from "../../resilience/clock.js";
import type { StableSwapPool } from "../math/stable-swap.js";
import { createUniswapSwapCalculator, type UniswapSwapCalculator } from "../math/uniswap-v3.js";
import type { ReadSet } from "./read-set.js";
import type { SwapPoolState } from "./uniswap-tick-window.js";

/** Result of one read of a chain as plain data, which other processes can use. Contains only what was read and was valid. */
export interface ChainStateValues {
  /** The block of all contract reads. */
  readonly block: Block;
  /** Start of the read, milliseconds on a monotonic clock; the state's age counts from here. */
  readonly readAt: number;
  /** The same time in Unix seconds; deadlines in the deliveries count from here. */
  readonly readAtUnixSeconds: number;
  /** Wei; undefined if no read set includes it. */
  readonly gasPrice: bigint | undefined;
  readonly pools: ReadonlyMap<string, StableSwapPool>;
  readonly uints: ReadonlyMap<string, bigint>;
  /** Every optional value that was read; undefined: the response was invalid. */
  readonly optionalUints: ReadonlyMap<string, bigint | undefined>;
  readonly deliveries: ReadonlyMap<string, DeliveryGasCost>;
  /** Every pool whose tick window was read; undefined: its responses are invalid. */
  readonly swapPools: ReadonlyMap<string, SwapPoolState | undefined>;
}

/** Runs a read of chain state; for metrics and tracing. @param read `readSetCount`: number of read sets in this read */
export type ChainStateReadInterceptor = (
  read: { readonly chain: string; readonly readSetCount: number },
  run: () => Promise<ChainState>,
) => Promise<ChainState>;

/** The time of a read on both clocks. */
export type ReadTimestamps = Pick<ChainStateValues, "readAt" | "readAtUnixSeconds">;

export interface DeliveryGasCost {
  readonly gas: bigint;
  /** Wei; 0 where the chain charges none. */
  readonly l1Fee: bigint;
}

/** The values of one read, of this process or another one. The methods throw ServiceError UPSTREAM_UNAVAILABLE for one that was not read. */
export class ChainState {
  readonly values: ChainStateValues;
  readonly block: Block;
  readonly readAt: number;
  readonly readAtUnixSeconds: number;
  readonly gasPrice: bigint | undefined;
  readonly #slug: string;
  readonly #swaps: ReadonlyMap<string, UniswapSwapCalculator | undefined>;

  /** @param slug of the chain, for error messages */
  constructor(values: ChainStateValues, slug: string) {
    this.values = values;
    this.block = values.block;
    this.readAt = values.readAt;
    this.readAtUnixSeconds = values.readAtUnixSeconds;
    this.gasPrice = values.gasPrice;
    this.#slug = slug;
    this.#swaps = new Map(
      [...values.swapPools].map(([key, pool]) => [key, pool && createUniswapSwapCalculator(pool, pool.zeroForOne)]),
    );
  }

  getPool(key: string): StableSwapPool {
    return this.#requireRead(this.values.pools.get(key));
  }

  getUint(key: string): bigint {
    return this.#requireRead(this.values.uints.get(key));
  }

  /** Returns an optional value; undefined if the response was invalid. */
  findOptionalUint(key: string): bigint | undefined {
    return this.values.optionalUints.get(key);
  }

  getDeliveryGasCost(key: string): DeliveryGasCost {
    return this.#requireRead(this.values.deliveries.get(key));
  }

  /** undefined: the pool's responses do not allow local swap arithmetic; call its Quoter contract instead. */
  findUniswapSwap(key: string): UniswapSwapCalculator | undefined {
    return this.#swaps.get(key);
  }

  /** Returns whether ticks of the pool were read: the first read of a tick window only finds out which there are. */
  hasTicks(key: string): boolean {
    return (this.values.swapPools.get(key)?.liquidityNet.size ?? 0) > 0;
  }

  /** @throws ServiceError UPSTREAM_UNAVAILABLE when a value of the read set is missing */
  assertCovers({ pools, uintCalls, deliveries, includesGasPrice }: ReadSet): void {
    if (includesGasPrice) this.#requireRead(this.gasPrice);
    for (const key of pools.keys()) this.getPool(key);
    for (const key of uintCalls.keys()) this.getUint(key);
    for (const key of deliveries.keys()) this.getDeliveryGasCost(key);
  }

  #requireRead<T>(value: T | undefined): T {
    if (value === undefined) throw createInvalidResponseError(this.#slug);
    return value;
  }
}

/** Returns whether the values include everything in a read set. */
export function coversReadSet(values: ChainStateValues, readSet: ReadSet): boolean {
  const { pools, uintCalls, optionalUintCalls, deliveries, tickWindows, includesGasPrice } = readSet;
  return (
    (!includesGasPrice || values.gasPrice !== undefined) &&
    hasKeysOf(values.pools, pools) &&
    hasKeysOf(values.uints, uintCalls) &&
    hasKeysOf(values.optionalUints, optionalUintCalls) &&
    hasKeysOf(values.deliveries, deliveries) &&
    hasKeysOf(values.swapPools, tickWindows)
  );
}

function hasKeysOf(values: ReadonlyMap<string, unknown>, reads: ReadonlyMap<string, unknown>): boolean {
  for (const key of reads.keys()) if (!values.has(key)) return false;
  return true;
}

/** Creates the error for a response that no Hop contract gives. */
export function createInvalidResponseError(slug: string): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned an invalid response for a Hop contract`);
}

/** Returns the times for a read that begins now. */
export function captureReadTimestamps({ now, monotonicNow }: Clocks): ReadTimestamps {
  return { readAt: monotonicNow(), readAtUnixSeconds: Math.floor(now() / 1000) };
}
