import { type Log, type Receipt, readRequiredReceipt } from "../../../chain/read/chain-reads.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Network } from "../../../hop/networks.js";
import type { TransferStatus } from "../../status.js";
import type { LookupContext } from "../transfer-source.js";
import { type DetectedDelivery, findDelivery, requireAddress } from "./delivery-search.js";
import { type EqualTransferGroup, findL1Completion } from "./l1-completion.js";
import { incompleteChainDataError, readLogTimestamp, type SearchCaches } from "./search-caches.js";
import type { LocatedSend } from "./send-search.js";
import type { StatusBuilder } from "./status-builder.js";
import { type ParsedSend, parseSend, parseSentTransferIds } from "./transfer-logs.js";

// The send side: from the log that sent a transfer to its delivery and status.

export interface SentTransferResolverOptions {
  readonly getContracts: (network: Network) => ContractRegistry;
  readonly caches: SearchCaches;
  readonly buildStatus: StatusBuilder;
}

/** What the caller has read already, so that it is not read again. */
export interface KnownSendData {
  /** Receipt of the sending transaction. */
  readonly receipt?: Receipt | undefined;
  /** The log that delivered the transfer. */
  readonly deliveryLog?: Log | undefined;
  readonly otherTransferIds?: readonly string[] | undefined;
}

export interface SendStatusResolver {
  /**
   * Returns the status of the transfer that a log sent.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
   */
  resolveSend(send: LocatedSend, context: LookupContext, known?: KnownSendData): Promise<TransferStatus>;
  /**
   * Finds the delivery of a transfer; undefined when it has not been delivered.
   * @param sentAt Unix seconds
   * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
   */
  findDeliveryOf(
    sent: ParsedSend,
    sentAt: Promise<number>,
    context: LookupContext,
  ): Promise<DetectedDelivery | undefined>;
}

export function createSendStatusResolver({
  getContracts,
  caches,
  buildStatus,
}: SentTransferResolverOptions): SendStatusResolver {
  async function findDeliveryOf(
    sent: ParsedSend,
    sentAt: Promise<number>,
    context: LookupContext,
  ): Promise<DetectedDelivery | undefined> {
    const contracts = getContracts(context.network);
    if (sent.kind !== "l1") return findDelivery(sent, sentAt, contracts, caches, context);
    const log = await findL1Completion(toEqualTransferGroup(sent, contracts), sent, sentAt, caches, context);
    return log && { log };
  }

  return {
    findDeliveryOf,
    async resolveSend({ chain, log }, context, known = {}) {
      const { network, chains, signal } = context;
      const contracts = getContracts(network);
      const sent = parseSend(network, contracts, chain, log);
      if (sent === undefined) throw incompleteChainDataError(chain);
      const sentAt = readLogTimestamp(log, chain, context);
      const [timestamp, receipt, delivery] = await Promise.all([
        sentAt,
        known.receipt ?? readRequiredReceipt(chains.getClient(chain.slug), log.transactionHash, signal),
        known.deliveryLog === undefined ? findDeliveryOf(sent, sentAt, context) : { log: known.deliveryLog },
      ]);
      const allTransferIds =
        known.otherTransferIds ?? parseSentTransferIds(network, contracts, chain, receipt).map(({ id }) => id);
      // Two sends from L1 in one transaction have the same ID, the transaction's hash.
      const otherTransferIds = allTransferIds.filter((id) => id !== sent.id);
      const transfer = { ...sent, timestamp, account: receipt.from };
      return buildStatus(transfer, delivery, otherTransferIds, context);
    },
  };
}

function toEqualTransferGroup(sent: ParsedSend, contracts: ContractRegistry): EqualTransferGroup {
  const { source, destination, token, event } = sent;
  return {
    source,
    destination,
    sourceBridge: requireAddress(contracts.findBridge(token, source), sent),
    destinationBridge: requireAddress(contracts.findBridge(token, destination), sent),
    values: { ...event, relayer: requireAddress(event.relayer, sent) },
  };
}
