import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { decodeUintAt, encodeWord, toFunctionSelector } from "../chain/abi/abi-encoding.js";
import type { Log } from "../chain/read/chain-reads.js";

// How transfers between L2s and to L1 are settled (L2_Bridge and Bridge of Hop's contracts). A bridge on an L2 collects the
// transfers to each destination. `commitTransfers`, or a send to a full collection, makes them one transfer root, emits
// TransfersCommitted and starts a new collection. The root travels through L1 to the bridge of the destination, which
// stores it and emits TransferRootSet; from then on anybody can withdraw each of its transfers.

/** Topic 0 of TransfersCommitted. */
export const TRANSFERS_COMMITTED_TOPIC = toEventTopic("TransfersCommitted(uint256,bytes32,uint256,uint256)");

/** A root of transfers. */
export interface CommittedRoot {
  /** Merkle root, 32 bytes. */
  readonly rootHash: string;
  /** Sum of its transfers, in the token's smallest unit. */
  readonly totalAmount: bigint;
}

/** A root as the bridge of the destination has stored it. Amounts in the token's smallest unit. */
export interface StoredRoot {
  readonly total: bigint;
  /** Sum of what was withdrawn, and of what was bonded and is settled. */
  readonly amountWithdrawn: bigint;
  /** Unix seconds; 0n: the root has not arrived. */
  readonly createdAt: bigint;
}

const GET_TRANSFER_ROOT_SELECTOR = toFunctionSelector("getTransferRoot(bytes32,uint256)");

/** Decodes TransfersCommitted; returns undefined for other or malformed events. */
export function decodeTransfersCommitted({ topics, data }: Log): CommittedRoot | undefined {
  const [topic0, , rootHash] = topics;
  // data: totalAmount, rootCommittedAt
  const totalAmount = decodeUintAt(data, 0);
  if (topic0 !== TRANSFERS_COMMITTED_TOPIC || rootHash === undefined || totalAmount === undefined) return undefined;
  return { rootHash, totalAmount };
}

/** Encodes a call of a bridge's `getTransferRoot(bytes32,uint256)`. */
export function encodeGetTransferRootCall({ rootHash, totalAmount }: CommittedRoot): string {
  return GET_TRANSFER_ROOT_SELECTOR + encodeWord(rootHash) + encodeWord(totalAmount);
}

/** Decodes the result of that call; returns undefined for malformed data. */
export function decodeStoredRoot(data: string): StoredRoot | undefined {
  const total = decodeUintAt(data, 0);
  const amountWithdrawn = decodeUintAt(data, 1);
  const createdAt = decodeUintAt(data, 2);
  if (total === undefined || amountWithdrawn === undefined || createdAt === undefined) return undefined;
  return { total, amountWithdrawn, createdAt };
}

function toEventTopic(signature: string): string {
  return `0x${bytesToHex(keccak_256(new TextEncoder().encode(signature)))}`;
}
