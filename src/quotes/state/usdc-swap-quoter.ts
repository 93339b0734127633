import { encodeBytes, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import { type ChainClient, isReverted, type RpcCall, type RpcCallResult } from "../../chain/chain-client.js";
import { decodeUintResult } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { UsdcSwapPool } from "../../hop/cctp.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { SwapRevertError } from "../math/stable-swap.js";
import type { ChainState } from "./chain-state.js";

/** Output of a swap in the token's smallest unit, and when its read started, milliseconds on a monotonic clock. */
export interface TimestampedAmount {
  readonly amountOut: bigint;
  readonly readAt: number;
}

/** Maximum number of amounts in one request. */
const MAX_BATCH_SIZE = 20;
/** Maximum number of pending amounts, about what a node serves in a few seconds. One caller gets at most half of it. */
const MAX_PENDING_AMOUNTS = 2_000;
const MAX_CACHED_AMOUNTS = 10_000;

const quoteExactInputSelector = toFunctionSelector("quoteExactInput(bytes,uint256)");

interface PendingAmount {
  readonly amountIn: bigint;
  resolve(amount: TimestampedAmount): void;
  reject(error: unknown): void;
}

/**
 * Quotes swaps of USDC.e to USDC on one chain. Computes them from the tick window of the Uniswap pool where that covers
 * the amount; otherwise calls Uniswap's Quoter contract, once for each new amount.
 */
export class UsdcSwapQuoter {
  readonly #options;
  readonly #path: string;
  readonly #cache = new Map<bigint, TimestampedAmount>();
  readonly #inFlight = new Map<bigint, Promise<TimestampedAmount>>();
  readonly #callerQuota = new FairQuota(() => MAX_PENDING_AMOUNTS);
  #pending: PendingAmount[] = [];
  #isDraining = false;

  constructor(options: {
    readonly client: ChainClient;
    readonly pool: UsdcSwapPool;
    /** How long an amount is served from the cache, in milliseconds. */
    readonly maxAgeMs: number;
    /** Milliseconds on a monotonic clock. */
    readonly now: () => number;
    readonly signal: AbortSignal;
  }) {
    this.#options = options;
    this.#path = encodeSwapPath(options.pool);
  }

  /**
   * Amounts are in the token's smallest unit. Returns synchronously if no call is needed or the amount is cached.
   * @param requester its caller is only read if a call is needed
   * @param state undefined: the pool's tick window was not read
   * @throws SwapRevertError for an amount that the pool cannot swap, ServiceError UPSTREAM_UNAVAILABLE without a response,
   * OVERLOADED when too many amounts are pending, in total or for this caller
   */
  quoteAmountOut(
    amountIn: bigint,
    requester: { readonly caller: string },
    state?: ChainState,
  ): MaybePromise<TimestampedAmount> {
    const { client, pool, maxAgeMs, now } = this.#options;
    const computed = state?.findUniswapSwap(pool.address)?.(amountIn);
    if (state !== undefined && computed !== undefined) return { amountOut: computed, readAt: state.readAt };
    const cached = this.#cache.get(amountIn);
    if (cached !== undefined && now() - cached.readAt <= maxAgeMs) return cached;
    const pending = this.#inFlight.get(amountIn);
    if (pending !== undefined) return pending;
    const releaseSlot = this.#callerQuota.tryAcquire(requester.caller);
    if (releaseSlot === undefined) {
      const message = `too many pending Uniswap quotes on ${client.slug}`;
      throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
    }
    const result = new Promise<TimestampedAmount>((resolve, reject) => {
      this.#pending.push({ amountIn, resolve, reject });
    });
    result.then(releaseSlot, releaseSlot);
    this.#inFlight.set(amountIn, result);
    if (!this.#isDraining) void this.#drain();
    return result;
  }

  /** Sends one batch at a time; the next one fills meanwhile. */
  async #drain(): Promise<void> {
    const { client, now, signal } = this.#options;
    this.#isDraining = true;
    while (this.#pending.length > 0) {
      const batch = this.#pending.slice(0, MAX_BATCH_SIZE);
      this.#pending = this.#pending.slice(MAX_BATCH_SIZE);
      const readAt = now();
      try {
        const calls = batch.map(({ amountIn }) => this.#buildCall(amountIn));
        const outcomes = await client.sendBatch(calls, signal);
        for (const [index, pending] of batch.entries()) this.#settle(pending, outcomes[index], readAt);
      } catch (error) {
        for (const { amountIn, reject } of batch) {
          this.#inFlight.delete(amountIn);
          reject(error);
        }
      }
    }
    this.#isDraining = false;
  }

  #buildCall(amountIn: bigint): RpcCall {
    const data = quoteExactInputSelector + encodeWord(64n) + encodeWord(amountIn) + encodeBytes(this.#path);
    return { method: "eth_call", params: [{ to: this.#options.pool.quoterAddress, data }, "latest"] };
  }

  #settle({ amountIn, resolve, reject }: PendingAmount, outcome: RpcCallResult | undefined, readAt: number): void {
    this.#inFlight.delete(amountIn);
    const amountOut = decodeUintResult(outcome);
    if (isReverted(outcome)) reject(new SwapRevertError("the Quoter contract reverts"));
    else if (amountOut === undefined) reject(createInvalidResponseError(this.#options.client));
    else {
      const amount = { amountOut, readAt };
      this.#store(amountIn, amount);
      resolve(amount);
    }
  }

  /** Stores an amount as the newest one; evicts the oldest ones beyond the limit. */
  #store(amountIn: bigint, amount: TimestampedAmount): void {
    this.#cache.delete(amountIn);
    this.#cache.set(amountIn, amount);
    for (const oldest of this.#cache.keys()) {
      if (this.#cache.size <= MAX_CACHED_AMOUNTS) break;
      this.#cache.delete(oldest);
    }
  }
}

/** Encodes the path argument of Uniswap's Quoter: token in, fee (3 bytes), token out. */
function encodeSwapPath({ bridgedUsdc, nativeUsdc, feePips }: UsdcSwapPool): string {
  const fee = feePips.toString(16).padStart(6, "0");
  return `0x${bridgedUsdc.slice(2)}${fee}${nativeUsdc.slice(2)}`.toLowerCase();
}

function createInvalidResponseError({ slug }: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned an invalid response for a Uniswap contract`);
}
