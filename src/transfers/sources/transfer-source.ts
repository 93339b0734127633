import type { NetworkChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { Chain, Network } from "../../hop/networks.js";
import type { TransferStatus } from "../status.js";

/** Identifies a transfer; at least one member is defined. Hex is lower case. */
export interface TransferQuery {
  /** A transfer ID, the hash of a transaction on L1, or a decimal CCTP nonce. */
  readonly transferId: string | undefined;
  /** Hash of the sending or of the delivering transaction. */
  readonly transactionHash: string | undefined;
}

/** What a lookup may use, and for how long. */
export interface LookupContext {
  readonly network: Network;
  readonly chains: NetworkChainClients;
  /** Key that tells callers apart: they share limited resources fairly. */
  readonly caller: string;
  /** Returns the time until the deadline, in milliseconds. */
  remainingMs(): number;
  /**
   * Returns how long the lookup has taken so far, in milliseconds; absent: unknown. Details that are not worth failing are
   * waited for as long: where the chains are slow, they come late too.
   */
  readonly elapsedMs?: () => number;
  /** Fires when no caller waits for the result any more. */
  readonly signal: AbortSignal;
  /** Lets a log search skip blocks; absent when every block has to be searched. */
  readonly lastSearchedBlock?: LastSearchedBlock | undefined;
}

/**
 * Returns the block of a chain up to which, from the chain's beginning, another source has searched for the transfer ID
 * without finding it; -1 for none.
 */
export type LastSearchedBlock = (chain: Chain) => number;

/** The status of a transfer; undefined when the transfer certainly does not exist. */
export type LookupResult = TransferStatus | undefined;

/**
 * A source that can tell whether a transfer exists. Both methods throw ServiceError UPSTREAM_UNAVAILABLE, naming the
 * upstream that did not answer, or OVERLOADED, when the source cannot know, and INVALID_PARAMETER for a CCTP nonce that several source
 * chains use.
 */
export interface TransferSource {
  /**
   * Returns the first transfer, in log order, that a transaction sent; if it sent none, the first that it delivered.
   * @param transferId selects one transfer of the transaction
   */
  findByTransactionHash(hash: string, transferId: string | undefined, context: LookupContext): Promise<LookupResult>;
  /** @param transferId as in TransferQuery */
  findByTransferId(transferId: string, context: LookupContext): Promise<LookupResult>;
}

/** Queries a source by hash if the query has one, otherwise by transfer ID. */
export function querySource(
  source: TransferSource,
  { transactionHash, transferId }: TransferQuery,
  context: LookupContext,
): Promise<LookupResult> {
  if (transactionHash !== undefined) return source.findByTransactionHash(transactionHash, transferId, context);
  if (transferId === undefined) throw new Error("a transfer query needs a transfer ID or a transaction hash");
  return source.findByTransferId(transferId, context);
}

/** Returns whether the caller supplied the endpoint of at least one of these chains: the result is then private to it. */
export function usesCustomEndpoints(chains: NetworkChainClients, slugs: Iterable<string>): boolean {
  for (const slug of slugs) if (chains.hasCustomEndpoint(slug)) return true;
  return false;
}

/** Returns whether a transfer ID is a decimal CCTP nonce. */
export function isCctpNonce(transferId: string): boolean {
  return /^[0-9]+$/.test(transferId);
}

/** Reports a nonce that is not enough to identify a transfer: a CCTP nonce is unique per source chain only. */
export function ambiguousNonceError(): ServiceError {
  const message = "several source chains have a CCTP transfer with this nonce: give the transaction's hash as well";
  return new ServiceError("INVALID_PARAMETER", message, { field: "transferId" });
}

/**
 * Returns whether an error means that a source cannot know the answer, while other sources may: it did not answer, or a
 * budget of this process (RPC_BUDGET, requests in flight) does not permit to ask it.
 */
export function isSourceUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && (error.reason === "UPSTREAM_UNAVAILABLE" || error.reason === "OVERLOADED");
}
