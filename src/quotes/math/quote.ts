import { cctpFreeBelow, minimumOut, settlementGasOf, weiInToken, withMultiplier } from "./fees.js";
import type { BridgeSnapshot, CctpSnapshot, Snapshot } from "./route-snapshot.js";
import { canonicalToken, hToken, prepareSwap, type Swap } from "./stable-swap.js";

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
export type Quoter = (amountIn: bigint, slippage: number, now: number, amountOut?: bigint) => Quote;

const sevenDaysSeconds = 7 * 24 * 60 * 60;

/** Computes once what all quotes from a snapshot share, and gives the rest as a function of the amount. */
export function prepareQuotes(snapshot: Snapshot): Quoter {
  return snapshot.kind === "cctp" ? prepareCctp(snapshot) : prepareBridge(snapshot);
}

function prepareBridge(snapshot: BridgeSnapshot): Quoter {
  const { bonder, destinationSlug, decimals, multiplier } = snapshot;
  const toHToken = swapOf(snapshot.sourcePool, canonicalToken);
  const fromHToken = swapOf(snapshot.destinationPool, hToken);
  if (bonder === undefined) {
    const fee =
      snapshot.relayerFee === undefined ? 0n : withMultiplier(snapshot.relayerFee, destinationSlug, multiplier);
    return (amountIn, slippage, now) => finish(snapshot, amountIn, fromHToken(amountIn), fee, slippage, now);
  }
  const { delivery, feeBps, leastFee } = bonder;
  const wei = delivery.gasPrice * (delivery.gas + settlementGasOf(destinationSlug)) + delivery.l1Fee;
  const inToken = weiInToken(wei, bonder.nativeUsd, bonder.tokenUsd, decimals);
  const multiplied = withMultiplier(inToken, destinationSlug, multiplier);
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
    return finish(snapshot, h, out, fee + transactionFee, slippage, now);
  };
}

function prepareCctp(snapshot: CctpSnapshot): Quoter {
  const { delivery, destinationSlug, destinationIsL1, multiplier } = snapshot;
  const wei = delivery.gasPrice * delivery.gas + delivery.l1Fee;
  const inToken = weiInToken(wei, snapshot.nativeUsd, snapshot.tokenUsd, snapshot.decimals);
  const transactionFee = withMultiplier(inToken, destinationSlug, multiplier);
  const charged = !destinationIsL1 && transactionFee <= cctpFreeBelow ? 0n : transactionFee;
  const fee = snapshot.minBonderFee + charged;
  return (amountIn, slippage, now, amountOut = amountIn) => finish(snapshot, amountIn, amountOut, fee, slippage, now);
}

/**
 * @param h what the source bridge sends on
 * @param out what the destination gives for it
 */
function finish(snapshot: Snapshot, h: bigint, out: bigint, fee: bigint, slippage: number, now: number): Quote {
  const { sourceIsL1, destinationIsL1 } = snapshot;
  const estimatedReceived = out > fee ? out - fee : 0n;
  const deadline = now + sevenDaysSeconds;
  const receivedMin = minimumOut(estimatedReceived, slippage);
  return {
    amountOutMin: sourceIsL1 ? receivedMin : minimumOut(h, slippage),
    destinationAmountOutMin: destinationIsL1 ? 0n : receivedMin,
    bonderFee: fee,
    estimatedReceived,
    deadline,
    destinationDeadline: destinationIsL1 ? 0 : deadline,
  };
}

/** Nothing swapped is nothing, as in the SDK, whatever the pool would say; and no pool, no swap. */
function swapOf(pool: BridgeSnapshot["sourcePool"], from: Parameters<Swap>[0]): (amount: bigint) => bigint {
  if (pool === undefined) return (amount) => amount;
  const swap = prepareSwap(pool);
  return (amount) => (amount === 0n ? 0n : swap(from, amount));
}
