import { usesCustomEndpoints } from "../../chain/chains.js";
import { callContract, type Log } from "../../chain/read/chain-reads.js";
import { ServiceError } from "../../errors.js";
import type { Network } from "../../hop/networks.js";
import {
  decodeStoredRoot,
  decodeTransfersCommitted,
  encodeGetTransferRootCall,
  TRANSFERS_COMMITTED_TOPIC,
} from "../../hop/settlement.js";
import { EVENT_TOPICS, encodeTopic } from "../../hop/transfer-events.js";
import type { ResumableLogScanner } from "../sources/chain/resumable-log-scanner.js";
import { incompleteChainDataError } from "../sources/chain/search-context.js";
import type { LookupContext } from "../sources/transfer-source.js";
import type { SentTransfer } from "../status.js";
import { getPayoutContracts } from "./payout.js";

/** How far the settlement of a transfer from an L2 has come: its root is not committed, on its way, or at the destination. */
export type SettlementProgress = "NOT_COMMITTED" | "COMMITTED" | "ARRIVED";

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
  const { destination, event } = sent;
  const { from, to } = getBridges(sent, network);
  const { root } = await findCommit(sent, from, logScanner, context);
  if (root === undefined) return "NOT_COMMITTED";
  const call = { to, data: encodeGetTransferRootCall(root) };
  const stored = await callContract(chains.getClient(destination.slug), call, decodeStoredRoot, signal);
  // A root that was emptied, as Hop's governance can do after eight weeks, pays nobody any more.
  return stored.createdAt > 0n && stored.total - stored.amountWithdrawn >= event.amount ? "ARRIVED" : "COMMITTED";
}

/**
 * Returns the bridges of a transfer from an L2.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for a route that does not exist
 */
export function getBridges({ token, source, destination }: SentTransfer, network: Network) {
  const from = getPayoutContracts(network, token, source).bridge;
  const to = getPayoutContracts(network, token, destination).bridge;
  if (from !== undefined && to !== undefined) return { from, to };
  const message = `${source.slug} returned a transfer of ${token} on a route that does not exist`;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
}

/**
 * Finds the commit of a transfer. Searches for the transfer's own log as well, in the same request: an endpoint that does not
 * have it cannot tell that there is no commit.
 * @returns the log that sent the transfer, the log of the commit and its root; undefined: the transfer has not been committed
 */
export async function findCommit(
  sent: SentTransfer,
  bridge: string,
  logScanner: ResumableLogScanner,
  context: LookupContext,
) {
  const { source, destination, transactionHash, blockNumber, logIndex, id } = sent;
  const isSend = (log: Log): boolean => log.transactionHash === transactionHash && log.topics[1] === id;
  // A send to a full collection commits that first, in the same transaction: the commit is without the transfer.
  const isLater = (log: Log): boolean => log.blockNumber > blockNumber || log.logIndex > logIndex;
  const [send, commit] = await logScanner.resume(
    getScanKey(sent, context),
    {
      client: context.chains.getClient(source.slug),
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
    context,
  );
  if (send === undefined || !isSend(send)) {
    forgetCommit(sent, logScanner, context);
    throw incompleteChainDataError(source);
  }
  return { send, log: commit, root: commit && decodeTransfersCommitted(commit) };
}

/** Lets the commit of a transfer be searched anew: an endpoint has left out or invented logs. */
export function forgetCommit(sent: SentTransfer, logScanner: ResumableLogScanner, context: LookupContext): void {
  logScanner.forget(getScanKey(sent, context));
}

/** Returns undefined for a scan of a caller's own endpoint, of which nothing is kept. */
function getScanKey(
  { source, transactionHash, logIndex }: SentTransfer,
  { network, chains }: LookupContext,
): string | undefined {
  if (usesCustomEndpoints(chains, [source.slug])) return undefined;
  return `${network.slug} ${source.slug} ${transactionHash} ${logIndex} commit`;
}
