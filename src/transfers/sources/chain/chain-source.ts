import type { FinalityTracker } from "../../../chain/heads/finality-tracker.js";
import { readReceipt, readRequiredReceipt, readSender } from "../../../chain/read/chain-reads.js";
import { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Network } from "../../../hop/networks.js";
import { decodeReceivedEvent } from "../../../hop/transfer-events.js";
import { withTimeoutOrFallback } from "../../../resilience/abort-scope.js";
import {
  buildTransferStatus,
  isCctpNonce,
  type SentTransfer,
  type TransferDelivery,
  type TransferStatus,
} from "../../status.js";
import type { LookupContext, LookupResult, TransferQuery, TransferSource } from "../transfer-source.js";
import { type DeliveredTransfer, findDeliveredTransfer } from "./delivered-transfers.js";
import { type DetectedDelivery, findDelivery, requireRouteValue } from "./delivery-search.js";
import { type EqualTransferGroup, findL1Completion } from "./l1-completion.js";
import { incompleteChainDataError, readLogTimestamp, type SearchCaches, type SearchContext } from "./search-context.js";
import {
  findSendByNonce,
  findSendByTransferId,
  findTransaction,
  type LocatedSend,
  raceFirstDefined,
} from "./send-search.js";
import { type ParsedSend, parseSend, parseSentTransferIds } from "./transfer-logs.js";

/** Longest wait for the bonder and the finality of a delivery where the chains are fast, in milliseconds. */
const MIN_DETAILS_TIMEOUT_MS = 1_000;
/** The delivery of a transfer whose delivering log has not been found. */
const UNKNOWN_DELIVERY: TransferDelivery = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };

/** Reads transfers from the receipts, logs and contracts of the chains. */
export class ChainSource implements TransferSource {
  readonly #caches: SearchCaches;
  readonly #finality: FinalityTracker;
  readonly #now: () => number;
  readonly #contracts = new Map<Network, ContractRegistry>();

  /** @param now milliseconds since 1970 */
  constructor(caches: SearchCaches, finality: FinalityTracker, now: () => number) {
    this.#caches = caches;
    this.#finality = finality;
    this.#now = now;
  }

  async resolve({ transactionHash, transferId }: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const search = this.#createSearch(context);
    return transactionHash === undefined
      ? this.#findByTransferId(transferId ?? "", search)
      : this.#findByTransactionHash(transactionHash, transferId, search);
  }

  async #findByTransferId(transferId: string, search: SearchContext): Promise<LookupResult> {
    if (isCctpNonce(transferId)) {
      const send = await findSendByNonce(BigInt(transferId), [...search.network.chains.values()], search);
      return send && this.#resolveSend(send, search);
    }
    const send = await raceFirstDefined(
      [findSendOnL1, findSendOnL2s],
      (find, signal) => find(transferId, { ...search, signal }),
      search.signal,
    );
    return send && this.#resolveSend(send, search);
  }

  /** @param transferId undefined: any */
  async #findByTransactionHash(
    hash: string,
    transferId: string | undefined,
    search: SearchContext,
  ): Promise<LookupResult> {
    const transaction = await findTransaction(hash, search);
    if (transaction === undefined) return undefined;
    const { chain, receipt } = transaction;
    const sends = parseSentTransferIds(search.network, search.contracts, chain, receipt);
    const candidates = sends.filter(({ id }) => transferId === undefined || id === transferId);
    const send = candidates.find(({ isDestinationKnown }) => isDestinationKnown) ?? candidates[0];
    if (send !== undefined) return this.#resolveSend({ chain, log: send.log, receipt }, search);
    const delivered = await findDeliveredTransfer(chain, receipt, transferId, search);
    if (delivered === undefined) return undefined;
    const status = await this.#resolveSend(delivered.send, search, delivered);
    return delivered.areSiblingsKnown ? status : { ...status, isFinal: false };
  }

  /**
   * Returns the status of a transfer whose send is already known from another source.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chains cannot tell
   */
  async resolveStatus(
    sent: SentTransfer,
    otherTransferIds: readonly string[],
    context: LookupContext,
  ): Promise<TransferStatus> {
    const delivery = await findDeliveryOf(sent, Promise.resolve(sent.timestamp), this.#createSearch(context));
    return this.#buildStatus(sent, delivery, otherTransferIds, context);
  }

  #createSearch(context: LookupContext): SearchContext {
    const { network } = context;
    const contracts = this.#contracts.get(network) ?? new ContractRegistry(network);
    this.#contracts.set(network, contracts);
    return { ...context, ...this.#caches, contracts };
  }

  /**
   * Returns the status of the transfer that a log sent.
   * @param known what has been read of the delivery already
   */
  async #resolveSend(
    send: LocatedSend,
    search: SearchContext,
    known: Partial<Pick<DeliveredTransfer, "deliveryLog" | "otherTransferIds">> = {},
  ): Promise<TransferStatus> {
    const { chain, log } = send;
    const { network, contracts, chains, signal } = search;
    const sent = parseSend(network, contracts, chain, log);
    if (sent === undefined) throw incompleteChainDataError(chain);
    const sentAt = readLogTimestamp(log, chain, search);
    const [timestamp, receipt, delivery] = await Promise.all([
      sentAt,
      send.receipt ?? readRequiredReceipt(chains.getClient(chain.slug), log.transactionHash, signal),
      known.deliveryLog === undefined ? findDeliveryOf(sent, sentAt, search) : { log: known.deliveryLog },
    ]);
    const allTransferIds =
      known.otherTransferIds ?? parseSentTransferIds(network, contracts, chain, receipt).map(({ id }) => id);
    // Two sends from L1 in one transaction have the same ID, the transaction's hash.
    const otherTransferIds = allTransferIds.filter((id) => id !== sent.id);
    const transfer = { ...sent, timestamp, account: receipt.from };
    return this.#buildStatus(transfer, delivery, otherTransferIds, search);
  }

  /** Builds the status of a transfer; reads the bonder and the finality of both blocks when it was delivered. */
  async #buildStatus(
    sent: SentTransfer,
    delivery: DetectedDelivery | undefined,
    otherTransferIds: readonly string[],
    { chains, signal, remainingMs, elapsedMs }: LookupContext,
  ): Promise<TransferStatus> {
    const log = delivery?.log;
    const details = { otherTransferIds, observedAtMs: this.#now(), source: "chain", priceUsd: undefined } as const;
    if (log === undefined)
      return buildTransferStatus(sent, delivery && UNKNOWN_DELIVERY, { ...details, isFinal: false });
    const source = chains.getClient(sent.source.slug);
    const destination = chains.getClient(sent.destination.slug);
    const { transactionHash, blockNumber } = log;
    const event = decodeReceivedEvent(log);
    const isBond = event?.kind === "l2" && event.isBond;
    // The delivery itself is certain: its details are not worth failing or delaying the response.
    const timeoutMs = Math.min(Math.max(MIN_DETAILS_TIMEOUT_MS, elapsedMs?.() ?? 0), remainingMs() / 2);
    const sendBlock = { number: sent.blockNumber, timestamp: sent.timestamp };
    const [bonder, isSendFinal, isDeliveryFinal] = await Promise.all([
      isBond
        ? withTimeoutOrFallback(readSender(destination, transactionHash, signal), timeoutMs, undefined)
        : undefined,
      withTimeoutOrFallback(this.#finality.isFinal(source, sendBlock, signal), timeoutMs, false),
      withTimeoutOrFallback(this.#finality.isFinal(destination, { number: blockNumber }, signal), timeoutMs, false),
    ]);
    const isComplete = !isBond || bonder !== undefined;
    return buildTransferStatus(
      sent,
      { transactionHash, blockNumber, bonder },
      { ...details, isFinal: isComplete && isSendFinal && isDeliveryFinal },
    );
  }
}

/** Finds a transfer from L1 by its ID, which is the hash of its transaction. */
async function findSendOnL1(transferId: string, search: SearchContext): Promise<LocatedSend | undefined> {
  const { network, contracts, chains, signal } = search;
  for (const chain of network.chains.values()) {
    if (!chain.isL1) continue;
    const receipt = await readReceipt(chains.getClient(chain.slug), transferId, signal);
    const send =
      receipt && parseSentTransferIds(network, contracts, chain, receipt).find(({ id }) => id === transferId);
    if (receipt !== undefined && send !== undefined) return { chain, log: send.log, receipt };
  }
  return undefined;
}

function findSendOnL2s(transferId: string, search: SearchContext): Promise<LocatedSend | undefined> {
  const { network, lastSearchedBlock } = search;
  const sources = [...network.chains.values()].filter(({ isL1 }) => !isL1);
  return findSendByTransferId(transferId, sources, search, { lastSearchedBlock });
}

/**
 * Finds the delivery of a transfer; undefined when it has not been delivered.
 * @param sentAt Unix seconds
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
async function findDeliveryOf(
  sent: ParsedSend,
  sentAt: Promise<number>,
  search: SearchContext,
): Promise<DetectedDelivery | undefined> {
  if (sent.kind !== "l1") return findDelivery(sent, sentAt, search);
  const { contracts } = search;
  const { source, destination, token, event } = sent;
  const group: EqualTransferGroup = {
    source,
    destination,
    sourceBridge: requireRouteValue(contracts.findBridge(token, source), sent),
    destinationBridge: requireRouteValue(contracts.findBridge(token, destination), sent),
    values: { ...event, relayer: requireRouteValue(event.relayer, sent) },
  };
  const log = await findL1Completion(group, sent, sentAt, search);
  return log && { log };
}
