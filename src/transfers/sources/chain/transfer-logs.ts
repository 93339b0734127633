import type { Log, Receipt } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import { decodeBurner } from "../../../hop/cctp/cctp-burn-message.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  type TransferReceivedEvent,
  type TransferSentEvent,
} from "../../../hop/transfer-events.js";
import type { SentTransfer } from "../../transfer.js";

/** What an event alone tells of the transfer that it sends. */
export type ParsedSend = Omit<SentTransfer, "timestamp" | "account">;

/** An event by which a transaction delivers a transfer. */
export interface ParsedDelivery {
  readonly event: TransferReceivedEvent;
  /** Its token; for CCTP it does not matter. */
  readonly token: string | undefined;
  readonly log: Log;
}

/**
 * Reads the log of one of Hop's own sending contracts; undefined for any other.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for a transfer to a chain that is not in the address book: the node invents
 * it, or the book is too old; the caller did nothing wrong.
 */
export function parseSend(network: Network, book: ContractRegistry, chain: Chain, log: Log): ParsedSend | undefined {
  const sender = book.getSendingContracts(chain).get(log.address);
  const event = sender && decodeSentEvent(log);
  if (sender === undefined || event === undefined) return undefined;
  const destination = findDestination(network, event);
  if (destination === undefined) {
    const message = `${chain.slug} tells of a transfer to chain ${event.destinationChainId}, which is not known here`;
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  const { transactionHash, blockNumber, logIndex } = log;
  return {
    kind: sender.kind,
    id: event.transferId ?? transactionHash,
    token: sender.token,
    source: chain,
    destination,
    transactionHash,
    blockNumber,
    logIndex,
    event,
  };
}

/** A transfer that a transaction sent, in short. */
export interface SentTransferId {
  readonly id: string;
  readonly log: Log;
  /** Whether it goes to a chain that is in the address book. */
  readonly isDestinationKnown: boolean;
}

/** The transfers that a transaction sent, in log order. */
export function parseSentTransferIds(
  network: Network,
  book: ContractRegistry,
  chain: Chain,
  { logs }: Receipt,
): readonly SentTransferId[] {
  const senders = book.getSendingContracts(chain);
  return logs.flatMap((log) => {
    const event = senders.has(log.address) ? decodeSentEvent(log) : undefined;
    if (event === undefined) return [];
    const isDestinationKnown = findDestination(network, event) !== undefined;
    return [{ id: event.transferId ?? log.transactionHash, log, isDestinationKnown }];
  });
}

/** The events by which a transaction delivered transfers, in log order: only those of Hop's own count. */
export function parseDeliveries(
  network: Network,
  book: ContractRegistry,
  chain: Chain,
  { logs }: Receipt,
): readonly ParsedDelivery[] {
  const senders = book.getSendingContracts(chain);
  const transmitter = book.findMessageTransmitter(chain);
  const isOurs = (event: TransferReceivedEvent, log: Log): boolean => {
    const { address } = log;
    if (event.kind !== "cctp") return (senders.get(address)?.kind ?? "cctp") !== "cctp";
    // The transmitter receives all of CCTP.
    const source = [...network.chains.values()].find((each) => getCctpDomain(each) === event.sourceDomain);
    const burner = source && book.getSendingContracts(source).get(decodeBurner(log) ?? "");
    return address === transmitter && burner?.kind === "cctp";
  };
  return logs.flatMap((log) => {
    const event = decodeReceivedEvent(log);
    if (event === undefined || !isOurs(event, log)) return [];
    return [{ event, token: senders.get(log.address)?.token, log }];
  });
}

function findDestination(network: Network, { destinationChainId }: TransferSentEvent): Chain | undefined {
  return [...network.chains.values()].find(({ chainId }) => chainId === destinationChainId);
}
