import type { StableSwapPool } from "./stable-swap.js";
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
