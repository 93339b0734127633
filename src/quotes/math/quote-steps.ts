import { getLpFeeBps } from "./fees.js";
import type { RouteSnapshot } from "./route-snapshot.js";
import type { RouteSteps } from "./route-steps.js";
import { SwapRevertError } from "./swap-revert-error.js";

/** Intermediate values of a quote, with the names of the SDK's getSendData. Amounts are in the token's smallest unit. */
export interface QuoteSteps {
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
  /** Percent; 0 where the SDK's is no number. */
  readonly priceImpact: number;
  /** Hundredths of a percent. */
  readonly lpFeeBps: number;
  readonly lpFees: bigint;
}

/**
 * Explains the quote of an amount.
 * @param amountOut output of the swap before a CCTP transfer, for USDC.e
 * @throws SwapRevertError when a pool cannot swap the amount
 */
export type QuoteExplainer = (amountIn: bigint, amountOut?: bigint) => QuoteSteps;

/** The amount at whose rate the SDK measures the price impact, in the token's smallest unit. */
const REFERENCE_AMOUNT = 1000n;

export function createQuoteExplainer(snapshot: RouteSnapshot, steps: RouteSteps): QuoteExplainer {
  const { decimals, feeBps } = snapshot;
  const isCctp = snapshot.kind === "cctp";
  const one = 10n ** BigInt(decimals);
  /** The SDK's rate of an output: rounded down to the token's decimals. */
  const computeRate = (amountIn: bigint, amountOut: bigint) => toNumber((amountOut * one) / amountIn, decimals);
  const referenceRate = isCctp ? 0 : computeReferenceRate(steps, computeRate);
  const lpFeeBps = isCctp ? 0 : getLpFeeBps(snapshot.destinationSlug);
  const totalLpFeeBps = isCctp
    ? 0n
    : BigInt((snapshot.sourceIsL1 ? 0 : getLpFeeBps(snapshot.sourceSlug)) + (snapshot.destinationIsL1 ? 0 : lpFeeBps));
  return (amountIn, swappedAmount) => {
    const requiredLiquidity = steps.bridge(amountIn);
    const amountOut = swappedAmount ?? steps.payOut(requiredLiquidity);
    const bonderFeeRelative = steps.computeRelativeFee(requiredLiquidity);
    const adjustedBonderFee = steps.computeBonderFee(bonderFeeRelative);
    const adjustedDestinationTxFee = steps.computeTransactionFee();
    const rate = computeRate(amountIn, amountOut);
    const priceImpact = ((referenceRate - rate) / referenceRate) * 100;
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
      priceImpact: Number.isFinite(priceImpact) ? priceImpact : 0,
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
