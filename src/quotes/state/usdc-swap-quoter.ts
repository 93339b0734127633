import { encodeBytes, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import { type ChainClient, isReverted, type RpcCall, type RpcCallResult } from "../../chain/chain-client.js";
import { decodeUintResult } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { UsdcSwapPool } from "../../hop/usdc-swap-pools.js";
import { createFairQuota } from "../../resilience/fair-quota.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { SwapRevertError } from "../math/swap-revert-error.js";
import type { ChainState } from "./chain-state.js";

/** Output of a swap in the token's smallest unit, and when its read started, milliseconds on a monotonic clock. */
export interface TimestampedAmount {
  readonly amountOut: bigint;
  readonly readAt: number;
}

/**
 * Quotes swaps of USDC.e to USDC on one chain. Computes them from the tick window of the Uniswap pool where that covers
 * the amount; otherwise calls Uniswap's Quoter contract, once for each new amount.
 */
export interface UsdcSwapQuoter {
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
  ): MaybePromise<TimestampedAmount>;
}

export interface UsdcSwapQuoterOptions {
  readonly client: ChainClient;
  readonly pool: UsdcSwapPool;
  /** How long an amount is served from the cache, in milliseconds. */
  readonly maxAgeMs: number;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  readonly signal: AbortSignal;
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

export function createUsdcSwapQuoter({ client, pool, maxAgeMs, now, signal }: UsdcSwapQuoterOptions): UsdcSwapQuoter {
  const cache = new Map<bigint, TimestampedAmount>();
  const inFlight = new Map<bigint, Promise<TimestampedAmount>>();
  const callerQuota = createFairQuota(() => MAX_PENDING_AMOUNTS);
  const queue: { pending: PendingAmount[]; isDraining: boolean } = { pending: [], isDraining: false };
  const path = encodeSwapPath(pool);

  /** Sends one batch at a time; the next one fills meanwhile. */
  async function drainQueue(): Promise<void> {
    queue.isDraining = true;
    while (queue.pending.length > 0) {
      const batch = queue.pending.slice(0, MAX_BATCH_SIZE);
      queue.pending = queue.pending.slice(MAX_BATCH_SIZE);
      const readAt = now();
      try {
        const outcomes = await client.sendBatch(batch.map(buildQuoterCall), signal);
        for (const [index, pending] of batch.entries()) settle(pending, outcomes[index], readAt);
      } catch (error) {
        for (const { amountIn, reject } of batch) {
          inFlight.delete(amountIn);
          reject(error);
        }
      }
    }
    queue.isDraining = false;
  }

  function buildQuoterCall({ amountIn }: PendingAmount): RpcCall {
    const data = quoteExactInputSelector + encodeWord(64n) + encodeWord(amountIn) + encodeBytes(path);
    return { method: "eth_call", params: [{ to: pool.quoterAddress, data }, "latest"] };
  }

  function settle(
    { amountIn, resolve, reject }: PendingAmount,
    outcome: RpcCallResult | undefined,
    readAt: number,
  ): void {
    inFlight.delete(amountIn);
    const amountOut = decodeUintResult(outcome);
    if (isReverted(outcome)) reject(new SwapRevertError("the Quoter contract reverts"));
    else if (amountOut === undefined) reject(createInvalidResponseError(client));
    else {
      const amount = { amountOut, readAt };
      store(amountIn, amount);
      resolve(amount);
    }
  }

  /** Stores an amount as the newest one; evicts the oldest ones beyond the limit. */
  function store(amountIn: bigint, amount: TimestampedAmount): void {
    cache.delete(amountIn);
    cache.set(amountIn, amount);
    for (const oldest of cache.keys()) {
      if (cache.size <= MAX_CACHED_AMOUNTS) break;
      cache.delete(oldest);
    }
  }

  return {
    quoteAmountOut(amountIn, requester, state) {
      const computed = state?.findUniswapSwap(pool.address)?.(amountIn);
      if (state !== undefined && computed !== undefined) return { amountOut: computed, readAt: state.readAt };
      const cached = cache.get(amountIn);
      if (cached !== undefined && now() - cached.readAt <= maxAgeMs) return cached;
      const pending = inFlight.get(amountIn);
      if (pending !== undefined) return pending;
      const releaseSlot = callerQuota.tryAcquire(requester.caller);
      if (releaseSlot === undefined) {
        const message = `too many pending Uniswap quotes on ${client.slug}`;
        throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
      }
      const result = new Promise<TimestampedAmount>((resolve, reject) => {
        queue.pending.push({ amountIn, resolve, reject });
      });
      result.then(releaseSlot, releaseSlot);
      inFlight.set(amountIn, result);
      if (!queue.isDraining) void drainQueue();
      return result;
    },
  };
}

/** Encodes the path argument of Uniswap's Quoter: token in, fee (3 bytes), token out. */
function encodeSwapPath({ bridgedUsdc, nativeUsdc, feePips }: UsdcSwapPool): string {
  const fee = feePips.toString(16).padStart(6, "0");
  return `0x${bridgedUsdc.slice(2)}${fee}${nativeUsdc.slice(2)}`.toLowerCase();
}

function createInvalidResponseError({ slug }: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned an invalid response for a Uniswap contract`);
}
