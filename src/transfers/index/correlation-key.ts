import { createHash } from "node:crypto";
import type { TransferSentEvent } from "../../hop/transfer-events.js";

// The correlation key connects the send and the delivery of a transfer: a value that both events contain. It is not
// unique, because the bridges of two tokens may assign the same ID, so token and destination are compared as well.
// For an L2 bridge the key is the transfer ID; for CCTP and for L1 it is built here.

/** Builds the key of a CCTP transfer: the source domain and the nonce, which is unique per domain. Returns undefined beyond 64 bits. */
export function encodeCctpKey(sourceDomain: number, nonce: bigint): Buffer | undefined {
  if (nonce < 0n || nonce >= 1n << 64n) return undefined;
  const key = Buffer.alloc(12);
  key.writeUInt32BE(sourceDomain, 0);
  key.writeBigUInt64BE(nonce, 4);
  return key;
}

/** Extracts the nonce from a CCTP key. */
export function extractNonceFromCctpKey(key: Uint8Array): bigint {
  return Buffer.from(key).readBigUInt64BE(4);
}

/** Builds the key of a transfer from L1, which has no ID: a hash of all its values. Several transfers may share it. */
export function computeL1TransferKey(
  token: string,
  destinationChainId: number,
  values: Omit<TransferSentEvent, "transferId" | "destinationChainId">,
): Buffer {
  const { recipient, amount, amountOutMin, deadline, relayer, bonderFee } = values;
  const fields = [token, destinationChainId, recipient, amount, amountOutMin, deadline, relayer, bonderFee];
  return createHash("sha256").update(fields.join(" ")).digest();
}
