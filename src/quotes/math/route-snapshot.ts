import type { StableSwapPool } from "./stable-swap.js";

/** What a destination transaction costs: wei = gasPrice * gas + l1Fee. */
export interface DeliveryCost {
  /** Wei. */
  readonly gasPrice: bigint;
  /** Gas of the delivery itself, estimated or the SDK's constant; without settlement. */
  readonly gas: bigint;
  /** Wei for the data on L1; 0 where the chain charges none. */
  readonly l1Fee: bigint;
}

interface RouteSnapshotBase {
  /** Decimals of the token. */
  readonly decimals: number;
  readonly sourceIsL1: boolean;
  readonly destinationSlug: string;
  readonly destinationIsL1: boolean;
  /** Factor on the destination's transaction fee. */
  readonly feeMultiplier: number;
}

/** A transfer over Hop's own bridge. */
export interface BridgeSnapshot extends RouteSnapshotBase {
  readonly kind: "bridge";
  /** undefined: no swap there (L1, or a token without pools). */
  readonly sourcePool: StableSwapPool | undefined;
  readonly destinationPool: StableSwapPool | undefined;
  /** From an L2: what the bonder's fee is made of. From L1: undefined. */
  readonly bonder:
    | {
        /** Relative fee in hundredths of a percent. */
        readonly feeBps: number;
        /** Least fee by contract and by price, in the token's smallest unit. */
        readonly leastFee: bigint;
        readonly delivery: DeliveryCost;
        readonly nativeUsd: number;
        readonly tokenUsd: number;
      }
    | undefined;
  /** From L1: what the relayer takes, in the token's smallest unit, before the multiplier; undefined: no relayer. */
  readonly relayerFee: bigint | undefined;
}

/** A transfer of USDC by CCTP. */
export interface CctpSnapshot extends RouteSnapshotBase {
  readonly kind: "cctp";
  /** Least fee of the source's CCTP bridge, in the token's smallest unit. */
  readonly minBonderFee: bigint;
  readonly delivery: DeliveryCost;
  readonly nativeUsd: number;
  readonly tokenUsd: number;
}

/** Everything that a quote on one route depends on beside amount, slippage and clock. */
export type RouteSnapshot = BridgeSnapshot | CctpSnapshot;
