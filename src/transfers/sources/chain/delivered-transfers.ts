import type { Log, Receipt } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import { getCctpDomain } from "../../../hop/cctp.js";
import type { Chain } from "../../../hop/networks.js";
import { MAX_REQUESTS_FOR_UNTRUSTED_RECEIPT } from "../../spend/lookup-budget.js";
import { limitOperatorRequests } from "../../spend/metered-chains.js";
import { isSourceUnavailable } from "../transfer-source.js";
import { findSendOfL1Completion } from "./l1-completion.js";
import { readLogTimestamp, type SearchContext } from "./search-context.js";
import { findSendByNonce, findSendByTransferId, type LocatedSend } from "./send-search.js";
import { type ParsedDelivery, parseDeliveries, parseSend } from "./transfer-logs.js";

// The delivered side: from a delivering transaction back to the sends.

/** A transfer that a transaction delivered. */
export interface DeliveredTransfer {
  readonly send: LocatedSend;
  readonly deliveryLog: Log;
  /** IDs of the other transfers that the transaction delivered, as far as they are known. */
  readonly otherTransferIds: readonly string[];
  /** Whether all of them are known. */
  readonly areSiblingsKnown: boolean;
}

/** Events of one receipt whose send is searched. Hop's own transactions deliver one or two transfers. */
const MAX_FOLLOWED_EVENTS = 16;

/**
 * Finds the first transfer that a transaction delivered; undefined when it delivered none.
 * @param transferId selects one of the delivered transfers
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
export async function findDeliveredTransfer(
  chain: Chain,
  receipt: Receipt,
  transferId: string | undefined,
  context: SearchContext,
): Promise<DeliveredTransfer | undefined> {
  const { network, contracts } = context;
  const deliveries = parseDeliveries(contracts, chain, receipt);
  // A completion from L1 carries no transfer ID: candidates that carry one come first.
  const candidates = [
    ...deliveries.filter((delivery) => transferId === undefined || getTransferIdOf(delivery) === transferId),
    ...deliveries.filter((delivery) => transferId !== undefined && getTransferIdOf(delivery) === undefined),
  ];
  const search = restrictUntrusted(chain, context);
  let followedCount = 0;
  for (const delivery of candidates.slice(0, MAX_FOLLOWED_EVENTS)) {
    followedCount += 1;
    const send = await findSendOf(delivery, chain, search);
    const sent = send && parseSend(network, contracts, send.chain, send.log);
    if (send === undefined || sent?.destination !== chain) continue;
    if (sent.token !== delivery.token) continue;
    if (transferId !== undefined && sent.id !== transferId) continue;
    const siblings = deliveries.filter((other) => other !== delivery);
    const siblingIds = await Promise.all(
      siblings.map((sibling) => {
        const known = getTransferIdOf(sibling);
        if (known !== undefined || followedCount >= MAX_FOLLOWED_EVENTS) return known;
        followedCount += 1;
        return findSiblingId(sibling, chain, search);
      }),
    );
    const otherTransferIds = siblingIds.filter((id) => id !== undefined);
    const areSiblingsKnown = otherTransferIds.length === siblingIds.length;
    return { send, deliveryLog: delivery.log, otherTransferIds, areSiblingsKnown };
  }
  if (candidates.length > MAX_FOLLOWED_EVENTS) {
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `the transaction on ${chain.slug} has too many events to follow`);
  }
  return undefined;
}

/** Finds the send of a delivered transfer; undefined when the transfer is not one of Hop's. */
async function findSendOf(
  { event, token, log }: ParsedDelivery,
  chain: Chain,
  search: SearchContext,
): Promise<LocatedSend | undefined> {
  const otherChains = [...search.network.chains.values()].filter((other) => other !== chain);
  const readDeliveryTime = (): Promise<number> => readLogTimestamp(log, chain, search);
  switch (event.kind) {
    case "l2":
      return findSendByTransferId(event.transferId, otherChains, search, { readDeliveryTime });
    case "cctp": {
      const sources = otherChains.filter((other) => getCctpDomain(other) === event.sourceDomain);
      return findSendByNonce(event.nonce, sources, search, { readDeliveryTime });
    }
    case "l1": {
      const source = otherChains.find(({ isL1 }) => isL1);
      const sourceBridge = source && search.contracts.findBridge(token, source);
      if (source === undefined || !sourceBridge) return undefined;
      const group = { source, destination: chain, sourceBridge, destinationBridge: log.address, values: event };
      const sendLog = await findSendOfL1Completion(group, log, readDeliveryTime, search);
      return sendLog && { chain: source, log: sendLog };
    }
  }
}

/** Returns the ID of a sibling transfer from L1; undefined also when its chain fails, since the response does not depend on it. */
async function findSiblingId(
  delivery: ParsedDelivery,
  chain: Chain,
  search: SearchContext,
): Promise<string | undefined> {
  try {
    return (await findSendOf(delivery, chain, search))?.log.transactionHash;
  } catch (error) {
    if (!isSourceUnavailable(error)) throw error;
    return undefined;
  }
}

/** Limits what a receipt from the caller's own endpoint, which may be forged, can start on the operator's endpoints. */
function restrictUntrusted(chain: Chain, context: SearchContext): SearchContext {
  if (!context.chains.hasCustomEndpoint(chain.slug)) return context;
  const chains = limitOperatorRequests(context.chains, MAX_REQUESTS_FOR_UNTRUSTED_RECEIPT, (slug) => {
    const message = `the search of ${slug} for the transfers of this transaction takes too many requests`;
    return new ServiceError("UPSTREAM_UNAVAILABLE", message);
  });
  return { ...context, chains };
}

/** Returns the transfer ID or CCTP nonce that a delivery event carries; undefined for a completion from L1. */
function getTransferIdOf({ event }: ParsedDelivery): string | undefined {
  if (event.kind === "l2") return event.transferId;
  return event.kind === "cctp" ? event.nonce.toString() : undefined;
}
