import { getDisplayedLpFeeBps } from "./fees.js";
import { findAmountIn } from "./find-amount-in.js";
import { createRouteSteps, type RouteSnapshot, type RouteSteps } from "./route-snapshot.js";
import { CANONICAL_TOKEN_INDEX, H_TOKEN_INDEX, SwapRevertError } from "./stable-swap.js";

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

/** The intermediate values of a quote, named as in the SDK's getSendData. Amounts are in the token's smallest unit. */
export interface QuoteBreakdown {
  readonly amountOut: bigint;
  readonly requiredLiquidity: bigint;
  readonly bonderFeeRelative: bigint;
  readonly adjustedBonderFee: bigint;
  readonly destinationTxFee: bigint;
  readonly adjustedDestinationTxFee: bigint;
  readonly totalFee: bigint;
  /** Hundredths of a percent. */
  readonly feeBps: number;
  readonly rate: number;
  /** Percent; undefined where the SDK's is no number. */
  readonly priceImpact: number | undefined;
  /** Hundredths of a percent. */
  readonly lpFeeBps: number;
  readonly lpFees: bigint;
}

const MAX_UINT256 = (1n << 256n) - 1n;
/** The SDK's default deadline. */
const SEVEN_DAYS_SECONDS = 7 * 24 * 60 * 60;

/** Computes quotes on one route from one snapshot; what does not depend on the amount is computed once. */
export class RouteQuoter {
  readonly snapshot: RouteSnapshot;
  readonly #steps: RouteSteps;
  readonly #outputLimit: bigint;
  #explainer: QuoteExplainer | undefined;
  #minAmount: { readonly value: bigint | undefined } | undefined;

  constructor(snapshot: RouteSnapshot) {
    this.snapshot = snapshot;
    this.#steps = createRouteSteps(snapshot);
    this.#outputLimit = getOutputLimit(snapshot);
  }

  /**
   * Quotes an amount, like the SDK's getSendData and getSendDataAmountOutMins.
   * @param amountIn in the token's smallest unit
   * @param slippagePercent tolerance in percent
   * @param nowSeconds Unix seconds
   * @param swappedAmount output of the swap before a CCTP transfer, for USDC.e
   * @throws SwapRevertError when a pool cannot swap the amount
   */
  quote(amountIn: bigint, slippagePercent: number, nowSeconds: number, swappedAmount?: bigint): Quote {
    const { bridge, payOut, computeRelativeFee, computeBonderFee, computeTransactionFee } = this.#steps;
    const bridgedAmount = bridge(amountIn);
    const amountOut = swappedAmount ?? payOut(bridgedAmount);
    const transactionFee = computeTransactionFee();
    const fee = computeBonderFee(computeRelativeFee(bridgedAmount)) + transactionFee;
    return buildQuote(this.snapshot, { amountIn, bridgedAmount, amountOut, fee }, slippagePercent, nowSeconds);
  }

  /** Returns the quote of an amount with the intermediate values from which it was computed. @throws like `quote` */
  explain(...[amountIn, slippagePercent, nowSeconds, swappedAmount]: Parameters<RouteQuoter["quote"]>) {
    this.#explainer ??= createQuoteExplainer(this.snapshot, this.#steps);
    const breakdown = this.#explainer(amountIn, swappedAmount);
    const { requiredLiquidity: bridgedAmount, amountOut, totalFee: fee } = breakdown;
    const amounts = { amountIn, bridgedAmount, amountOut, fee };
    return { quote: buildQuote(this.snapshot, amounts, slippagePercent, nowSeconds), breakdown };
  }

  /**
   * Returns an amount that brings at least this much, and of which one unit less brings less or cannot be swapped;
   * undefined if there is none.
   */
  findAmountIn(receiveAmount: bigint): bigint | undefined {
    if (receiveAmount >= this.#outputLimit) return undefined;
    return findAmountIn((amountIn) => computeNetAmount(this.snapshot, this.#steps, amountIn), receiveAmount);
  }

  /** Returns the amount for which the recipient receives at least one unit; computed once. */
  findMinAmount(): bigint | undefined {
    this.#minAmount ??= { value: this.findAmountIn(1n) };
    return this.#minAmount.value;
  }
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

/** @param amounts `bridgedAmount`: what the source bridge sends; `amountOut`: output on the destination before fees */
function buildQuote(
  { sourceIsL1, destinationIsL1 }: RouteSnapshot,
  {
    amountIn,
    bridgedAmount,
    amountOut,
    fee,
  }: Readonly<Record<"amountIn" | "bridgedAmount" | "amountOut" | "fee", bigint>>,
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

/**
 * Returns the minimum output under a slippage tolerance in percent: amount * ceil(10000 - slippage * 100) / 10000
 * (SDK: calcAmountOutMin).
 */
function applySlippage(amount: bigint, slippagePercent: number): bigint {
  return (amount * BigInt(Math.ceil(10_000 - slippagePercent * 100))) / 10_000n;
}

/**
 * Explains the quote of an amount.
 * @param amountOut output of the swap before a CCTP transfer, for USDC.e
 * @throws SwapRevertError when a pool cannot swap the amount
 */
export type QuoteExplainer = (amountIn: bigint, amountOut?: bigint) => QuoteBreakdown;

/** The amount at whose rate the SDK measures the price impact, in the token's smallest unit. */
const REFERENCE_AMOUNT = 1000n;

export function createQuoteExplainer(snapshot: RouteSnapshot, steps: RouteSteps): QuoteExplainer {
  const { decimals, feeBps } = snapshot;
  const isCctp = snapshot.kind === "cctp";
  const one = 10n ** BigInt(decimals);
  /** The SDK's rate of an output: rounded down to the token's decimals. */
  const computeRate = (amountIn: bigint, amountOut: bigint) => toNumber((amountOut * one) / amountIn, decimals);
  const referenceRate = isCctp ? 0 : computeReferenceRate(steps, computeRate);
  const lpFeeBps = isCctp ? 0 : getDisplayedLpFeeBps(snapshot.destinationSlug);
  const sourceLpFeeBps = isCctp || snapshot.sourceIsL1 ? 0 : getDisplayedLpFeeBps(snapshot.sourceSlug);
  const totalLpFeeBps = BigInt(sourceLpFeeBps + (snapshot.destinationIsL1 ? 0 : lpFeeBps));
  return (amountIn, swappedAmount) => {
    const requiredLiquidity = steps.bridge(amountIn);
    const amountOut = swappedAmount ?? steps.payOut(requiredLiquidity);
    const bonderFeeRelative = steps.computeRelativeFee(requiredLiquidity);
    const adjustedBonderFee = steps.computeBonderFee(bonderFeeRelative);
    const adjustedDestinationTxFee = steps.computeTransactionFee();
    const rate = computeRate(amountIn, amountOut);
    // The SDK says 0 by CCTP, also where USDC.e is swapped before.
    const priceImpact = isCctp ? 0 : ((referenceRate - rate) / referenceRate) * 100;
    return {
      amountOut,
      requiredLiquidity,
      bonderFeeRelative,
      adjustedBonderFee,
      destinationTxFee: steps.transactionFee,
      adjustedDestinationTxFee,
      totalFee: adjustedBonderFee + adjustedDestinationTxFee,
      feeBps,
      rate,
      priceImpact: Number.isFinite(priceImpact) ? priceImpact : undefined,
      lpFeeBps,
      lpFees: (amountIn * totalLpFeeBps) / 10_000n,
    };
  };
}

/** Returns the rate of the reference amount; 0 where the pools cannot swap it. */
function computeReferenceRate(
  { bridge, payOut }: RouteSteps,
  computeRate: (amountIn: bigint, amountOut: bigint) => number,
): number {
  try {
    return computeRate(REFERENCE_AMOUNT, payOut(bridge(REFERENCE_AMOUNT)));
  } catch (error) {
    if (error instanceof SwapRevertError) return 0;
    throw error;
  }
}

/** Returns the double nearest to an amount of whole tokens, as the SDK does by printing and parsing it. */
function toNumber(amount: bigint, decimals: number): number {
  const digits = amount.toString().padStart(decimals + 1, "0");
  return Number(`${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`);
}
