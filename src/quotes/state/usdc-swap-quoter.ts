import { encodeBytes, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import { type ChainClient, isReverted, type RpcCall, type RpcOutcome } from "../../chain/chain-client.js";
import { decodeUintResult } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { UsdcSwapPool } from "../../hop/usdc-swap-pools.js";
import { createFairQuota } from "../../resilience/fair-quota.js";
import { SwapRevertError } from "../math/swap-revert-error.js";
import type { ChainState } from "./chain-state.js";

/** A swap's result in the token's smallest unit, and when it was asked for, milliseconds on a steady clock. */
export interface TimestampedAmount {
  readonly amountOut: bigint;
  readonly readAt: number;
}

/**
 * What USDC.e gives in USDC on one chain: by arithmetic on what was read of Uniswap's pool there; and where that does not
 * tell, as for amounts that are larger than what is known of the pool, by a call of the quoter for each new amount.
 */
export interface UsdcSwapQuoter {
  /**
   * Amounts in the token's smallest unit; without a promise where no call is needed, or where the amount was asked for
   * lately.
   * @param by who asks; the caller is read only where there is something to wait for
   * @param facts undefined: nothing was read of the pool
   * @throws SwapReverts for an amount that the pool cannot swap, ServiceError UPSTREAM_UNAVAILABLE without an answer,
   * OVERLOADED when too many amounts, or too many of this caller, wait
   */
  quoteAmountOut(
    amountIn: bigint,
    by: { readonly caller: string },
    facts?: ChainState,
  ): TimestampedAmount | Promise<TimestampedAmount>;
}

export interface UsdcSwapQuoterOptions {
  readonly client: ChainClient;
  readonly pool: UsdcSwapPool;
  /** How long an answer is given again, in milliseconds. */
  readonly maxAgeMs: number;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Most amounts in one request. */
const MAX_BATCH_SIZE = 20;
/** Most amounts that wait to be asked for: of one caller half, about as many as are answered in a few seconds. */
const MAX_PENDING_AMOUNTS = 2_000;
/** Most answers that are remembered. */
const MAX_CACHED_AMOUNTS = 10_000;

const quoteExactInputSelector = toFunctionSelector("quoteExactInput(bytes,uint256)");

export function createUsdcSwapQuoter({ client, pool, maxAgeMs, now, signal }: UsdcSwapQuoterOptions): UsdcSwapQuoter {
  const known = new Map<bigint, TimestampedAmount>();
  const asked = new Map<bigint, Promise<TimestampedAmount>>();
  const places = createFairQuota(() => MAX_PENDING_AMOUNTS);
  let waiting: PendingAmount[] = [];
  let isBusy = false;
  // The way through the pool as the quoter takes it.
  const path =
    `0x${pool.bridgedUsdc.slice(2)}${pool.feePips.toString(16).padStart(6, "0")}${pool.nativeUsdc.slice(2)}`.toLowerCase();

  /** Asks for amounts as they come, one request at a time: while one is under way, the next fills. */
  async function work(): Promise<void> {
    isBusy = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_BATCH_SIZE);
      waiting = waiting.slice(MAX_BATCH_SIZE);
      const readAt = now();
      try {
        const outcomes = await client.sendBatch(batch.map(callFor), signal);
        for (const [index, each] of batch.entries()) settle(each, outcomes[index], readAt);
      } catch (error) {
        for (const { amountIn, reject } of batch) {
          asked.delete(amountIn);
          reject(error);
        }
      }
    }
    isBusy = false;
  }

  function callFor({ amountIn }: PendingAmount): RpcCall {
    const data = quoteExactInputSelector + encodeWord(64n) + encodeWord(amountIn) + encodeBytes(path);
    return { method: "eth_call", params: [{ to: pool.quoterAddress, data }, "latest"] };
  }

  function settle({ amountIn, resolve, reject }: PendingAmount, outcome: RpcOutcome | undefined, readAt: number): void {
    asked.delete(amountIn);
    const amountOut = decodeUintResult(outcome);
    if (isReverted(outcome)) reject(new SwapRevertError("the quoter reverts"));
    else if (amountOut === undefined) reject(unlikeUniswap());
    else {
      const found = { amountOut, readAt };
      // The oldest go first: what is read again moves to the end.
      known.delete(amountIn);
      known.set(amountIn, found);
      for (const oldest of known.keys()) {
        if (known.size <= MAX_CACHED_AMOUNTS) break;
        known.delete(oldest);
      }
      resolve(found);
    }
  }

  function unlikeUniswap(): ServiceError {
    return new ServiceError(
      "UPSTREAM_UNAVAILABLE",
      `${client.slug} gives an answer that Uniswap's contracts could not give`,
    );
  }

  return {
    quoteAmountOut(amountIn, by, facts) {
      const computed = facts?.findUniswapSwap(pool.address)?.(amountIn);
      if (facts !== undefined && computed !== undefined) return { amountOut: computed, readAt: facts.readAt };
      const lately = known.get(amountIn);
      if (lately !== undefined && now() - lately.readAt <= maxAgeMs) return lately;
      const underway = asked.get(amountIn);
      if (underway !== undefined) return underway;
      const leave = places.tryAcquire(by.caller);
      if (leave === undefined) {
        const message = `too many amounts wait for Uniswap's word on ${client.slug}`;
        throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
      }
      const answer = new Promise<TimestampedAmount>((resolve, reject) => {
        waiting.push({ amountIn, resolve, reject });
      });
      answer.then(leave, leave);
      asked.set(amountIn, answer);
      if (!isBusy) void work();
      return answer;
    },
  };
}

interface PendingAmount {
  readonly amountIn: bigint;
  resolve(found: TimestampedAmount): void;
  reject(error: unknown): void;
}
