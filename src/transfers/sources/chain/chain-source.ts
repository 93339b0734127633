import { type Log, type Receipt, readKnownReceipt, readReceipt, readSender } from "../../../chain/read/chain-reads.js";
import type { Finality } from "../../../chain/read/finality-tracker.js";
import { cctpDomainOf } from "../../../hop/cctp/cctp.js";
import { type BridgeBook, createBridgeBook } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import { decodeReceived } from "../../../hop/transfer-events.js";
import { firstFound } from "../../../resilience/first-defined.js";
import { within } from "../../../resilience/with-timeout.js";
import { status, type TransferStatus } from "../../status.js";
import type { Delivery, SentTransfer } from "../../transfer.js";
import { type Found, isNonce, isUnavailable, type LookUpContext, type TransferSource } from "../transfer-source.js";
import { type Arrival, findArrival, known } from "./delivery-search.js";
import { type EqualTransfers, findCompleted, findCompletion } from "./l1-completion.js";
import { incomplete, type SearchMemory, timeOf } from "./search-caches.js";
import { findById, findByNonce, findTransaction, type Origin, type Transaction } from "./send-search.js";
import { type ReceivedByLog, readReceived, readSend, readSentIds, type SentByLog } from "./transfer-logs.js";

export interface ChainSourceOptions extends SearchMemory {
  readonly finality: Finality;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Knows of transfers what the chains' own receipts, logs and contracts say. */
export interface ChainSource extends TransferSource<Promise<Found>> {
  /**
   * What became of a transfer of which somebody else knows that it was sent.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chains cannot tell
   */
  follow(sent: SentTransfer, otherTransferIds: readonly string[], context: LookUpContext): Promise<TransferStatus>;
}

/** For how long what is worth knowing of an arrival is waited for, in milliseconds. */
const patienceMs = 1_000;

export function createChainSource({ finality, now, ...memory }: ChainSourceOptions): ChainSource {
  const books = new Map<Network, BridgeBook>();
  const bookOf = (network: Network): BridgeBook => {
    const book = books.get(network) ?? createBridgeBook(network);
    books.set(network, book);
    return book;
  };

  async function arrivalOf(
    sent: SentByLog,
    sentAt: Promise<number>,
    context: LookUpContext,
  ): Promise<Arrival | undefined> {
    const book = bookOf(context.network);
    if (sent.kind !== "l1") return findArrival(sent, sentAt, book, memory, context);
    const log = await findCompletion(equalTo(sent, book), sent, sentAt, memory, context);
    return log && { log };
  }

  /** Adds what is to know of an arrival. */
  async function conclude(
    sent: SentTransfer,
    arrival: Arrival | undefined,
    otherTransferIds: readonly string[],
    { chains, signal, leftMs }: LookUpContext,
  ): Promise<TransferStatus> {
    const observedAt = now();
    const log = arrival?.log;
    const facts = { otherTransferIds, observedAt, source: "chain" as const, priceUsd: undefined };
    const unknown = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };
    if (log === undefined) return status(sent, arrival && unknown, { ...facts, isFinal: false });
    const source = chains.client(sent.source.slug);
    const destination = chains.client(sent.destination.slug);
    const transactionHash = log.transactionHash.toLowerCase();
    const blockNumber = Number(log.blockNumber);
    const event = decodeReceived(log);
    const isBond = event?.kind === "l2" && event.isBond;
    // That it arrived is known: neither who brought it nor whether that stays is worth the answer.
    const patience = Math.min(patienceMs, leftMs() / 2);
    const [bonder, ...areFinal] = await Promise.all([
      isBond ? within(readSender(destination, transactionHash, signal), patience, undefined) : undefined,
      within(
        finality.isFinal(source, { number: sent.blockNumber, timestamp: sent.timestamp }, signal),
        patience,
        false,
      ),
      within(finality.isFinal(destination, { number: blockNumber }, signal), patience, false),
    ]);
    const delivery: Delivery = { transactionHash, blockNumber, bonder };
    const isWhole = !isBond || bonder !== undefined;
    return status(sent, delivery, { ...facts, isFinal: isWhole && areFinal.every((each) => each) });
  }

  /** The status of the transfer that a log sent. What of `given` is known already is not read again. */
  async function describe(
    { chain, log }: Origin,
    context: LookUpContext,
    given: {
      readonly receipt?: Receipt;
      readonly delivering?: Log;
      readonly otherTransferIds?: readonly string[];
    } = {},
  ): Promise<TransferStatus> {
    const book = bookOf(context.network);
    const sent = readSend(context.network, book, chain, log);
    if (sent === undefined) throw incomplete(chain);
    const sentAt = timeOf(log, chain, context);
    const [timestamp, receipt, arrival] = await Promise.all([
      sentAt,
      given.receipt ?? receiptOf(log, chain, context),
      given.delivering === undefined ? arrivalOf(sent, sentAt, context) : { log: given.delivering },
    ]);
    const all = given.otherTransferIds ?? readSentIds(context.network, book, chain, receipt).map(({ id }) => id);
    // Two sends from L1 in one transaction share its hash as id.
    const otherTransferIds = all.filter((id) => id !== sent.id);
    return conclude({ ...sent, timestamp, account: receipt.from.toLowerCase() }, arrival, otherTransferIds, context);
  }

  /** Where the transfer was sent that a log has delivered; undefined when it is none of Hop's. */
  async function originOf(
    { event, token, log }: ReceivedByLog,
    chain: Chain,
    context: LookUpContext,
  ): Promise<Origin | undefined> {
    const book = bookOf(context.network);
    const others = [...context.network.chains.values()].filter((each) => each !== chain);
    const arrivedAt = (): Promise<number> => timeOf(log, chain, context);
    switch (event.kind) {
      case "l2":
        return findById(event.transferId, others, book, memory, context, { arrivedAt });
      case "cctp": {
        const sources = others.filter((each) => cctpDomainOf(each) === event.sourceDomain);
        return findByNonce(event.nonce, sources, book, memory, context, { arrivedAt });
      }
      case "l1": {
        const source = others.find(({ isL1 }) => isL1);
        const sourceBridge = source && token && book.bridge(token, source);
        if (source === undefined || !sourceBridge) return undefined;
        const destinationBridge = log.address.toLowerCase();
        const equal = { source, destination: chain, sourceBridge, destinationBridge, values: event };
        const sending = await findCompleted(equal, log, arrivedAt, memory, context);
        return sending && { chain: source, log: sending };
      }
    }
  }

  /** The first of the transfers that a transaction delivered, or the one that is meant. */
  async function deliveredBy(
    { chain, receipt }: Transaction,
    transferId: string | undefined,
    context: LookUpContext,
  ): Promise<TransferStatus | undefined> {
    const all = readReceived(context.network, bookOf(context.network), chain, receipt);
    // A completion from L1 tells no id: those that do come first.
    const meant = [
      ...all.filter((received) => transferId === undefined || idOf(received) === transferId),
      ...all.filter((received) => transferId !== undefined && idOf(received) === undefined),
    ];
    for (const received of meant) {
      const origin = await originOf(received, chain, context);
      const sent = origin && readSend(context.network, bookOf(context.network), origin.chain, origin.log);
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
  async function sentIdOf(received: ReceivedByLog, chain: Chain, context: LookUpContext): Promise<string | undefined> {
    try {
      return idOf(received) ?? (await originOf(received, chain, context))?.log.transactionHash.toLowerCase();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return undefined;
    }
  }

  return {
    name: "chain",

    async byTransactionHash(hash, transferId, context) {
      const found = await findTransaction(hash, context);
      if (found === undefined) return undefined;
      const { chain, receipt } = found;
      const sends = readSentIds(context.network, bookOf(context.network), chain, receipt);
      const meant = sends.filter(({ id }) => transferId === undefined || id === transferId);
      const chosen = meant.find(({ isKnown }) => isKnown) ?? meant[0];
      if (chosen !== undefined) return describe({ chain, log: chosen.log }, context, { receipt });
      return deliveredBy(found, transferId, context);
    },

    async byTransferId(transferId, context) {
      const { network, chains } = context;
      const book = bookOf(network);
      const all = [...network.chains.values()];
      if (isNonce(transferId)) {
        const origin = await findByNonce(BigInt(transferId), all, book, memory, context);
        return origin && describe(origin, context);
      }
      // From L1 the transaction's hash is the id.
      const onL1 = async (signal: AbortSignal): Promise<{ origin: Origin; receipt: Receipt } | undefined> => {
        for (const chain of all.filter(({ isL1 }) => isL1)) {
          const receipt = await readReceipt(chains.client(chain.slug), transferId, signal);
          const send =
            receipt && readSentIds(context.network, book, chain, receipt).find(({ id }) => id === transferId);
          if (receipt !== undefined && send !== undefined) return { origin: { chain, log: send.log }, receipt };
        }
        return undefined;
      };
      const onL2 = async (signal: AbortSignal): Promise<{ origin: Origin; receipt?: Receipt } | undefined> => {
        const sources = all.filter(({ isL1 }) => !isL1);
        const { searchedTo } = context;
        const origin = await findById(transferId, sources, book, memory, { ...context, signal }, { searchedTo });
        return origin && { origin };
      };
      const found = await firstFound([onL1, onL2], (look, signal) => look(signal), context.signal);
      return found && describe(found.origin, context, found);
    },

    async follow(sent, otherTransferIds, context) {
      const arrival = await arrivalOf(sent, Promise.resolve(sent.timestamp), context);
      return conclude(sent, arrival, otherTransferIds, context);
    },
  };
}

function idOf({ event }: ReceivedByLog): string | undefined {
  if (event.kind === "l2") return event.transferId;
  return event.kind === "cctp" ? event.nonce.toString() : undefined;
}

function equalTo(sent: SentByLog, book: BridgeBook): EqualTransfers {
  const { source, destination, token, event } = sent;
  return {
    source,
    destination,
    sourceBridge: known(book.bridge(token, source), sent),
    destinationBridge: known(book.bridge(token, destination), sent),
    values: { ...event, relayer: known(event.relayer, sent) },
  };
}

/** The receipt of a log: it was there just now. */
function receiptOf({ transactionHash }: Log, chain: Chain, { chains, signal }: LookUpContext): Promise<Receipt> {
  return readKnownReceipt(chains.client(chain.slug), transactionHash, signal);
}
