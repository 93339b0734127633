import type { NetworkChains } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { Chain, Network } from "../../hop/networks.js";
import type { TransferSourceName, TransferStatus } from "../status.js";

/** Which transfer is meant. Hex is lower case. */
export interface TransferQuery {
  /** A transfer ID, the hash of a transaction on L1, or a decimal CCTP nonce. */
  readonly transferId: string | undefined;
  /** Hash of the sending transaction, or of the delivering one. */
  readonly transactionHash: string | undefined;
}

/** What a look-up may use, and how long. */
export interface LookupContext {
  readonly network: Network;
  readonly chains: NetworkChains;
  /** How long until the answer is due, in milliseconds. */
  remainingMs(): number;
  /** Fires when nobody waits any more. */
  readonly signal: AbortSignal;
  /** Where logs need not be searched for an ID; absent: nowhere. */
  readonly lastSearchedBlock?: LastSearchedBlock | undefined;
}

/** The last block of a chain up to which, from its beginning, somebody else has searched for an ID in vain; -1: none. */
export type LastSearchedBlock = (chain: Chain) => number;

/** What a source finds: undefined where it is sure that there is no such transfer. */
export type LookupResult = TransferStatus | undefined;

/**
 * Somebody who knows of transfers; one that needs to wait for nothing answers without a promise. Both throw ServiceError
 * UPSTREAM_UNAVAILABLE, naming who did not answer, when the source cannot know, and INVALID_PARAMETER for a CCTP nonce
 * that several source chains have.
 */
export interface TransferSource<
  Answer extends LookupResult | Promise<LookupResult> = LookupResult | Promise<LookupResult>,
> {
  readonly name: TransferSourceName;
  /**
   * The first transfer, in log order, that a transaction sent; of one that sent none, that it delivered.
   * @param transferId the one that is meant, where the caller says so
   */
  findByTransactionHash(hash: string, transferId: string | undefined, context: LookupContext): Answer;
  /** @param transferId as in TransferQuery */
  findByTransferId(transferId: string, context: LookupContext): Answer;
}

/** Asks a source by what the caller gave: by hash where there is one. */
export function querySource<Answer extends LookupResult | Promise<LookupResult>>(
  source: TransferSource<Answer>,
  { transactionHash, transferId }: TransferQuery,
  context: LookupContext,
): Answer {
  if (transactionHash !== undefined) return source.findByTransactionHash(transactionHash, transferId, context);
  if (transferId === undefined) throw new Error("neither id nor hash");
  return source.findByTransferId(transferId, context);
}

/** Whether a transfer ID is a CCTP nonce, in decimal. */
export function isCctpNonce(transferId: string): boolean {
  return /^[0-9]+$/.test(transferId);
}

/** A CCTP nonce is unique per source chain only. */
export function ambiguousNonceError(): ServiceError {
  const message = "several source chains have a CCTP transfer with this nonce: give the transaction's hash as well";
  return new ServiceError("INVALID_PARAMETER", message, { field: "transferId" });
}

/** Whether a failure means that somebody cannot know, and others may. */
export function isUpstreamUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === "UPSTREAM_UNAVAILABLE";
}
