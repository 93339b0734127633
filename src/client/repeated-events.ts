import { equals } from "@bufbuild/protobuf";
import { type WatchTransfersResponse, WatchTransfersResponseSchema } from "../../gen/hop/bridge/v1/bridge_pb.js";

/** A state of a transfer, or that nobody knows it. `resumeToken` resumes the watch after it, in another process too. */
export type WatchEvent = WatchTransfersResponse & {
  readonly event: Extract<WatchTransfersResponse["event"], { readonly case: "transfer" | "unknown" }>;
};

/** The last events of this many transfers are remembered. */
const MAX_REMEMBERED = 1_000;

/**
 * Returns a function that tells whether an event only repeats the last one about its transfer. A service repeats states
 * when the token of a resumed watch is too old.
 */
export function createRepeatDetector(): (event: WatchEvent) => boolean {
  const lastByKey = new Map<string, WatchEvent>();

  /** Forgets what the event makes obsolete: that its transaction is unknown, or the transfers of an unknown one. */
  function forgetContradicted({ event }: WatchEvent): void {
    if (event.case === "transfer") {
      lastByKey.delete(event.value.transactionHash);
      lastByKey.delete(event.value.bondTransactionHash);
      return;
    }
    const { transferHash } = event.value;
    if (transferHash === "") return;
    for (const [key, { event: last }] of lastByKey) {
      if (last.case !== "transfer") continue;
      const { transactionHash, bondTransactionHash } = last.value;
      if (transactionHash === transferHash || bondTransactionHash === transferHash) lastByKey.delete(key);
    }
  }

  return (event) => {
    const { value } = event.event;
    const key = value.transferId || ("transferHash" in value ? value.transferHash : value.transactionHash);
    const compared = { ...event, resumeToken: "" };
    const last = lastByKey.get(key);
    if (last !== undefined && equals(WatchTransfersResponseSchema, last, compared)) return true;
    forgetContradicted(event);
    // The one that was remembered the longest goes first.
    lastByKey.delete(key);
    lastByKey.set(key, compared);
    const [oldest] = lastByKey.keys();
    if (lastByKey.size > MAX_REMEMBERED && oldest !== undefined) lastByKey.delete(oldest);
    return false;
  };
}
