import { applyFeeMultiplier, applySlippage, CCTP_WAIVED_FEE_MAX, convertWeiToToken, getSettlementGas } from "./fees.js";
import type { BridgeSnapshot, CctpSnapshot, RouteSnapshot } from "./route-snapshot.js";
import {
  CANONICAL_TOKEN_INDEX,
  createStableSwapCalculator,
  H_TOKEN_INDEX,
  type StableSwapCalculator,
} from "./stable-swap.js";

/** Amounts in the token's smallest unit, times in Unix seconds. */
export interface Quote {
  readonly amountOutMin: bigint;
  readonly destinationAmountOutMin: bigint;
  readonly bonderFee: bigint;
  readonly estimatedReceived: bigint;
  readonly deadline: number;
  readonly destinationDeadline: number;
}

/**
 * Prices an amount on one route.
 * @param amountIn in the token's smallest unit
 * @param slippage percent
 * @param now Unix seconds
 * @param amountOut what the swap before a CCTP transfer gives, for USDC.e
 * @throws SwapReverts where a pool cannot swap the amount
 */
export type RouteQuoter = (amountIn: bigint, slippage: number, now: number, amountOut?: bigint) => Quote;

const SEVEN_DAYS_SECONDS = 7 * 24 * 60 * 60;

/** Computes once what all quotes from a snapshot share, and gives the rest as a function of the amount. */
export function createRouteQuoter(snapshot: RouteSnapshot): RouteQuoter {
  return snapshot.kind === "cctp" ? createCctpQuoter(snapshot) : createBridgeQuoter(snapshot);
}

function createBridgeQuoter(snapshot: BridgeSnapshot): RouteQuoter {
  const { bonder, destinationSlug, decimals, feeMultiplier } = snapshot;
  const toHToken = createSwapOrIdentity(snapshot.sourcePool, CANONICAL_TOKEN_INDEX);
  const fromHToken = createSwapOrIdentity(snapshot.destinationPool, H_TOKEN_INDEX);
  if (bonder === undefined) {
    const fee =
      snapshot.relayerFee === undefined ? 0n : applyFeeMultiplier(snapshot.relayerFee, destinationSlug, feeMultiplier);
    return (amountIn, slippage, now) => buildQuote(snapshot, amountIn, fromHToken(amountIn), fee, slippage, now);
  }
  const { delivery, feeBps, leastFee } = bonder;
  const wei = delivery.gasPrice * (delivery.gas + getSettlementGas(destinationSlug)) + delivery.l1Fee;
  const inToken = convertWeiToToken(wei, bonder.nativeUsd, bonder.tokenUsd, decimals);
  const multiplied = applyFeeMultiplier(inToken, destinationSlug, feeMultiplier);
  let transactionFee: bigint | undefined;
  return (amountIn, slippage, now) => {
    const h = toHToken(amountIn);
    const out = fromHToken(h);
    const relative = (h * BigInt(feeBps)) / 10_000n;
    // Fees are taken in hTokens: what they are worth is what the pool gives for them.
    transactionFee ??= fromHToken(multiplied);
    let fee = fromHToken(relative);
    if (fee < relative) fee = relative;
    if (fee < leastFee) fee = leastFee;
    return buildQuote(snapshot, h, out, fee + transactionFee, slippage, now);
  };
}

function createCctpQuoter(snapshot: CctpSnapshot): RouteQuoter {
  const { delivery, destinationSlug, destinationIsL1, feeMultiplier } = snapshot;
  const wei = delivery.gasPrice * delivery.gas + delivery.l1Fee;
  const inToken = convertWeiToToken(wei, snapshot.nativeUsd, snapshot.tokenUsd, snapshot.decimals);
  const transactionFee = applyFeeMultiplier(inToken, destinationSlug, feeMultiplier);
  const charged = !destinationIsL1 && transactionFee <= CCTP_WAIVED_FEE_MAX ? 0n : transactionFee;
  const fee = snapshot.minBonderFee + charged;
  return (amountIn, slippage, now, amountOut = amountIn) =>
    buildQuote(snapshot, amountIn, amountOut, fee, slippage, now);
}

/**
 * @param h what the source bridge sends on
 * @param out what the destination gives for it
 */
function buildQuote(
  snapshot: RouteSnapshot,
  h: bigint,
  out: bigint,
  fee: bigint,
  slippage: number,
  now: number,
): Quote {
  const { sourceIsL1, destinationIsL1 } = snapshot;
  const estimatedReceived = out > fee ? out - fee : 0n;
  const deadline = now + SEVEN_DAYS_SECONDS;
  const receivedMin = applySlippage(estimatedReceived, slippage);
  return {
    amountOutMin: sourceIsL1 ? receivedMin : applySlippage(h, slippage),
    destinationAmountOutMin: destinationIsL1 ? 0n : receivedMin,
    bonderFee: fee,
    estimatedReceived,
    deadline,
    destinationDeadline: destinationIsL1 ? 0 : deadline,
  };
}

/** Nothing swapped is nothing, as in the SDK, whatever the pool would say; and no pool, no swap. */
function createSwapOrIdentity(
  pool: BridgeSnapshot["sourcePool"],
  from: Parameters<StableSwapCalculator>[0],
): (amount: bigint) => bigint {
  if (pool === undefined) return (amount) => amount;
  const swap = createStableSwapCalculator(pool);
  return (amount) => (amount === 0n ? 0n : swap(from, amount));
}
