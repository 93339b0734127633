import { readSender } from "../../../chain/read/chain-reads.js";
import type { FinalityTracker } from "../../../chain/read/finality-tracker.js";
import { decodeReceivedEvent } from "../../../hop/transfer-events.js";
import { withTimeout } from "../../../resilience/with-timeout.js";
import { buildTransferStatus, type StatusDetails, type TransferStatus } from "../../status.js";
import type { SentTransfer, TransferDelivery } from "../../transfer.js";
import type { LookupContext } from "../transfer-source.js";
import type { DetectedDelivery } from "./delivery-search.js";

export interface StatusBuilderOptions {
  readonly finality: FinalityTracker;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Builds the status of a transfer; reads the bonder and the finality of both blocks when it was delivered.
 * @param delivery undefined when the transfer has not been delivered
 */
export type StatusBuilder = (
  sent: SentTransfer,
  delivery: DetectedDelivery | undefined,
  otherTransferIds: readonly string[],
  context: LookupContext,
) => Promise<TransferStatus>;

/** Longest wait for the bonder and the finality of a delivery where the chains are fast, in milliseconds. */
const MIN_DETAILS_TIMEOUT_MS = 1_000;

/** The delivery of a transfer whose delivering log has not been found. */
const UNKNOWN_DELIVERY: TransferDelivery = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };

export function createStatusBuilder({ finality, now }: StatusBuilderOptions): StatusBuilder {
  return async (sent, delivery, otherTransferIds, { chains, signal, remainingMs, elapsedMs }) => {
    const log = delivery?.log;
    const details: Omit<StatusDetails, "isFinal"> = {
      otherTransferIds,
      observedAtMs: now(),
      source: "chain",
      priceUsd: undefined,
    };
    if (log === undefined)
      return buildTransferStatus(sent, delivery && UNKNOWN_DELIVERY, { ...details, isFinal: false });
    const source = chains.getClient(sent.source.slug);
    const destination = chains.getClient(sent.destination.slug);
    const { transactionHash, blockNumber } = log;
    const event = decodeReceivedEvent(log);
    const isBond = event?.kind === "l2" && event.isBond;
    // The delivery itself is certain: its details are not worth failing or delaying the response.
    const timeoutMs = Math.min(Math.max(MIN_DETAILS_TIMEOUT_MS, elapsedMs?.() ?? 0), remainingMs() / 2);
    const [bonder, isSendFinal, isDeliveryFinal] = await Promise.all([
      isBond ? withTimeout(readSender(destination, transactionHash, signal), timeoutMs, undefined) : undefined,
      withTimeout(
        finality.isFinal(source, { number: sent.blockNumber, timestamp: sent.timestamp }, signal),
        timeoutMs,
        false,
      ),
      withTimeout(finality.isFinal(destination, { number: blockNumber }, signal), timeoutMs, false),
    ]);
    const isComplete = !isBond || bonder !== undefined;
    return buildTransferStatus(
      sent,
      { transactionHash, blockNumber, bonder },
      { ...details, isFinal: isComplete && isSendFinal && isDeliveryFinal },
    );
  };
}
