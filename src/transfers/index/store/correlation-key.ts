import { createHash } from "node:crypto";
import type { TransferSentEvent } from "../../../hop/transfer-events.js";

// The key under which a transfer's sending and its arrival are both kept: what the two events have in common. Whether
// they belong together is settled by token and destination as well: the bridges of two tokens may give the same ID.
// Over an L2 bridge it is the transfer ID.

/** Over CCTP: the source's domain and the nonce, which is unique there only; undefined for what is no nonce. */
export function encodeCctpKey(sourceDomain: number, nonce: bigint): Buffer | undefined {
  if (nonce < 0n || nonce >= 1n << 64n) return undefined;
  const key = Buffer.alloc(12);
  key.writeUInt32BE(sourceDomain, 0);
  key.writeBigUInt64BE(nonce, 4);
  return key;
}

/** The nonce in such a key. */
export function decodeCctpNonce(key: Uint8Array): bigint {
  return Buffer.from(key).readBigUInt64BE(4);
}

/** From L1, where there is no ID: a hash of all values, which several transfers may share. */
export function hashTransferValues(
  token: string,
  destinationChainId: number,
  values: Omit<TransferSentEvent, "transferId" | "destinationChainId">,
): Buffer {
  const { recipient, amount, amountOutMin, deadline, relayer, bonderFee } = values;
  const all = [token, destinationChainId, recipient, amount, amountOutMin, deadline, relayer, bonderFee];
  return createHash("sha256").update(all.join(" ")).digest();
}
