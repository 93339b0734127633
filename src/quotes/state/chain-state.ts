import type { Block } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { Clocks } from "../../resilience/clock.js";
import { createUniswapSwapCalculator, type UniswapSwapCalculator } from "../math/uniswap-v3.js";
import { type ContractRead, type DeliveryTransaction, getDeliveryTransactionKey, type ReadSet } from "./read-set.js";
import type { SwapPoolState } from "./uniswap-tick-window.js";

/** Runs a read of chain state; for metrics and tracing. @param read `readSetCount`: number of read sets in this read */
export type ChainStateReadInterceptor = (
  read: { readonly chain: string; readonly readSetCount: number },
  run: () => Promise<ChainState>,
) => Promise<ChainState>;

/** The time of a read on both clocks. */
export type ReadTimestamps = Pick<ChainState, "readAt" | "readAtUnixSeconds">;

/** Result of one read as plain data, which other processes can use. Contains only what was read and was valid. */
export type ChainStateValues = ReadTimestamps & Pick<ChainState, "block" | "gasPrice" | "values">;

/** Gas of a delivery, and its L1 fee in wei; 0 where the chain charges none. */
export type DeliveryGasCost = Readonly<Record<"gas" | "l1Fee", bigint>>;

/** The values of one read, of this process or another one. The methods throw ServiceError UPSTREAM_UNAVAILABLE for one that was not read. */
export class ChainState {
  /** The block of all contract reads. */
  readonly block: Block;
  /** Start of the read, milliseconds on a monotonic clock; the state's age counts from here. */
  readonly readAt: number;
  /** The same time in Unix seconds; deadlines in the deliveries count from here. */
  readonly readAtUnixSeconds: number;
  /** Wei; undefined if no read set includes it. */
  readonly gasPrice: bigint | undefined;
  /** By the keys of contract reads and deliveries; undefined: the response to an optional read was invalid. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly #slug: string;
  readonly #swaps = new Map<string, UniswapSwapCalculator>();

  /** @param slug of the chain, for error messages */
  constructor({ block, readAt, readAtUnixSeconds, gasPrice, values }: ChainStateValues, slug: string) {
    this.block = block;
    this.readAt = readAt;
    this.readAtUnixSeconds = readAtUnixSeconds;
    this.gasPrice = gasPrice;
    this.values = values;
    this.#slug = slug;
  }

  get<Value>(read: ContractRead<Value>): Value {
    return this.#requireRead(this.find(read));
  }

  /** Returns the value of an optional read; undefined if the response was invalid. */
  find<Value>({ key }: Pick<ContractRead<Value>, "key" | "plan">): Value | undefined {
    return this.values.get(key) as Value | undefined;
  }

  getDeliveryGasCost(delivery: DeliveryTransaction): DeliveryGasCost {
    return this.#requireRead(this.values.get(getDeliveryTransactionKey(delivery)) as DeliveryGasCost | undefined);
  }

  /** undefined: the pool's responses do not allow local swap arithmetic; call its Quoter contract instead. */
  findUniswapSwap(address: string): UniswapSwapCalculator | undefined {
    const created = this.#swaps.get(address);
    const pool = this.#findSwapPool(address);
    if (created !== undefined || pool === undefined) return created;
    const swap = createUniswapSwapCalculator(pool, pool.zeroForOne);
    this.#swaps.set(address, swap);
    return swap;
  }

  /** Returns whether ticks of the pool were read: the first read of a tick window only finds out which there are. */
  hasTicks(address: string): boolean {
    return (this.#findSwapPool(address)?.liquidityNet.size ?? 0) > 0;
  }

  /** Returns whether everything in a read set was read, and what is needed was valid. */
  covers({ contractReads, deliveries, includesGasPrice }: ReadSet): boolean {
    if (includesGasPrice && this.gasPrice === undefined) return false;
    for (const key of contractReads.keys()) if (!this.values.has(key)) return false;
    for (const key of deliveries.keys()) if (!this.values.has(key)) return false;
    return true;
  }

  /** @throws ServiceError UPSTREAM_UNAVAILABLE unless it covers the read set */
  assertCovers(readSet: ReadSet): void {
    if (!this.covers(readSet)) throw createInvalidResponseError(this.#slug);
  }

  #findSwapPool(address: string): SwapPoolState | undefined {
    return this.values.get(address) as SwapPoolState | undefined;
  }

  #requireRead<T>(value: T | undefined): T {
    if (value === undefined) throw createInvalidResponseError(this.#slug);
    return value;
  }
}

/** Creates the error for a response that no Hop contract gives. */
export function createInvalidResponseError(slug: string): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned an invalid response for a Hop contract`);
}

/** Returns the times for a read that begins now. */
export function captureReadTimestamps({ now, monotonicNow }: Clocks): ReadTimestamps {
  return { readAt: monotonicNow(), readAtUnixSeconds: Math.floor(now() / 1000) };
}
