import { applyFeeMultiplier, applySlippage, CCTP_WAIVED_FEE_MAX, convertWeiToToken, getSettlementGas } from "./fees.js";
import type { BridgeSnapshot, CctpSnapshot, RouteSnapshot } from "./route-snapshot.js";
import {
  CANONICAL_TOKEN_INDEX,
  createStableSwapCalculator,
  H_TOKEN_INDEX,
  type PoolTokenIndex,
  type StableSwapPool,
} from "./stable-swap.js";

/** A quote. Amounts are in the token's smallest unit, deadlines in Unix seconds. */
export interface Quote {
  readonly amountOutMin: bigint;
  readonly destinationAmountOutMin: bigint;
  readonly bonderFee: bigint;
  readonly estimatedReceived: bigint;
  readonly deadline: number;
  readonly destinationDeadline: number;
}

/**
 * Quotes an amount on one route, like the SDK's getSendData and getSendDataAmountOutMins.
 * @param amountIn in the token's smallest unit
 * @param slippagePercent tolerance in percent
 * @param nowSeconds Unix seconds
 * @param amountOut output of the swap before a CCTP transfer, for USDC.e
 * @throws SwapRevertError when a pool cannot swap the amount
 */
export type RouteQuoter = (amountIn: bigint, slippagePercent: number, nowSeconds: number, amountOut?: bigint) => Quote;

/** The SDK's default deadline. */
const SEVEN_DAYS_SECONDS = 7 * 24 * 60 * 60;

/** Returns a function that quotes amounts from a snapshot; what does not depend on the amount is computed once. */
export function createRouteQuoter(snapshot: RouteSnapshot): RouteQuoter {
  return snapshot.kind === "cctp" ? createCctpQuoter(snapshot) : createBridgeQuoter(snapshot);
}

/**
 * The total fee is max(relative fee, minimum fee) + destination transaction fee (SDK: getBonderFeeRelative,
 * getBonderFeeAbsolute, getDestinationTransactionFee). From L1 it is the relayer fee alone.
 */
function createBridgeQuoter(snapshot: BridgeSnapshot): RouteQuoter {
  const { bonder, destinationSlug, decimals, feeMultiplier } = snapshot;
  const toHToken = createSwapOrIdentity(snapshot.sourcePool, CANONICAL_TOKEN_INDEX);
  const fromHToken = createSwapOrIdentity(snapshot.destinationPool, H_TOKEN_INDEX);
  if (bonder === undefined) {
    const fee =
      snapshot.relayerFee === undefined ? 0n : applyFeeMultiplier(snapshot.relayerFee, destinationSlug, feeMultiplier);
    return (amountIn, slippagePercent, nowSeconds) =>
      buildQuote(snapshot, amountIn, fromHToken(amountIn), fee, slippagePercent, nowSeconds);
  }
  const { delivery, feeBps, minFee } = bonder;
  const wei = delivery.gasPrice * (delivery.gas + getSettlementGas(destinationSlug)) + delivery.l1Fee;
  const feeInToken = convertWeiToToken(wei, bonder.nativeUsd, bonder.tokenUsd, decimals);
  const feeInHToken = applyFeeMultiplier(feeInToken, destinationSlug, feeMultiplier);
  const relativeFeeBps = BigInt(feeBps);
  let transactionFee: bigint | undefined;
  return (amountIn, slippagePercent, nowSeconds) => {
    const hTokenAmount = toHToken(amountIn);
    const amountOut = fromHToken(hTokenAmount);
    const relativeFee = (hTokenAmount * relativeFeeBps) / 10_000n;
    // Fees are deducted in hTokens, so the destination pool prices them.
    transactionFee ??= fromHToken(feeInHToken);
    let fee = fromHToken(relativeFee);
    if (fee < relativeFee) fee = relativeFee;
    if (fee < minFee) fee = minFee;
    return buildQuote(snapshot, hTokenAmount, amountOut, fee + transactionFee, slippagePercent, nowSeconds);
  };
}

/** The total fee is the CCTP bridge's minBonderFee + destination transaction fee (SDK: getSendData for CCTP). */
function createCctpQuoter(snapshot: CctpSnapshot): RouteQuoter {
  const { delivery, destinationSlug, destinationIsL1, feeMultiplier } = snapshot;
  const wei = delivery.gasPrice * delivery.gas + delivery.l1Fee;
  const feeInToken = convertWeiToToken(wei, snapshot.nativeUsd, snapshot.tokenUsd, snapshot.decimals);
  const transactionFee = applyFeeMultiplier(feeInToken, destinationSlug, feeMultiplier);
  const chargedFee = !destinationIsL1 && transactionFee <= CCTP_WAIVED_FEE_MAX ? 0n : transactionFee;
  const fee = snapshot.minBonderFee + chargedFee;
  return (amountIn, slippagePercent, nowSeconds, amountOut = amountIn) =>
    buildQuote(snapshot, amountIn, amountOut, fee, slippagePercent, nowSeconds);
}

/**
 * @param bridgedAmount amount that the source bridge sends
 * @param amountOut output on the destination before fees
 */
function buildQuote(
  snapshot: RouteSnapshot,
  bridgedAmount: bigint,
  amountOut: bigint,
  fee: bigint,
  slippagePercent: number,
  nowSeconds: number,
): Quote {
  const { sourceIsL1, destinationIsL1 } = snapshot;
  const estimatedReceived = amountOut > fee ? amountOut - fee : 0n;
  const deadline = nowSeconds + SEVEN_DAYS_SECONDS;
  const minReceived = applySlippage(estimatedReceived, slippagePercent);
  return {
    amountOutMin: sourceIsL1 ? minReceived : applySlippage(bridgedAmount, slippagePercent),
    destinationAmountOutMin: destinationIsL1 ? 0n : minReceived,
    bonderFee: fee,
    estimatedReceived,
    deadline,
    destinationDeadline: destinationIsL1 ? 0 : deadline,
  };
}

/** Returns the swap of a pool, or the identity without one. Like the SDK, does not ask the pool about an amount of 0. */
function createSwapOrIdentity(pool: StableSwapPool | undefined, from: PoolTokenIndex): (amount: bigint) => bigint {
  if (pool === undefined) return (amount) => amount;
  const swap = createStableSwapCalculator(pool);
  return (amount) => (amount === 0n ? 0n : swap(from, amount));
}
