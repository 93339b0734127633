import {
  type Log,
  type Receipt,
  readReceipt,
  readRequiredReceipt,
  readSender,
} from "../../../chain/read/chain-reads.js";
import type { FinalityTracker } from "../../../chain/read/finality-tracker.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import { type ContractRegistry, createContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import { decodeReceivedEvent } from "../../../hop/transfer-events.js";
import { raceFirstDefined } from "../../../resilience/first-defined.js";
import { withTimeout } from "../../../resilience/with-timeout.js";
import { buildTransferStatus, type StatusDetails, type TransferStatus } from "../../status.js";
import type { SentTransfer, TransferDelivery } from "../../transfer.js";
import { isCctpNonce, isUpstreamUnavailable, type LookupContext, type TransferSource } from "../transfer-source.js";
import { type DetectedDelivery, findDelivery, requireDefined } from "./delivery-search.js";
import { type EqualTransferGroup, findL1Completion, findSendOfL1Completion } from "./l1-completion.js";
import { incompleteChainDataError, readLogTimestamp, type SearchCaches } from "./search-caches.js";
import {
  findSendByNonce,
  findSendByTransferId,
  findTransaction,
  type LocatedSend,
  type LocatedTransaction,
} from "./send-search.js";
import {
  type ParsedDelivery,
  type ParsedSend,
  parseDeliveries,
  parseSend,
  parseSentTransferIds,
} from "./transfer-logs.js";

export interface ChainSourceOptions extends SearchCaches {
  readonly finality: FinalityTracker;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Knows of transfers what the chains' own receipts, logs and contracts say. */
export interface ChainSource extends TransferSource {
  /**
   * What became of a transfer of which somebody else knows that it was sent.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chains cannot tell
   */
  resolveStatus(
    sent: SentTransfer,
    otherTransferIds: readonly string[],
    context: LookupContext,
  ): Promise<TransferStatus>;
}

/** For how long what is worth knowing of an arrival is waited for, in milliseconds. */
const DELIVERY_DETAILS_TIMEOUT_MS = 1_000;

export function createChainSource({ finality, now, ...memory }: ChainSourceOptions): ChainSource {
  const books = new Map<Network, ContractRegistry>();
  const bookOf = (network: Network): ContractRegistry => {
    const book = books.get(network) ?? createContractRegistry(network);
    books.set(network, book);
    return book;
  };

  async function arrivalOf(
    sent: ParsedSend,
    sentAt: Promise<number>,
    context: LookupContext,
  ): Promise<DetectedDelivery | undefined> {
    const book = bookOf(context.network);
    if (sent.kind !== "l1") return findDelivery(sent, sentAt, book, memory, context);
    const log = await findL1Completion(toEqualTransferGroup(sent, book), sent, sentAt, memory, context);
    return log && { log };
  }

  /** Adds what is to know of an arrival. */
  async function conclude(
    sent: SentTransfer,
    arrival: DetectedDelivery | undefined,
    otherTransferIds: readonly string[],
    { chains, signal, remainingMs }: LookupContext,
  ): Promise<TransferStatus> {
    const observedAtMs = now();
    const log = arrival?.log;
    const facts: Omit<StatusDetails, "isFinal"> = {
      otherTransferIds,
      observedAtMs,
      source: "chain",
      priceUsd: undefined,
    };
    const unknown = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };
    if (log === undefined) return buildTransferStatus(sent, arrival && unknown, { ...facts, isFinal: false });
    const source = chains.getClient(sent.source.slug);
    const destination = chains.getClient(sent.destination.slug);
    const { transactionHash, blockNumber } = log;
    const event = decodeReceivedEvent(log);
    const isBond = event?.kind === "l2" && event.isBond;
    // That it arrived is known: neither who brought it nor whether that stays is worth the answer.
    const patience = Math.min(DELIVERY_DETAILS_TIMEOUT_MS, remainingMs() / 2);
    const [bonder, ...areFinal] = await Promise.all([
      isBond ? withTimeout(readSender(destination, transactionHash, signal), patience, undefined) : undefined,
      withTimeout(
        finality.isFinal(source, { number: sent.blockNumber, timestamp: sent.timestamp }, signal),
        patience,
        false,
      ),
      withTimeout(finality.isFinal(destination, { number: blockNumber }, signal), patience, false),
    ]);
    const delivery: TransferDelivery = { transactionHash, blockNumber, bonder };
    const isWhole = !isBond || bonder !== undefined;
    return buildTransferStatus(sent, delivery, { ...facts, isFinal: isWhole && areFinal.every((each) => each) });
  }

  /** The status of the transfer that a log sent. What of `given` is known already is not read again. */
  async function describe(
    { chain, log }: LocatedSend,
    context: LookupContext,
    given: {
      readonly receipt?: Receipt;
      readonly delivering?: Log;
      readonly otherTransferIds?: readonly string[];
    } = {},
  ): Promise<TransferStatus> {
    const book = bookOf(context.network);
    const sent = parseSend(context.network, book, chain, log);
    if (sent === undefined) throw incompleteChainDataError(chain);
    const sentAt = readLogTimestamp(log, chain, context);
    const [timestamp, receipt, arrival] = await Promise.all([
      sentAt,
      given.receipt ?? readReceiptOfLog(log, chain, context),
      given.delivering === undefined ? arrivalOf(sent, sentAt, context) : { log: given.delivering },
    ]);
    const all =
      given.otherTransferIds ?? parseSentTransferIds(context.network, book, chain, receipt).map(({ id }) => id);
    // Two sends from L1 in one transaction share its hash as id.
    const otherTransferIds = all.filter((id) => id !== sent.id);
    return conclude({ ...sent, timestamp, account: receipt.from }, arrival, otherTransferIds, context);
  }

  /** Where the transfer was sent that a log has delivered; undefined when it is none of Hop's. */
  async function originOf(
    { event, token, log }: ParsedDelivery,
    chain: Chain,
    context: LookupContext,
  ): Promise<LocatedSend | undefined> {
    const book = bookOf(context.network);
    const others = [...context.network.chains.values()].filter((each) => each !== chain);
    const readDeliveryTime = (): Promise<number> => readLogTimestamp(log, chain, context);
    switch (event.kind) {
      case "l2":
        return findSendByTransferId(event.transferId, others, book, memory, context, { readDeliveryTime });
      case "cctp": {
        const sources = others.filter((each) => getCctpDomain(each) === event.sourceDomain);
        return findSendByNonce(event.nonce, sources, book, memory, context, { readDeliveryTime });
      }
      case "l1": {
        const source = others.find(({ isL1 }) => isL1);
        const sourceBridge = source && token && book.findBridge(token, source);
        if (source === undefined || !sourceBridge) return undefined;
        const destinationBridge = log.address;
        const equal = { source, destination: chain, sourceBridge, destinationBridge, values: event };
        const sending = await findSendOfL1Completion(equal, log, readDeliveryTime, memory, context);
        return sending && { chain: source, log: sending };
      }
    }
  }

  /** The first of the transfers that a transaction delivered, or the one that is meant. */
  async function deliveredBy(
    { chain, receipt }: LocatedTransaction,
    transferId: string | undefined,
    context: LookupContext,
  ): Promise<TransferStatus | undefined> {
    const all = parseDeliveries(context.network, bookOf(context.network), chain, receipt);
    // A completion from L1 tells no id: those that do come first.
    const meant = [
      ...all.filter((received) => transferId === undefined || getDeliveredTransferId(received) === transferId),
      ...all.filter((received) => transferId !== undefined && getDeliveredTransferId(received) === undefined),
    ];
    for (const received of meant) {
      const origin = await originOf(received, chain, context);
      const sent = origin && parseSend(context.network, bookOf(context.network), origin.chain, origin.log);
      if (origin === undefined || sent?.destination !== chain) continue;
      if (received.event.kind !== "cctp" && sent.token !== received.token) continue;
      if (transferId !== undefined && sent.id !== transferId) continue;
      const others = all.filter((other) => other !== received).map((other) => sentIdOf(other, chain, context));
      const ids = await Promise.all(others);
      const otherTransferIds = ids.filter((id) => id !== undefined);
      const found = await describe(origin, context, { delivering: received.log, otherTransferIds });
      return otherTransferIds.length === ids.length ? found : { ...found, isFinal: false };
    }
    return undefined;
  }

  /** undefined also where it cannot be known now: the one that is meant is known without it. */
  async function sentIdOf(received: ParsedDelivery, chain: Chain, context: LookupContext): Promise<string | undefined> {
    try {
      return getDeliveredTransferId(received) ?? (await originOf(received, chain, context))?.log.transactionHash;
    } catch (error) {
      if (!isUpstreamUnavailable(error)) throw error;
      return undefined;
    }
  }

  return {
    name: "chain",

    async findByTransactionHash(hash, transferId, context) {
      const found = await findTransaction(hash, context);
      if (found === undefined) return undefined;
      const { chain, receipt } = found;
      const sends = parseSentTransferIds(context.network, bookOf(context.network), chain, receipt);
      const meant = sends.filter(({ id }) => transferId === undefined || id === transferId);
      const chosen = meant.find(({ isDestinationKnown }) => isDestinationKnown) ?? meant[0];
      if (chosen !== undefined) return describe({ chain, log: chosen.log }, context, { receipt });
      return deliveredBy(found, transferId, context);
    },

    async findByTransferId(transferId, context) {
      const { network, chains } = context;
      const book = bookOf(network);
      const all = [...network.chains.values()];
      if (isCctpNonce(transferId)) {
        const origin = await findSendByNonce(BigInt(transferId), all, book, memory, context);
        return origin && describe(origin, context);
      }
      // From L1 the transaction's hash is the id.
      const onL1 = async (signal: AbortSignal): Promise<{ origin: LocatedSend; receipt: Receipt } | undefined> => {
        for (const chain of all.filter(({ isL1 }) => isL1)) {
          const receipt = await readReceipt(chains.getClient(chain.slug), transferId, signal);
          const send =
            receipt && parseSentTransferIds(context.network, book, chain, receipt).find(({ id }) => id === transferId);
          if (receipt !== undefined && send !== undefined) return { origin: { chain, log: send.log }, receipt };
        }
        return undefined;
      };
      const onL2 = async (signal: AbortSignal): Promise<{ origin: LocatedSend; receipt?: Receipt } | undefined> => {
        const sources = all.filter(({ isL1 }) => !isL1);
        const { lastSearchedBlock } = context;
        const origin = await findSendByTransferId(
          transferId,
          sources,
          book,
          memory,
          { ...context, signal },
          { lastSearchedBlock },
        );
        return origin && { origin };
      };
      const found = await raceFirstDefined([onL1, onL2], (look, signal) => look(signal), context.signal);
      return found && describe(found.origin, context, found);
    },

    async resolveStatus(sent, otherTransferIds, context) {
      const arrival = await arrivalOf(sent, Promise.resolve(sent.timestamp), context);
      return conclude(sent, arrival, otherTransferIds, context);
    },
  };
}

function getDeliveredTransferId({ event }: ParsedDelivery): string | undefined {
  if (event.kind === "l2") return event.transferId;
  return event.kind === "cctp" ? event.nonce.toString() : undefined;
}

function toEqualTransferGroup(sent: ParsedSend, book: ContractRegistry): EqualTransferGroup {
  const { source, destination, token, event } = sent;
  return {
    source,
    destination,
    sourceBridge: requireDefined(book.findBridge(token, source), sent),
    destinationBridge: requireDefined(book.findBridge(token, destination), sent),
    values: { ...event, relayer: requireDefined(event.relayer, sent) },
  };
}

/** The receipt of a log: it was there just now. */
function readReceiptOfLog({ transactionHash }: Log, chain: Chain, { chains, signal }: LookupContext): Promise<Receipt> {
  return readRequiredReceipt(chains.getClient(chain.slug), transactionHash, signal);
}
