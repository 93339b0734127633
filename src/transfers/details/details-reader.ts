import type { ChainClient } from "../../chain/chain-client.js";
import type { FinalityTracker } from "../../chain/heads/finality-tracker.js";
import {
  type BlockHeader,
  type Receipt,
  readBlockHeader,
  readReceipt,
  readRequiredBlockHeader,
  readRequiredReceipt,
} from "../../chain/read/chain-reads.js";
import { ServiceError } from "../../errors.js";
import type { Chain } from "../../hop/networks.js";
import { decodeSentEvent } from "../../hop/transfer-events.js";
import { withTimeoutOrFallback } from "../../resilience/abort-scope.js";
import type { ResumableLogScanner } from "../sources/chain/resumable-log-scanner.js";
import type { LookupContext } from "../sources/transfer-source.js";
import type { SentTransfer, TransferStatus } from "../status.js";
import { findPayout, getPayoutContracts } from "./payout.js";
import { readSettlement, type SettlementProgress } from "./settlement.js";
import type { Payout, TransferDetails, TransferLeg, TransferSubstate } from "./transfer-details.js";

/** Details without the estimate, which depends on no chain. */
export type ChainDetails = Omit<TransferDetails, "estimatedDeliveryAt">;

/**
 * Reads the details of a status from the chains.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a chain that has to tell the substate or what was received does not answer
 */
export type DetailsReader = (status: TransferStatus, context: LookupContext) => Promise<ChainDetails>;

/** The destination's part of the details. */
type DeliveryDetails = Pick<ChainDetails, "destination" | "payout">;

/** Longest wait for what changes neither the substate nor the amount, in milliseconds. */
const EXTRAS_TIMEOUT_MS = 1_000;

const UNKNOWN_DELIVERY: DeliveryDetails = { destination: undefined, payout: undefined };

export function createDetailsReader(logScanner: ResumableLogScanner, finality: FinalityTracker): DetailsReader {
  async function readDelivery(status: TransferStatus, context: LookupContext): Promise<DeliveryDetails> {
    const { sent, delivery, source } = status;
    if (delivery?.transactionHash === undefined) return UNKNOWN_DELIVERY;
    const { destination } = sent;
    const client = context.chains.getClient(destination.slug);
    const [receipt, block] = await readReceiptWithBlock(
      delivery.transactionHash,
      delivery.blockNumber,
      destination,
      context,
    );
    const contracts = getPayoutContracts(context.network, sent.token, destination);
    const { isDelivered, payout } = findPayout(sent, receipt.logs, contracts);
    // The explorer may be wrong; the chain itself is only wrong while a reorg replaces the block.
    if (!isDelivered && source !== "explorer") throw replacedBlockError(destination);
    const isFinal = status.isFinal || (await isKnownFinal(client, block, context));
    return { destination: { blockNumber: block.number, timestamp: block.timestamp, isFinal }, payout };
  }

  /** Returns whether a block is known to be final: a chain that does not tell soon is not worth failing or delaying the rest. */
  function isKnownFinal(
    client: ChainClient,
    block: { readonly number: number; readonly timestamp: number },
    { signal, remainingMs }: LookupContext,
  ): Promise<boolean> {
    return withTimeoutOrFallback(finality.isFinal(client, block, signal), getExtrasTimeoutMs(remainingMs), false);
  }

  async function readSource(
    status: TransferStatus,
    location: Promise<SentTransfer>,
    context: LookupContext,
  ): Promise<TransferLeg> {
    const { source } = status.sent;
    const { blockNumber, timestamp } = await withTimeoutOrFallback(
      location,
      getExtrasTimeoutMs(context.remainingMs),
      status.sent,
    );
    if (blockNumber === 0) return { blockNumber, timestamp, isFinal: false };
    const client = context.chains.getClient(source.slug);
    const isFinal = status.isFinal || (await isKnownFinal(client, { number: blockNumber, timestamp }, context));
    return { blockNumber, timestamp, isFinal };
  }

  return async (status, context) => {
    const isReceived = status.state === "BONDED";
    const location = locateSend(status.sent, context);
    const [source, delivery, settlement] = await Promise.all([
      readSource(status, location, context),
      readDelivery(status, context),
      isReceived || status.sent.kind !== "l2"
        ? undefined
        : location.then((sent) => readSettlement(sent, logScanner, context)),
    ]);
    return { substate: deriveSubstate(status, settlement, delivery.payout), source, ...delivery };
  };
}

/** Adds the position of the sending log, which the explorer does not know. */
async function locateSend(sent: SentTransfer, context: LookupContext): Promise<SentTransfer> {
  if (sent.blockNumber > 0) return sent;
  const { source, transactionHash, event } = sent;
  const client = context.chains.getClient(source.slug);
  const receipt =
    (await readReceipt(client, transactionHash, context.signal)) ??
    (await readRequiredReceipt(client, transactionHash, context.signal));
  const log = receipt.logs.find((each) => {
    const decoded = decodeSentEvent(each);
    return decoded !== undefined && decoded.transferId === event.transferId;
  });
  if (log === undefined) throw replacedBlockError(source);
  return { ...sent, blockNumber: log.blockNumber, logIndex: log.logIndex };
}

/** Reads a receipt and its block: in one round where the number of the block is known and has not changed since. */
async function readReceiptWithBlock(
  hash: string,
  blockNumber: number | undefined,
  chain: Chain,
  { chains, signal }: LookupContext,
): Promise<readonly [Receipt, BlockHeader]> {
  const client = chains.getClient(chain.slug);
  // Not the "required" variants at first: in a batch, one missing result would fail the others.
  const [found, expected] = await Promise.all([
    readReceipt(client, hash, signal),
    blockNumber === undefined ? undefined : readBlockHeader(client, blockNumber, signal),
  ]);
  const receipt = found ?? (await readRequiredReceipt(client, hash, signal));
  if (expected?.hash === receipt.blockHash) return [receipt, expected];
  return [receipt, await readRequiredBlockHeader(client, receipt.blockHash, signal)];
}

function replacedBlockError({ slug }: Chain): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} has replaced the block of this transfer`);
}

function getExtrasTimeoutMs(remainingMs: () => number): number {
  return Math.min(EXTRAS_TIMEOUT_MS, Math.max(0, remainingMs() / 2));
}

/**
 * Derives the substate of a transfer.
 * @param settlement of a transfer from an L2 that has not been received; undefined for any other
 * @param payout what the recipient got; undefined: nothing, or it is not known
 */
export function deriveSubstate(
  { state, sent }: Pick<TransferStatus, "state"> & { readonly sent: Pick<SentTransfer, "kind"> },
  settlement: SettlementProgress | undefined,
  payout: Payout | undefined,
): TransferSubstate {
  if (state === "BONDED") return payout?.isUnrequestedHToken ? "RECEIVED_HTOKEN" : "RECEIVED";
  if (sent.kind === "cctp") return "WAITING_FOR_ATTESTATION";
  if (sent.kind === "l1") return "WAITING_FOR_MESSAGE";
  if (settlement === "ARRIVED") return "WITHDRAWABLE";
  // A bonder can still pay after the commit, but one that wants to has done so within minutes, and commits are hours apart.
  return state === "UNBONDABLE" || settlement === "COMMITTED" ? "WAITING_FOR_SETTLEMENT" : "WAITING_FOR_BONDER";
}
