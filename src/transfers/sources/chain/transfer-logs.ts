import type { Log, Receipt } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import { cctpDomainOf } from "../../../hop/cctp/cctp.js";
import { burnerOf } from "../../../hop/cctp/cctp-burn-message.js";
import type { BridgeBook } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import { decodeReceived, decodeSent, type ReceivedEvent, type SentEvent } from "../../../hop/transfer-events.js";
import type { SentTransfer } from "../../transfer.js";

/** What an event alone tells of the transfer that it sends. */
export type SentByLog = Omit<SentTransfer, "timestamp" | "account">;

/** An event by which a transaction delivers a transfer. */
export interface ReceivedByLog {
  readonly event: ReceivedEvent;
  /** Its token; for CCTP it does not matter. */
  readonly token: string | undefined;
  readonly log: Log;
}

/**
 * Reads the log of one of Hop's own sending contracts; undefined for any other.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for a transfer to a chain that is not in the address book: the node invents
 * it, or the book is too old; the caller did nothing wrong.
 */
export function readSend(network: Network, book: BridgeBook, chain: Chain, log: Log): SentByLog | undefined {
  const sender = book.senders(chain).get(log.address.toLowerCase());
  const event = sender && decodeSent(log);
  if (sender === undefined || event === undefined) return undefined;
  const destination = findDestination(network, event);
  if (destination === undefined) {
    const message = `${chain.slug} tells of a transfer to chain ${event.destinationChainId}, which is not known here`;
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  const transactionHash = log.transactionHash.toLowerCase();
  return {
    kind: sender.kind,
    id: event.transferId ?? transactionHash,
    token: sender.token,
    source: chain,
    destination,
    transactionHash,
    blockNumber: Number(log.blockNumber),
    logIndex: Number(log.logIndex),
    event,
  };
}

/** A transfer that a transaction sent, in short. */
export interface SentId {
  readonly id: string;
  readonly log: Log;
  /** Whether it goes to a chain that is in the address book. */
  readonly isKnown: boolean;
}

/** The transfers that a transaction sent, in log order. */
export function readSentIds(network: Network, book: BridgeBook, chain: Chain, { logs }: Receipt): readonly SentId[] {
  const senders = book.senders(chain);
  return logs.flatMap((log) => {
    const event = senders.has(log.address.toLowerCase()) ? decodeSent(log) : undefined;
    if (event === undefined) return [];
    const isKnown = findDestination(network, event) !== undefined;
    return [{ id: event.transferId ?? log.transactionHash.toLowerCase(), log, isKnown }];
  });
}

/** The events by which a transaction delivered transfers, in log order: only those of Hop's own count. */
export function readReceived(
  network: Network,
  book: BridgeBook,
  chain: Chain,
  { logs }: Receipt,
): readonly ReceivedByLog[] {
  const senders = book.senders(chain);
  const transmitter = book.messageTransmitter(chain);
  const isOurs = (event: ReceivedEvent, log: Log): boolean => {
    const address = log.address.toLowerCase();
    if (event.kind !== "cctp") return (senders.get(address)?.kind ?? "cctp") !== "cctp";
    // The transmitter receives all of CCTP.
    const source = [...network.chains.values()].find((each) => cctpDomainOf(each) === event.sourceDomain);
    const burner = source && book.senders(source).get(burnerOf(log) ?? "");
    return address === transmitter && burner?.kind === "cctp";
  };
  return logs.flatMap((log) => {
    const event = decodeReceived(log);
    if (event === undefined || !isOurs(event, log)) return [];
    return [{ event, token: senders.get(log.address.toLowerCase())?.token, log }];
  });
}

function findDestination(network: Network, { destinationChainId }: SentEvent): Chain | undefined {
  return [...network.chains.values()].find(({ chainId }) => chainId === destinationChainId);
}
