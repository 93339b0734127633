import type { NetworkChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { Chain, Network } from "../../hop/networks.js";
import type { Requester } from "../../resilience/waiters.js";
import type { TransferStatus } from "../status.js";

/** Identifies a transfer; at least one member is defined. Hex is lower case. */
export interface TransferQuery {
  /** A transfer ID, the hash of a transaction on L1, or a decimal CCTP nonce. */
  readonly transferId: string | undefined;
  /** Hash of the sending or of the delivering transaction. */
  readonly transactionHash: string | undefined;
}

/** Whose lookup it is, what it may use, and for how long. */
export interface LookupContext extends Requester {
  readonly network: Network;
  readonly chains: NetworkChainClients;
  /** Whether the caller has named endpoints of these chains: what they tell is neither kept nor shared. */
  readonly isPrivate: boolean;
  /** Returns the time until the deadline, in milliseconds. */
  remainingMs(): number;
  /**
   * Returns how long the lookup has taken so far, in milliseconds; absent: unknown. Details that are not worth failing are
   * waited for as long: where the chains are slow, they come late too.
   */
  readonly elapsedMs?: () => number;
  /** Lets a log search skip blocks; absent when every block has to be searched. */
  readonly lastSearchedBlock?: LastSearchedBlock | undefined;
}

/** Copies a context whose members may be getters and methods of a class: spreading it would lose those. */
export function copyContext(context: LookupContext, signal = context.signal): LookupContext {
  const { chains, caller } = context;
  return { ...context, chains, caller, signal, remainingMs: () => context.remainingMs() };
}

/**
 * Returns the block of a chain up to which, from the chain's beginning, another source has searched for the transfer ID
 * without finding it; -1 for none.
 */
export type LastSearchedBlock = (chain: Chain) => number;

/** The status of a transfer; undefined when the transfer certainly does not exist. */
export type LookupResult = TransferStatus | undefined;

/** Can tell whether a transfer exists: a source, or all of them together. */
export interface TransferSource {
  /**
   * Returns the status of a transfer, or undefined when it certainly does not exist. A transaction hash finds the first
   * transfer, in log order, that the transaction sent; if it sent none, the first that it delivered. A transfer ID beside it
   * selects one of them.
   * @throws ServiceError UPSTREAM_UNAVAILABLE, naming the upstream that did not answer, or OVERLOADED, when the source cannot
   * know; INVALID_PARAMETER for a CCTP nonce that several source chains use
   */
  resolve(query: TransferQuery, context: LookupContext): Promise<LookupResult>;
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
