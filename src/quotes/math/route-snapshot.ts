import { applyFeeMultiplier, CCTP_WAIVED_FEE_MAX, convertWeiToToken, getSettlementGas } from "./fees.js";
import {
  CANONICAL_TOKEN_INDEX,
  createStableSwapCalculator,
  H_TOKEN_INDEX,
  type PoolTokenIndex,
  type StableSwapPool,
} from "./stable-swap.js";
import type { UniswapSwapCalculator } from "./uniswap-v3.js";

/** Cost of a destination transaction: wei = gasPrice * gas + l1Fee. */
export interface DeliveryCost {
  /** Wei. */
  readonly gasPrice: bigint;
  /** Gas of the delivery, estimated or the SDK's constant; excludes settlement. */
  readonly gas: bigint;
  /** Wei for the transaction data on L1; 0 where the chain charges none. */
  readonly l1Fee: bigint;
}

interface RouteSnapshotBase {
  /** Decimals of the token. */
  readonly decimals: number;
  readonly sourceSlug: string;
  readonly sourceIsL1: boolean;
  readonly destinationSlug: string;
  readonly destinationIsL1: boolean;
  /** Factor on the destination transaction fee. */
  readonly feeMultiplier: number;
  /** Relative fee of the bonder, in hundredths of a percent; charged from an L2 over Hop's own bridge. */
  readonly feeBps: number;
}

/** Inputs of a transfer over Hop's own bridge. */
export interface BridgeSnapshot extends RouteSnapshotBase {
  readonly kind: "bridge";
  /** undefined: no swap on that chain (L1, or a token without pools). */
  readonly sourcePool: StableSwapPool | undefined;
  readonly destinationPool: StableSwapPool | undefined;
  /** Inputs of the bonder fee for a transfer from an L2; undefined from L1. */
  readonly bonder:
    | {
        /** Minimum fee, the larger of the contract's and the one in USD, in the token's smallest unit. */
        readonly minFee: bigint;
        readonly delivery: DeliveryCost;
        readonly nativeUsd: number;
        readonly tokenUsd: number;
      }
    | undefined;
  /** Relayer fee from L1 in the token's smallest unit, before the multiplier; undefined: no relayer. */
  readonly relayerFee: bigint | undefined;
}

/** Inputs of a transfer of USDC by CCTP. */
export interface CctpSnapshot extends RouteSnapshotBase {
  readonly kind: "cctp";
  /** The most that one CCTP message burns on the source, in the token's smallest unit; undefined: not known. */
  readonly burnLimit: bigint | undefined;
  /** minBonderFee of the source's CCTP bridge, in the token's smallest unit. */
  readonly minBonderFee: bigint;
  /** Swap of USDC.e before the transfer, as far as the state covers it; undefined: there is no swap. */
  readonly sourceSwap: UniswapSwapCalculator | undefined;
  readonly delivery: DeliveryCost;
  readonly nativeUsd: number;
  readonly tokenUsd: number;
}

/** All inputs of a quote on one route except amount, slippage and clock. */
export type RouteSnapshot = BridgeSnapshot | CctpSnapshot;

/**
 * The steps from an amount to a quote. What does not depend on the amount is computed once. The functions throw
 * SwapRevertError where a pool cannot swap an amount.
 */
export interface RouteSteps {
  /** Returns what the source bridge sends: hTokens, or the amount itself by CCTP (SDK: requiredLiquidity). */
  readonly bridge: (amountIn: bigint) => bigint;
  /** Returns the output on the destination before fees (SDK: amountOut). */
  readonly payOut: (bridgedAmount: bigint) => bigint;
  /** Returns the bonder's fee in proportion to the transfer, in hTokens (SDK: bonderFeeRelative). */
  readonly computeRelativeFee: (bridgedAmount: bigint) => bigint;
  /** Returns the bonder's fee in the token (SDK: adjustedBonderFee). */
  readonly computeBonderFee: (relativeFee: bigint) => bigint;
  /** Cost of the destination transaction, in hTokens (SDK: destinationTxFee). */
  readonly transactionFee: bigint;
  /** Returns the same in the token (SDK: adjustedDestinationTxFee). */
  readonly computeTransactionFee: () => bigint;
}

/** The total fee of each kind of route is the bonder's fee plus the cost of the destination transaction. */
export function createRouteSteps(snapshot: RouteSnapshot): RouteSteps {
  if (snapshot.kind === "cctp") return createCctpSteps(snapshot);
  return snapshot.bonder === undefined ? createDepositSteps(snapshot) : createBondedSteps(snapshot, snapshot.bonder);
}

const identity = (amount: bigint): bigint => amount;
const zero = (): bigint => 0n;

/** From L1, the fee is that of the relayer alone. */
function createDepositSteps({
  destinationPool,
  destinationSlug,
  relayerFee,
  feeMultiplier,
}: BridgeSnapshot): RouteSteps {
  const transactionFee = relayerFee === undefined ? 0n : applyFeeMultiplier(relayerFee, destinationSlug, feeMultiplier);
  return {
    bridge: identity,
    payOut: createSwapOrIdentity(destinationPool, H_TOKEN_INDEX),
    computeRelativeFee: zero,
    computeBonderFee: zero,
    transactionFee,
    computeTransactionFee: () => transactionFee,
  };
}

/**
 * From an L2, the bonder's fee is max(relative fee, minimum fee) (SDK: getBonderFeeRelative, getBonderFeeAbsolute,
 * getDestinationTransactionFee).
 */
function createBondedSteps(
  { sourcePool, destinationPool, destinationSlug, decimals, feeMultiplier, feeBps }: BridgeSnapshot,
  { delivery, minFee, nativeUsd, tokenUsd }: NonNullable<BridgeSnapshot["bonder"]>,
): RouteSteps {
  const fromHToken = createSwapOrIdentity(destinationPool, H_TOKEN_INDEX);
  const relativeFeeBps = BigInt(feeBps);
  const wei = delivery.gasPrice * (delivery.gas + getSettlementGas(destinationSlug)) + delivery.l1Fee;
  const feeInToken = convertWeiToToken(wei, nativeUsd, tokenUsd, decimals);
  const transactionFee = applyFeeMultiplier(feeInToken, destinationSlug, feeMultiplier);
  let adjustedTransactionFee: bigint | undefined;
  return {
    bridge: createSwapOrIdentity(sourcePool, CANONICAL_TOKEN_INDEX),
    payOut: fromHToken,
    computeRelativeFee: (bridgedAmount) => (bridgedAmount * relativeFeeBps) / 10_000n,
    computeBonderFee(relativeFee) {
      // Fees are deducted in hTokens, so the destination pool prices them.
      let fee = fromHToken(relativeFee);
      if (fee < relativeFee) fee = relativeFee;
      return fee < minFee ? minFee : fee;
    },
    transactionFee,
    computeTransactionFee() {
      adjustedTransactionFee ??= fromHToken(transactionFee);
      return adjustedTransactionFee;
    },
  };
}

/** By CCTP, the bonder's fee is the CCTP bridge's minBonderFee (SDK: getSendData for CCTP). */
function createCctpSteps(snapshot: CctpSnapshot): RouteSteps {
  const { delivery, destinationSlug, destinationIsL1, feeMultiplier, minBonderFee } = snapshot;
  const wei = delivery.gasPrice * delivery.gas + delivery.l1Fee;
  const feeInToken = convertWeiToToken(wei, snapshot.nativeUsd, snapshot.tokenUsd, snapshot.decimals);
  const transactionFee = applyFeeMultiplier(feeInToken, destinationSlug, feeMultiplier);
  const chargedFee = !destinationIsL1 && transactionFee <= CCTP_WAIVED_FEE_MAX ? 0n : transactionFee;
  return {
    bridge: identity,
    payOut: identity,
    computeRelativeFee: zero,
    computeBonderFee: () => minBonderFee,
    transactionFee,
    computeTransactionFee: () => chargedFee,
  };
}

/** Returns the swap of a pool, or the identity without one. Like the SDK, does not ask the pool about an amount of 0. */
function createSwapOrIdentity(pool: StableSwapPool | undefined, from: PoolTokenIndex): (amount: bigint) => bigint {
  if (pool === undefined) return identity;
  const swap = createStableSwapCalculator(pool);
  return (amount) => (amount === 0n ? 0n : swap(from, amount));
}
