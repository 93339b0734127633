import type { Receipt } from "../../../chain/read/chain-reads.js";
import type { TransferStatus } from "../../status.js";
import type { LookupTurn } from "./lookup-turn.js";

/** A status in the form in which callers get it, made once for all of them. */
export interface Presented<M> {
  readonly message: M;
  /** Hash of everything in the message that counts as a change: prices are left out, which change all the time. */
  readonly fingerprint: number;
  /** Whether the message says all there is to say about a transfer whose blocks are final. */
  readonly isFinal: boolean;
}

/** Why a transfer is looked up again: what a poll has seen, or nothing new. */
export type LookupReason = "delivery" | "reorg" | "finality" | "verify";

/** One of a transfer's transactions, as polls have seen it. */
export interface FollowedTransaction {
  /** Hash of its block; undefined: not seen yet. */
  readonly blockHash: string | undefined;
  /** Polls in a row in which an endpoint that has its block did not have the transaction. */
  readonly misses: number;
}

/** A transfer that a follower has found. */
export interface FollowedTransfer<M> {
  /** Place among the transfers of the follower; never used again for another. */
  readonly slot: number;
  status: TransferStatus;
  presented: Presented<M>;
  /** Whether its status cannot change any more. */
  isSettled: boolean;
  isSourceFinal: boolean;
  send: FollowedTransaction;
  delivery: FollowedTransaction;
  /** When it was looked up last, in milliseconds on the monotonic clock. */
  lookedUpAt: number;
  /** Its lookups. */
  readonly turn: LookupTurn;
}

export const UNSEEN_TRANSACTION: FollowedTransaction = { blockHash: undefined, misses: 0 };

/** One poll may reach an endpoint that has a block but not its transactions yet. */
const MISSES_BEFORE_REORG = 2;

/**
 * Records what a poll says about a transaction that was mined in a block.
 * @returns the next state, and whether a reorg has removed or moved the transaction
 */
export function recordReceipt(
  transaction: FollowedTransaction,
  { receipt, head, blockNumber }: { receipt: Receipt | undefined; head: number; blockNumber: number },
): { readonly next: FollowedTransaction; readonly isReorged: boolean } {
  // An endpoint that lags behind knows neither the block nor the transaction.
  if (receipt === undefined && head < blockNumber) return { next: transaction, isReorged: false };
  if (receipt === undefined) {
    const misses = transaction.misses + 1;
    return { next: { ...transaction, misses }, isReorged: misses >= MISSES_BEFORE_REORG };
  }
  const { blockHash } = receipt;
  const isReorged = transaction.blockHash !== undefined && transaction.blockHash !== blockHash;
  // Until a lookup has found out where it is now, each poll says so again.
  return { next: isReorged ? transaction : { blockHash, misses: 0 }, isReorged };
}

/** Returns whether nothing about a transfer can change any more. */
export function isFinalTransfer({ isSettled, presented }: FollowedTransfer<unknown>): boolean {
  return isSettled && presented.isFinal;
}

/** Returns whether everything that callers see of a delivered transfer is known. */
export function isDeliveryComplete({ delivery }: TransferStatus): boolean {
  return delivery?.transactionHash !== undefined && delivery.blockNumber !== undefined;
}

/**
 * Returns whether a status that a lookup returned replaces the one that is known. An endpoint that lags, or the explorer,
 * may return an older one: a transfer goes back only when polls have seen a reorg, or when the index, which is newer, says so.
 */
export function isNewerStatus(known: TransferStatus, found: TransferStatus, reason: LookupReason): boolean {
  if (found.source === "explorer") return known.source === "explorer" && !isBackward(known, found);
  if (found.source === "index") return found.observedAtMs >= known.observedAtMs || !isBackward(known, found);
  return reason === "reorg" || !isBackward(known, found);
}

function isBackward(known: TransferStatus, found: TransferStatus): boolean {
  if (known.delivery === undefined) return false;
  if (found.delivery === undefined) return true;
  return known.delivery.transactionHash !== undefined && found.delivery.transactionHash === undefined;
}
