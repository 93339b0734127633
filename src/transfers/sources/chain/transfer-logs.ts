import type { Log, Receipt } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import { decodeBurnMessageSender } from "../../../hop/cctp/cctp-burn-message.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  type TransferReceivedEvent,
  type TransferSentEvent,
} from "../../../hop/transfer-events.js";
import type { SentTransfer } from "../../transfer.js";

/** A transfer as far as its sending event alone describes it. */
export type ParsedSend = Omit<SentTransfer, "timestamp" | "account">;

/** An event by which a transaction delivers a transfer. */
export interface ParsedDelivery {
  readonly event: TransferReceivedEvent;
  /** The transfer's token; not set reliably for CCTP, where it is always USDC. */
  readonly token: string | undefined;
  readonly log: Log;
}

/**
 * Parses the log of one of Hop's sending contracts; returns undefined for any other log.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for a transfer to a chain that is not in the address book: the endpoint is
 * wrong or the address book is outdated, which is not the caller's fault
 */
export function parseSend(
  network: Network,
  contracts: ContractRegistry,
  chain: Chain,
  log: Log,
): ParsedSend | undefined {
  const sender = contracts.getSendingContracts(chain).get(log.address);
  const event = sender && decodeSentEvent(log);
  if (sender === undefined || event === undefined) return undefined;
  const destination = findDestination(network, event);
  if (destination === undefined) {
    const message = `${chain.slug} returned a transfer to chain ${event.destinationChainId}, which is not in the address book`;
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

/** The ID of a transfer that a transaction sent. */
export interface SentTransferId {
  readonly id: string;
  readonly log: Log;
  /** Whether the destination chain is in the address book. */
  readonly isDestinationKnown: boolean;
}

/** Lists the transfers that a transaction sent, in log order. */
export function parseSentTransferIds(
  network: Network,
  contracts: ContractRegistry,
  chain: Chain,
  { logs }: Receipt,
): readonly SentTransferId[] {
  const senders = contracts.getSendingContracts(chain);
  return logs.flatMap((log) => {
    const event = senders.has(log.address) ? decodeSentEvent(log) : undefined;
    if (event === undefined) return [];
    const isDestinationKnown = findDestination(network, event) !== undefined;
    return [{ id: event.transferId ?? log.transactionHash, log, isDestinationKnown }];
  });
}

/** Lists the events by which a transaction delivered transfers of Hop, in log order. */
export function parseDeliveries(
  network: Network,
  contracts: ContractRegistry,
  chain: Chain,
  { logs }: Receipt,
): readonly ParsedDelivery[] {
  const senders = contracts.getSendingContracts(chain);
  const transmitter = contracts.findMessageTransmitter(chain);
  const isFromHop = (event: TransferReceivedEvent, log: Log): boolean => {
    const { address } = log;
    if (event.kind !== "cctp") return (senders.get(address)?.kind ?? "cctp") !== "cctp";
    // The transmitter receives the messages of every CCTP application.
    const source = [...network.chains.values()].find((other) => getCctpDomain(other) === event.sourceDomain);
    const burner = source && contracts.getSendingContracts(source).get(decodeBurnMessageSender(log) ?? "");
    return address === transmitter && burner?.kind === "cctp";
  };
  return logs.flatMap((log) => {
    const event = decodeReceivedEvent(log);
    if (event === undefined || !isFromHop(event, log)) return [];
    return [{ event, token: senders.get(log.address)?.token, log }];
  });
}

function findDestination(network: Network, { destinationChainId }: TransferSentEvent): Chain | undefined {
  return [...network.chains.values()].find(({ chainId }) => chainId === destinationChainId);
}
