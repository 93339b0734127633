import type { Block } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { Clocks } from "../../resilience/clock.js";
import type { StableSwapPool } from "../math/stable-swap.js";
import { createUniswapSwapCalculator, type UniswapSwapCalculator } from "../math/uniswap-v3.js";
import type { ReadSet } from "./read-set.js";
import type { SwapPoolState } from "./uniswap-tick-window.js";

/** Result of one read of a chain. The methods throw ServiceError UPSTREAM_UNAVAILABLE for a value that was not read. */
export interface ChainState extends ChainStateHeader {
  getPool(key: string): StableSwapPool;
  getUint(key: string): bigint;
  /** Returns an optional value; undefined if the response was invalid. */
  findOptionalUint(key: string): bigint | undefined;
  getDeliveryGasCost(key: string): DeliveryGasCost;
  /** undefined: the pool's responses do not allow local swap arithmetic; call its Quoter contract instead. */
  findUniswapSwap(key: string): UniswapSwapCalculator | undefined;
  /** Returns whether ticks of the pool were read: the first read of a tick window only finds out which there are. */
  hasTicks(key: string): boolean;
}

/** The same result as plain data, which other processes can use. Contains only what has been read and was valid. */
export interface ChainStateValues extends ChainStateHeader {
  readonly pools: ReadonlyMap<string, StableSwapPool>;
  readonly uints: ReadonlyMap<string, bigint>;
  /** Every optional value that was read; undefined: the response was invalid. */
  readonly optionalUints: ReadonlyMap<string, bigint | undefined>;
  readonly deliveries: ReadonlyMap<string, DeliveryGasCost>;
  /** Every pool whose tick window was read; undefined: its responses are invalid. */
  readonly swapPools: ReadonlyMap<string, SwapPoolState | undefined>;
}

interface ChainStateHeader {
  /** The block of all contract reads. */
  readonly block: Block;
  /** Start of the read, milliseconds on a monotonic clock; the state's age counts from here. */
  readonly readAt: number;
  /** The same time in Unix seconds; deadlines in the deliveries count from here. */
  readonly readAtUnixSeconds: number;
  /** Wei; undefined if no read set includes it. */
  readonly gasPrice: bigint | undefined;
}

/** Runs a read of chain state; for metrics and tracing. */
export type ChainStateReadInterceptor = (read: ChainStateRead, run: () => Promise<ChainState>) => Promise<ChainState>;

export interface ChainStateRead {
  readonly chain: string;
  /** Number of read sets in this read. */
  readonly readSetCount: number;
}

/** The time of a read on both clocks. */
export type ReadTimestamps = Pick<ChainState, "readAt" | "readAtUnixSeconds">;

export interface DeliveryGasCost {
  readonly gas: bigint;
  /** Wei; 0 where the chain charges none. */
  readonly l1Fee: bigint;
}

/** Creates the state from what this process or another one has read. @param slug of the chain, for error messages */
export function createChainState(values: ChainStateValues, slug: string): ChainState {
  const { block, readAt, readAtUnixSeconds, gasPrice, pools, uints, optionalUints, deliveries } = values;
  const swaps = new Map(
    [...values.swapPools].map(([key, pool]) => [key, pool && createUniswapSwapCalculator(pool, pool.zeroForOne)]),
  );
  function requireRead<T>(value: T | undefined): T {
    if (value === undefined) throw createInvalidResponseError(slug);
    return value;
  }
  return {
    block,
    readAt,
    readAtUnixSeconds,
    gasPrice,
    getPool: (key) => requireRead(pools.get(key)),
    getUint: (key) => requireRead(uints.get(key)),
    findOptionalUint: (key) => optionalUints.get(key),
    getDeliveryGasCost: (key) => requireRead(deliveries.get(key)),
    findUniswapSwap: (key) => swaps.get(key),
    hasTicks: (key) => (values.swapPools.get(key)?.liquidityNet.size ?? 0) > 0,
  };
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

/** @throws ServiceError UPSTREAM_UNAVAILABLE when a value of the read set is missing from the state */
export function assertStateCovers(
  state: ChainState,
  slug: string,
  { pools, uintCalls, deliveries, includesGasPrice }: ReadSet,
): void {
  if (includesGasPrice && state.gasPrice === undefined) throw createInvalidResponseError(slug);
  for (const key of pools.keys()) state.getPool(key);
  for (const key of uintCalls.keys()) state.getUint(key);
  for (const key of deliveries.keys()) state.getDeliveryGasCost(key);
}

/** Creates the error for a response that no Hop contract gives. */
export function createInvalidResponseError(slug: string): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned an invalid response for a Hop contract`);
}

/** Returns the times for a read that begins now. */
export function captureReadTimestamps({ now, monotonicNow }: Clocks): ReadTimestamps {
  return { readAt: monotonicNow(), readAtUnixSeconds: Math.floor(now() / 1000) };
}
