import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import {
  decodeUintAt,
  encodeWithOffsets,
  encodeWord,
  toEventTopic,
  toFunctionSelector,
} from "../chain/abi/abi-encoding.js";
import type { Log } from "../chain/read/chain-reads.js";
import type { TransferSentEvent } from "./transfer-events.js";

// How transfers between L2s and to L1 are settled (L2_Bridge and Bridge of Hop's contracts). A bridge on an L2 collects the
// transfers to each destination. `commitTransfers`, or a send to a full collection, makes them one transfer root, emits
// TransfersCommitted and starts a new collection. The root travels through L1 to the bridge of the destination, which
// stores it and emits TransferRootSet; from then on anybody can withdraw each of its transfers.

/** Topic 0 of TransfersCommitted. */
export const TRANSFERS_COMMITTED_TOPIC = toEventTopic("TransfersCommitted(uint256,bytes32,uint256,uint256)");

/** Transfers of one root, more than any bridge collects: their limits are 128 to 1,024. */
export const MAX_LEAVES = 4_096;

/** A root of transfers. */
export interface CommittedRoot {
  /** Merkle root, 32 bytes. */
  readonly rootHash: string;
  /** Sum of its transfers, in the token's smallest unit. */
  readonly totalAmount: bigint;
}

/** An event that makes the collected transfers to a destination a root. */
export interface TransfersCommittedEvent extends CommittedRoot {
  readonly destinationChainId: number;
  /** Unix seconds. */
  readonly committedAt: number;
}

/** The parts of a transfer that its ID is made of, beside the nonce. */
export type TransferIdentity = Omit<TransferSentEvent, "transferId" | "relayer">;

/** Where a transfer is among those of its root, and what proves it. */
export interface TransferProof extends CommittedRoot {
  readonly transferNonce: string;
  /** Place among the leaves. */
  readonly treeIndex: number;
  /** From the bottom up. */
  readonly siblings: readonly string[];
  readonly totalLeaves: number;
}

const GET_TRANSFER_ROOT_SELECTOR = toFunctionSelector("getTransferRoot(bytes32,uint256)");
const PENDING_TRANSFER_ID_SELECTOR = toFunctionSelector("pendingTransferIdsForChainId(uint256,uint256)");
const LAST_COMMIT_TIME_SELECTOR = toFunctionSelector("lastCommitTimeForChainId(uint256)");
const WITHDRAW_SELECTOR = toFunctionSelector(
  "withdraw(address,uint256,bytes32,uint256,uint256,uint256,bytes32,uint256,uint256,bytes32[],uint256)",
);
/** Arguments of `withdraw`: of them, only the siblings are of variable length. */
const WITHDRAW_ARGUMENTS = 11;

/** Encodes a call of an L2 bridge's `minimumForceCommitDelay()`, in seconds. */
export const FORCE_COMMIT_DELAY_CALL = toFunctionSelector("minimumForceCommitDelay()");

/** Decodes TransfersCommitted; returns undefined for other or malformed events. */
export function decodeTransfersCommitted({ topics, data }: Log): TransfersCommittedEvent | undefined {
  const [topic0, destination, rootHash] = topics;
  // data: totalAmount, rootCommittedAt
  const totalAmount = decodeUintAt(data, 0);
  const committedAt = decodeUintAt(data, 1);
  if (topic0 !== TRANSFERS_COMMITTED_TOPIC || destination === undefined || rootHash === undefined) return undefined;
  if (totalAmount === undefined || committedAt === undefined) return undefined;
  return { rootHash, totalAmount, destinationChainId: Number(BigInt(destination)), committedAt: Number(committedAt) };
}

/** Encodes a call of a bridge's `getTransferRoot(bytes32,uint256)`. */
export function encodeGetTransferRootCall({ rootHash, totalAmount }: CommittedRoot): string {
  return GET_TRANSFER_ROOT_SELECTOR + encodeWord(rootHash) + encodeWord(totalAmount);
}

/**
 * Decodes the result of that call: the total, the sum of what was withdrawn and of what was bonded and is settled, both in
 * the token's smallest unit, and when the root arrived, in Unix seconds (0n: it has not). Returns undefined for malformed
 * data.
 */
export function decodeStoredRoot(data: string) {
  const total = decodeUintAt(data, 0);
  const amountWithdrawn = decodeUintAt(data, 1);
  const createdAt = decodeUintAt(data, 2);
  if (total === undefined || amountWithdrawn === undefined || createdAt === undefined) return undefined;
  return { total, amountWithdrawn, createdAt };
}

/** Computes the ID of a transfer from an L2 from its parts. */
export function computeTransferId(event: TransferIdentity, transferNonce: string): string {
  const words = encodeWord(BigInt(event.destinationChainId)) + encodeIdentity(event, transferNonce);
  return `0x${bytesToHex(keccak_256(hexToBytes(words)))}`;
}

/** Encodes a call of a bridge's `withdraw`. */
export function encodeWithdrawCall(event: TransferIdentity, proof: TransferProof): string {
  const { transferNonce, rootHash, totalAmount, treeIndex, siblings, totalLeaves } = proof;
  const list = encodeWord(BigInt(siblings.length)) + siblings.map(encodeWord).join("");
  return [
    WITHDRAW_SELECTOR,
    encodeIdentity(event, transferNonce),
    encodeWord(rootHash),
    encodeWord(totalAmount),
    encodeWord(BigInt(treeIndex)),
    encodeWithOffsets([list], WITHDRAW_ARGUMENTS).slice(0, 64),
    encodeWord(BigInt(totalLeaves)),
    list,
  ].join("");
}

/** Encodes a call of `pendingTransferIdsForChainId`, which returns an ID that is not committed and reverts past the last one. */
export function encodePendingTransferIdCall(destinationChainId: number, treeIndex: number): string {
  return PENDING_TRANSFER_ID_SELECTOR + encodeWord(BigInt(destinationChainId)) + encodeWord(BigInt(treeIndex));
}

/** Encodes a call of `lastCommitTimeForChainId`, in Unix seconds; 0: nobody has called `commitTransfers`. */
export function encodeLastCommitTimeCall(destinationChainId: number): string {
  return LAST_COMMIT_TIME_SELECTOR + encodeWord(BigInt(destinationChainId));
}

/** Encodes the values that a transfer ID is made of, without the destination chain. */
function encodeIdentity(
  { recipient, amount, bonderFee, amountOutMin, deadline }: TransferIdentity,
  transferNonce: string,
): string {
  return [recipient, amount, transferNonce, bonderFee, amountOutMin, deadline].map(encodeWord).join("");
}
