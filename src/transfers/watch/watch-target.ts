import type { Network } from "../../hop/networks.js";
import type { TransferQuery } from "../sources/transfer-source.js";

/** What a watch names: one transfer by its ID, or all transfers of a transaction. */
export interface WatchTarget {
  readonly network: Network;
  readonly kind: "id" | "hash";
  /** As in TransferQuery, lower case. */
  readonly value: string;
  /** Whether the details of the transfers are wanted as well. */
  readonly isFull: boolean;
}

/** Returns a key that equal targets share. */
export function getTargetKey({ network, kind, value, isFull }: WatchTarget): string {
  return `${network.slug} ${isFull ? "FULL" : "BASIC"} ${kind} ${value}`;
}

export function toTransferQuery({ kind, value }: WatchTarget): TransferQuery {
  return kind === "id"
    ? { transferId: value, transactionHash: undefined }
    : { transferId: undefined, transactionHash: value };
}

/** Returns the targets in the order of their keys, each once: equal watches have equal resume tokens. */
export function toCanonicalTargets(targets: readonly WatchTarget[]): readonly WatchTarget[] {
  const byKey = new Map(targets.map((target) => [getTargetKey(target), target]));
  return [...byKey.keys()].sort().map((key) => byKey.get(key) as WatchTarget);
}
