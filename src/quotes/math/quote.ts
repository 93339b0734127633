import { applySlippage } from "./fees.js";
import { findAmountIn } from "./find-amount-in.js";
import { createQuoteExplainer, type QuoteExplainer, type QuoteSteps } from "./quote-steps.js";
import type { RouteSnapshot } from "./route-snapshot.js";
import { createRouteSteps, type RouteSteps } from "./route-steps.js";
import { CANONICAL_TOKEN_INDEX, H_TOKEN_INDEX } from "./stable-swap.js";
import { SwapRevertError } from "./swap-revert-error.js";

/** A quote. Amounts are in the token's smallest unit, deadlines in Unix seconds. */
export interface Quote {
  readonly amountIn: bigint;
  readonly amountOutMin: bigint;
  readonly destinationAmountOutMin: bigint;
  readonly bonderFee: bigint;
  readonly estimatedReceived: bigint;
  readonly deadline: number;
  readonly destinationDeadline: number;
}

/** A quote and the intermediate values from which it was computed. */
export interface ExplainedQuote {
  readonly quote: Quote;
  readonly steps: QuoteSteps;
}

/** Computes quotes on one route from one snapshot. */
export interface RouteQuoter {
  readonly snapshot: RouteSnapshot;
  /**
   * Quotes an amount, like the SDK's getSendData and getSendDataAmountOutMins.
   * @param amountIn in the token's smallest unit
   * @param slippagePercent tolerance in percent
   * @param nowSeconds Unix seconds
   * @param amountOut output of the swap before a CCTP transfer, for USDC.e
   * @throws SwapRevertError when a pool cannot swap the amount
   */
  readonly quote: (amountIn: bigint, slippagePercent: number, nowSeconds: number, amountOut?: bigint) => Quote;
  /** Returns the quote of an amount with its intermediate values. @throws like `quote` */
  readonly explain: (...input: Parameters<RouteQuoter["quote"]>) => ExplainedQuote;
  /**
   * Returns an amount that brings at least this much, and of which one unit less brings less or cannot be swapped;
   * undefined if there is none.
   */
  readonly findAmountIn: (receiveAmount: bigint) => bigint | undefined;
  /** Returns the amount for which the recipient receives at least one unit; computed once. */
  readonly findMinAmount: () => bigint | undefined;
}

const MAX_UINT256 = (1n << 256n) - 1n;
/** The SDK's default deadline. */
const SEVEN_DAYS_SECONDS = 7 * 24 * 60 * 60;

/** Creates the quoter of a snapshot; what does not depend on the amount is computed once. */
export function createRouteQuoter(snapshot: RouteSnapshot): RouteQuoter {
  const steps = createRouteSteps(snapshot);
  const { bridge, payOut, computeRelativeFee, computeBonderFee, computeTransactionFee } = steps;
  let explainer: QuoteExplainer | undefined;
  let minAmount: { readonly value: bigint | undefined } | undefined;
  const outputLimit = getOutputLimit(snapshot);
  const getNetAmount = (amountIn: bigint) => computeNetAmount(snapshot, steps, amountIn);
  return {
    snapshot,
    quote(amountIn, slippagePercent, nowSeconds, swappedAmount) {
      const bridgedAmount = bridge(amountIn);
      const amountOut = swappedAmount ?? payOut(bridgedAmount);
      const transactionFee = computeTransactionFee();
      const fee = computeBonderFee(computeRelativeFee(bridgedAmount)) + transactionFee;
      return buildQuote(snapshot, amountIn, bridgedAmount, amountOut, fee, slippagePercent, nowSeconds);
    },
    explain(amountIn, slippagePercent, nowSeconds, swappedAmount) {
      explainer ??= createQuoteExplainer(snapshot, steps);
      const explained = explainer(amountIn, swappedAmount);
      const { requiredLiquidity, amountOut, totalFee } = explained;
      const quote = buildQuote(snapshot, amountIn, requiredLiquidity, amountOut, totalFee, slippagePercent, nowSeconds);
      return { quote, steps: explained };
    },
    findAmountIn: (receiveAmount) =>
      receiveAmount >= outputLimit ? undefined : findAmountIn(getNetAmount, receiveAmount),
    findMinAmount() {
      minAmount ??= { value: findAmountIn(getNetAmount, 1n) };
      return minAmount.value;
    },
  };
}

/** Returns a limit that no output reaches: a swap leaves a part of the balance in the pool. */
function getOutputLimit(snapshot: RouteSnapshot): bigint {
  if (snapshot.kind === "cctp") return MAX_UINT256 + 1n;
  const { sourcePool, destinationPool } = snapshot;
  return destinationPool?.balances[CANONICAL_TOKEN_INDEX] ?? sourcePool?.balances[H_TOKEN_INDEX] ?? MAX_UINT256 + 1n;
}

/** Returns what an amount brings, before it is limited to 0; undefined where that is not known. */
function computeNetAmount(
  snapshot: RouteSnapshot,
  steps: RouteSteps,
  amountIn: bigint,
): bigint | "reverts" | undefined {
  try {
    const swappedAmount = snapshot.kind === "cctp" && snapshot.sourceSwap ? snapshot.sourceSwap(amountIn) : amountIn;
    if (swappedAmount === undefined) return undefined;
    const bridgedAmount = steps.bridge(amountIn);
    const amountOut = snapshot.kind === "cctp" ? swappedAmount : steps.payOut(bridgedAmount);
    const bonderFee = steps.computeBonderFee(steps.computeRelativeFee(bridgedAmount));
    return amountOut - bonderFee - steps.computeTransactionFee();
  } catch (error) {
    if (error instanceof SwapRevertError) return "reverts";
    throw error;
  }
}

/**
 * @param bridgedAmount amount that the source bridge sends
 * @param amountOut output on the destination before fees
 */
function buildQuote(
  { sourceIsL1, destinationIsL1 }: RouteSnapshot,
  amountIn: bigint,
  bridgedAmount: bigint,
  amountOut: bigint,
  fee: bigint,
  slippagePercent: number,
  nowSeconds: number,
): Quote {
  const estimatedReceived = amountOut > fee ? amountOut - fee : 0n;
  const deadline = nowSeconds + SEVEN_DAYS_SECONDS;
  const minReceived = applySlippage(estimatedReceived, slippagePercent);
  return {
    amountIn,
    amountOutMin: sourceIsL1 ? minReceived : applySlippage(bridgedAmount, slippagePercent),
    destinationAmountOutMin: destinationIsL1 ? 0n : minReceived,
    bonderFee: fee,
    estimatedReceived,
    deadline,
    destinationDeadline: destinationIsL1 ? 0 : deadline,
  };
}
