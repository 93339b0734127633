import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { TransferStatus } from "../../status.js";
import { isUpstreamUnavailable, type LookupContext } from "../transfer-source.js";
import { findSendOfL1Completion } from "./l1-completion.js";
import { readLogTimestamp, type SearchCaches } from "./search-caches.js";
import { findSendByNonce, findSendByTransferId, type LocatedSend, type LocatedTransaction } from "./send-search.js";
import type { SendStatusResolver } from "./sent-transfers.js";
import { type ParsedDelivery, parseDeliveries, parseSend } from "./transfer-logs.js";

// The delivered side: from a delivering transaction back to the sends.

export interface DeliveredTransferFinderOptions {
  readonly getContracts: (network: Network) => ContractRegistry;
  readonly caches: SearchCaches;
  readonly resolveSend: SendStatusResolver["resolveSend"];
}

/**
 * Returns the status of the first transfer that a transaction delivered; undefined when it delivered none.
 * @param transferId selects one of the delivered transfers
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
export type DeliveredTransferFinder = (
  transaction: LocatedTransaction,
  transferId: string | undefined,
  context: LookupContext,
) => Promise<TransferStatus | undefined>;

export function createDeliveredTransferFinder({
  getContracts,
  caches,
  resolveSend,
}: DeliveredTransferFinderOptions): DeliveredTransferFinder {
  /** Finds the send of a delivered transfer; undefined when the transfer is not one of Hop's. */
  async function findSendOf(
    { event, token, log }: ParsedDelivery,
    chain: Chain,
    context: LookupContext,
  ): Promise<LocatedSend | undefined> {
    const contracts = getContracts(context.network);
    const otherChains = [...context.network.chains.values()].filter((other) => other !== chain);
    const readDeliveryTime = (): Promise<number> => readLogTimestamp(log, chain, context);
    switch (event.kind) {
      case "l2":
        return findSendByTransferId(event.transferId, otherChains, contracts, caches, context, { readDeliveryTime });
      case "cctp": {
        const sources = otherChains.filter((other) => getCctpDomain(other) === event.sourceDomain);
        return findSendByNonce(event.nonce, sources, contracts, caches, context, { readDeliveryTime });
      }
      case "l1": {
        const source = otherChains.find(({ isL1 }) => isL1);
        const sourceBridge = source && token && contracts.findBridge(token, source);
        if (source === undefined || !sourceBridge) return undefined;
        const group = { source, destination: chain, sourceBridge, destinationBridge: log.address, values: event };
        const sendLog = await findSendOfL1Completion(group, log, readDeliveryTime, caches, context);
        return sendLog && { chain: source, log: sendLog };
      }
    }
  }

  /** Returns the ID of a sibling transfer; undefined also when its chain fails, since the response does not depend on it. */
  async function findSiblingId(
    delivery: ParsedDelivery,
    chain: Chain,
    context: LookupContext,
  ): Promise<string | undefined> {
    try {
      return getTransferIdOf(delivery) ?? (await findSendOf(delivery, chain, context))?.log.transactionHash;
    } catch (error) {
      if (!isUpstreamUnavailable(error)) throw error;
      return undefined;
    }
  }

  return async ({ chain, receipt }, transferId, context) => {
    const contracts = getContracts(context.network);
    const deliveries = parseDeliveries(context.network, contracts, chain, receipt);
    // A completion from L1 carries no transfer ID: candidates that carry one come first.
    const candidates = [
      ...deliveries.filter((delivery) => transferId === undefined || getTransferIdOf(delivery) === transferId),
      ...deliveries.filter((delivery) => transferId !== undefined && getTransferIdOf(delivery) === undefined),
    ];
    for (const delivery of candidates) {
      const send = await findSendOf(delivery, chain, context);
      const sent = send && parseSend(context.network, contracts, send.chain, send.log);
      if (send === undefined || sent?.destination !== chain) continue;
      if (delivery.event.kind !== "cctp" && sent.token !== delivery.token) continue;
      if (transferId !== undefined && sent.id !== transferId) continue;
      const siblings = deliveries.filter((other) => other !== delivery);
      const siblingIds = await Promise.all(siblings.map((sibling) => findSiblingId(sibling, chain, context)));
      const otherTransferIds = siblingIds.filter((id) => id !== undefined);
      const status = await resolveSend(send, context, { deliveryLog: delivery.log, otherTransferIds });
      return otherTransferIds.length === siblingIds.length ? status : { ...status, isFinal: false };
    }
    return undefined;
  };
}

/** Returns the transfer ID or CCTP nonce that a delivery event carries; undefined for a completion from L1. */
function getTransferIdOf({ event }: ParsedDelivery): string | undefined {
  if (event.kind === "l2") return event.transferId;
  return event.kind === "cctp" ? event.nonce.toString() : undefined;
}
