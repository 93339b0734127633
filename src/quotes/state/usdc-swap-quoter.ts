import { dynamicBytes, selectorOf, word } from "../../chain/abi/abi-encoding.js";
import { type ChainClient, isRevert, type RpcCall, type RpcOutcome } from "../../chain/chain-client.js";
import { wordOf } from "../../chain/read/contract-reads.js";
import { ServiceError } from "../../errors.js";
import type { UsdcSwap } from "../../hop/usdc-swap-pools.js";
import { createPlaces } from "../../resilience/fair-quota.js";
import { SwapReverts } from "../math/stable-swap.js";
import type { ChainFacts } from "./chain-state.js";

/** A swap's result in the token's smallest unit, and when it was asked for, milliseconds on a steady clock. */
export interface DatedAmount {
  readonly amountOut: bigint;
  readonly readAt: number;
}

/**
 * What USDC.e gives in USDC on one chain: by arithmetic on what was read of Uniswap's pool there; and where that does not
 * tell, as for amounts that are larger than what is known of the pool, by a call of the quoter for each new amount.
 */
export interface UsdcSwaps {
  /**
   * Amounts in the token's smallest unit; without a promise where no call is needed, or where the amount was asked for
   * lately.
   * @param by who asks; the caller is read only where there is something to wait for
   * @param facts undefined: nothing was read of the pool
   * @throws SwapReverts for an amount that the pool cannot swap, ServiceError UPSTREAM_UNAVAILABLE without an answer,
   * OVERLOADED when too many amounts, or too many of this caller, wait
   */
  amountOut(amountIn: bigint, by: { readonly caller: string }, facts?: ChainFacts): DatedAmount | Promise<DatedAmount>;
}

export interface UsdcSwapsOptions {
  readonly client: ChainClient;
  readonly swap: UsdcSwap;
  /** How long an answer is given again, in milliseconds. */
  readonly maxAgeMs: number;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Most amounts in one request. */
const amountsPerRequest = 20;
/** Most amounts that wait to be asked for: of one caller half, about as many as are answered in a few seconds. */
const mostWaiting = 2_000;
/** Most answers that are remembered. */
const mostRemembered = 10_000;

const quoteExactInput = selectorOf("quoteExactInput(bytes,uint256)");

export function createUsdcSwaps({ client, swap, maxAgeMs, now, signal }: UsdcSwapsOptions): UsdcSwaps {
  const known = new Map<bigint, DatedAmount>();
  const asked = new Map<bigint, Promise<DatedAmount>>();
  const places = createPlaces(() => mostWaiting);
  let waiting: Waiting[] = [];
  let isBusy = false;
  // The way through the pool as the quoter takes it.
  const path =
    `0x${swap.bridged.slice(2)}${swap.fee.toString(16).padStart(6, "0")}${swap.native.slice(2)}`.toLowerCase();

  /** Asks for amounts as they come, one request at a time: while one is under way, the next fills. */
  async function work(): Promise<void> {
    isBusy = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, amountsPerRequest);
      waiting = waiting.slice(amountsPerRequest);
      const readAt = now();
      try {
        const outcomes = await client.batch(batch.map(callFor), signal);
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

  function callFor({ amountIn }: Waiting): RpcCall {
    const data = quoteExactInput + word(64n) + word(amountIn) + dynamicBytes(path);
    return { method: "eth_call", params: [{ to: swap.quoter, data }, "latest"] };
  }

  function settle({ amountIn, resolve, reject }: Waiting, outcome: RpcOutcome | undefined, readAt: number): void {
    asked.delete(amountIn);
    const amountOut = wordOf(outcome);
    if (isRevert(outcome)) reject(new SwapReverts("the quoter reverts"));
    else if (amountOut === undefined) reject(unlikeUniswap());
    else {
      const found = { amountOut, readAt };
      // The oldest go first: what is read again moves to the end.
      known.delete(amountIn);
      known.set(amountIn, found);
      for (const oldest of known.keys()) {
        if (known.size <= mostRemembered) break;
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
    amountOut(amountIn, by, facts) {
      const computed = facts?.uniswapSwap(swap.pool)?.(amountIn);
      if (facts !== undefined && computed !== undefined) return { amountOut: computed, readAt: facts.readAt };
      const lately = known.get(amountIn);
      if (lately !== undefined && now() - lately.readAt <= maxAgeMs) return lately;
      const underway = asked.get(amountIn);
      if (underway !== undefined) return underway;
      const leave = places.take(by.caller);
      if (leave === undefined) {
        const message = `too many amounts wait for Uniswap's word on ${client.slug}`;
        throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
      }
      const answer = new Promise<DatedAmount>((resolve, reject) => {
        waiting.push({ amountIn, resolve, reject });
      });
      answer.then(leave, leave);
      asked.set(amountIn, answer);
      if (!isBusy) void work();
      return answer;
    },
  };
}

interface Waiting {
  readonly amountIn: bigint;
  resolve(found: DatedAmount): void;
  reject(error: unknown): void;
}
