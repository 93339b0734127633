import type { Log, Receipt } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { TransferReceivedEvent, TransferSentEvent } from "../../../hop/transfer-events.js";
import type { SentTransfer } from "../../status.js";

/** A transfer as far as its sending event alone describes it. */
export type ParsedSend = Omit<SentTransfer, "timestamp" | "account">;

/** An event by which a transaction delivers a transfer. */
export interface ParsedDelivery {
  readonly event: TransferReceivedEvent;
  readonly token: string;
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
  const send = contracts.decodeSend(chain, log);
  if (send === undefined) return undefined;
  const { kind, token, event } = send;
  const destination = findDestination(network, event);
  if (destination === undefined) {
    const message = `${chain.slug} returned a transfer to chain ${event.destinationChainId}, which is not in the address book`;
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  const { transactionHash, blockNumber, logIndex } = log;
  return {
    kind,
    id: event.transferId ?? transactionHash,
    token,
    source: chain,
    destination,
    transactionHash,
    blockNumber,
    logIndex,
    event,
  };
}

/**
 * Lists the IDs of the transfers that a transaction sent, in log order, and whether the address book has their destination
 * chains.
 */
export function parseSentTransferIds(
  network: Network,
  contracts: ContractRegistry,
  chain: Chain,
  { logs }: Receipt,
): readonly { readonly id: string; readonly log: Log; readonly isDestinationKnown: boolean }[] {
  return logs.flatMap((log) => {
    const send = contracts.decodeSend(chain, log);
    if (send === undefined) return [];
    const isDestinationKnown = findDestination(network, send.event) !== undefined;
    return [{ id: send.event.transferId ?? log.transactionHash, log, isDestinationKnown }];
  });
}

/** Lists the events by which a transaction delivered transfers of Hop, in log order. */
export function parseDeliveries(
  contracts: ContractRegistry,
  chain: Chain,
  { logs }: Receipt,
): readonly ParsedDelivery[] {
  return logs.flatMap((log) => {
    const delivery = contracts.decodeDelivery(chain, log);
    return delivery === undefined ? [] : [{ ...delivery, log }];
  });
}

function findDestination(network: Network, { destinationChainId }: TransferSentEvent): Chain | undefined {
  return [...network.chains.values()].find(({ chainId }) => chainId === destinationChainId);
}
