import type { ServiceError } from "../../errors.js";

/** What a transfer waits for, or how it ended. */
export type TransferSubstate =
  | "WAITING_FOR_BONDER"
  | "WAITING_FOR_ATTESTATION"
  | "WAITING_FOR_MESSAGE"
  | "WAITING_FOR_SETTLEMENT"
  | "WITHDRAWABLE"
  | "RECEIVED"
  | "RECEIVED_HTOKEN";

/** What the recipient of a transfer got. */
export interface Payout {
  /** In the token's smallest unit. */
  readonly amount: bigint;
  /** Symbol of the token, or of its hToken. */
  readonly token: string;
  /** Whether these are hTokens although the transfer asks for the token. */
  readonly isUnrequestedHToken: boolean;
}

/** A transaction of a transfer on one of its chains. */
export interface TransferLeg {
  /** Number of its block; 0: unknown. */
  readonly blockNumber: number;
  /** Time of its block, Unix seconds; 0: unknown. */
  readonly timestamp: number;
  /** Whether the block is final. */
  readonly isFinal: boolean;
}

/** How a transfer goes on, and what the recipient got. */
export interface TransferDetails {
  readonly substate: TransferSubstate;
  /** undefined while the transfer is pending, and when it is not known what the recipient got. */
  readonly payout: Payout | undefined;
  readonly source: TransferLeg;
  /** undefined while the transfer is pending, and when the delivering transaction has not been found. */
  readonly destination: TransferLeg | undefined;
  /** When half of the transfers of this route would have been received, Unix seconds; undefined: unknown. */
  readonly estimatedDeliveryAt: number | undefined;
}

/** The details of one status; an error when a chain that has to tell them did not answer. */
export type DetailsOutcome = { readonly details: TransferDetails } | { readonly error: ServiceError };

/** Returns whether details can never change: both blocks are final. */
export function areFinalDetails({ source, destination }: Pick<TransferDetails, "source" | "destination">): boolean {
  return source.isFinal && destination?.isFinal === true;
}
