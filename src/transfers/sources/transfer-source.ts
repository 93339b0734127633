import type { ChainAccess } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { Chain, Network } from "../../hop/networks.js";
import type { SourceName, TransferStatus } from "../status.js";

/** Which transfer is meant. Hex is lower case. */
export interface TransferQuery {
  /** A transfer ID, the hash of a transaction on L1, or a decimal CCTP nonce. */
  readonly transferId: string | undefined;
  /** Hash of the sending transaction, or of the delivering one. */
  readonly transactionHash: string | undefined;
}

/** What a look-up may use, and how long. */
export interface LookUpContext {
  readonly network: Network;
  readonly chains: ChainAccess;
  /** How long until the answer is due, in milliseconds. */
  leftMs(): number;
  /** Fires when nobody waits any more. */
  readonly signal: AbortSignal;
  /** Where logs need not be searched for an ID; absent: nowhere. */
  readonly searchedTo?: SearchedTo | undefined;
}

/** The last block of a chain up to which, from its beginning, somebody else has searched for an ID in vain; -1: none. */
export type SearchedTo = (chain: Chain) => number;

/** What a source finds: undefined where it is sure that there is no such transfer. */
export type Found = TransferStatus | undefined;

/**
 * Somebody who knows of transfers; one that needs to wait for nothing answers without a promise. Both throw ServiceError
 * UPSTREAM_UNAVAILABLE, naming who did not answer, when the source cannot know, and INVALID_PARAMETER for a CCTP nonce
 * that several source chains have.
 */
export interface TransferSource<Answer extends Found | Promise<Found> = Found | Promise<Found>> {
  readonly name: SourceName;
  /**
   * The first transfer, in log order, that a transaction sent; of one that sent none, that it delivered.
   * @param transferId the one that is meant, where the caller says so
   */
  byTransactionHash(hash: string, transferId: string | undefined, context: LookUpContext): Answer;
  /** @param transferId as in TransferQuery */
  byTransferId(transferId: string, context: LookUpContext): Answer;
}

/** Asks a source by what the caller gave: by hash where there is one. */
export function ask<Answer extends Found | Promise<Found>>(
  source: TransferSource<Answer>,
  { transactionHash, transferId }: TransferQuery,
  context: LookUpContext,
): Answer {
  if (transactionHash !== undefined) return source.byTransactionHash(transactionHash, transferId, context);
  if (transferId === undefined) throw new Error("neither id nor hash");
  return source.byTransferId(transferId, context);
}

/** Whether a transfer ID is a CCTP nonce, in decimal. */
export function isNonce(transferId: string): boolean {
  return /^[0-9]+$/.test(transferId);
}

/** A CCTP nonce is unique per source chain only. */
export function ambiguousNonce(): ServiceError {
  const message = "several source chains have a CCTP transfer with this nonce: give the transaction's hash as well";
  return new ServiceError("INVALID_PARAMETER", message, { field: "transferId" });
}

/** Whether a failure means that somebody cannot know, and others may. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === "UPSTREAM_UNAVAILABLE";
}
