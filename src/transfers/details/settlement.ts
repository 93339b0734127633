import { callContract, type Log } from "../../chain/read/chain-reads.js";
import { ServiceError } from "../../errors.js";
import {
  type CommittedRoot,
  decodeStoredRoot,
  decodeTransfersCommitted,
  encodeGetTransferRootCall,
  TRANSFERS_COMMITTED_TOPIC,
} from "../../hop/settlement.js";
import { EVENT_TOPICS, encodeTopic } from "../../hop/transfer-events.js";
import type { ResumableLogScanner } from "../sources/chain/resumable-log-scanner.js";
import { incompleteChainDataError } from "../sources/chain/search-caches.js";
import { type LookupContext, usesCustomEndpoints } from "../sources/transfer-source.js";
import type { SentTransfer } from "../transfer.js";
import { getPayoutContracts } from "./payout-contracts.js";
import type { SettlementProgress } from "./substate.js";

/**
 * Finds out how far the settlement of a transfer from an L2 has come. A commit contains the transfers to its destination
 * since the commit before, in the order of the logs, so the transfer belongs to the first commit to its destination that
 * follows its own log. Instead of the event TransferRootSet, the root itself is read at the destination: one call, however
 * long ago the root arrived.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
export async function readSettlement(
  sent: SentTransfer,
  logScanner: ResumableLogScanner,
  context: LookupContext,
): Promise<SettlementProgress> {
  const { network, chains, signal } = context;
  const { token, source, destination, event } = sent;
  const from = getPayoutContracts(network, token, source).bridge;
  const to = getPayoutContracts(network, token, destination).bridge;
  if (from === undefined || to === undefined) {
    throw new ServiceError(
      "UPSTREAM_UNAVAILABLE",
      `${source.slug} returned a transfer of ${token} on a route that does not exist`,
    );
  }
  const root = await findCommittedRoot(sent, from, logScanner, context);
  if (root === undefined) return "NOT_COMMITTED";
  const call = { to, data: encodeGetTransferRootCall(root) };
  const stored = await callContract(chains.getClient(destination.slug), call, decodeStoredRoot, signal);
  // A root that was emptied, as Hop's governance can do after eight weeks, pays nobody any more.
  return stored.createdAt > 0n && stored.total - stored.amountWithdrawn >= event.amount ? "ARRIVED" : "COMMITTED";
}

/**
 * Finds the root that contains a transfer; undefined: it has not been committed. Searches for the transfer's own log as well,
 * in the same request: an endpoint that does not have it cannot tell that there is no commit.
 */
async function findCommittedRoot(
  sent: SentTransfer,
  bridge: string,
  logScanner: ResumableLogScanner,
  { network, chains, caller, signal }: LookupContext,
): Promise<CommittedRoot | undefined> {
  const { source, destination, transactionHash, blockNumber, logIndex, id } = sent;
  const isPrivate = usesCustomEndpoints(chains, [source.slug]);
  const isSend = (log: Log): boolean => log.transactionHash === transactionHash && log.topics[1] === id;
  // A send to a full collection commits that first, in the same transaction: the commit is without the transfer.
  const isLater = (log: Log): boolean => log.blockNumber > blockNumber || log.logIndex > logIndex;
  const [send, commit] = await logScanner.resume(
    isPrivate ? undefined : `${network.slug} ${source.slug} ${transactionHash} ${logIndex} commit`,
    {
      client: chains.getClient(source.slug),
      caller,
      filter: {
        address: bridge,
        // The second topic is the transfer of the one event and the destination of the other.
        topics: [
          [EVENT_TOPICS.transferSent, TRANSFERS_COMMITTED_TOPIC],
          [id, encodeTopic(BigInt(destination.chainId))],
        ],
      },
      findStartBlock: async () => blockNumber,
      blockMs: source.blockTimeMs,
      isMatch: (log) => isSend(log) || (decodeTransfersCommitted(log) !== undefined && isLater(log)),
      targetCount: 2,
    },
    signal,
  );
  if (send === undefined || !isSend(send)) throw incompleteChainDataError(source);
  return commit && decodeTransfersCommitted(commit);
}
