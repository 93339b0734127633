import { usesCustomEndpoints } from "../../../chain/chains.js";
import { type Log, type LogPage, readLogPage, readUint } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import { getCctpDomain } from "../../../hop/cctp.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import {
  decodeReceivedEvent,
  EVENT_TOPICS,
  encodeIsTransferIdSpentCall,
  encodeTopic,
  encodeUsedNoncesCall,
} from "../../../hop/transfer-events.js";
import { createAbortScope, withTimeoutOrFallback } from "../../../resilience/abort-scope.js";
import type { LogScanOptions } from "./resumable-log-scanner.js";
import type { SearchContext } from "./search-context.js";
import type { ParsedSend } from "./transfer-logs.js";

/** A delivery that the destination chain confirms. */
export interface DetectedDelivery {
  /** The log that delivered the transfer; undefined when it has not been found. */
  readonly log: Log | undefined;
}

/** Longest wait for the delivering log where the chains are fast, after the contract has confirmed the delivery. */
const MIN_LOG_TIMEOUT_MS = 2_000;

/**
 * Finds out whether a transfer over an L2 bridge or CCTP has been delivered, and by which log. Reads the contract's flag
 * and the newest logs in parallel, which is one round trip where an endpoint searches its whole chain at once. Otherwise a
 * log scan starts at the time of sending and continues after the response.
 * @param sentAt Unix seconds
 * @returns undefined when the transfer has not been delivered
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the destination cannot tell
 */
export async function findDelivery(
  sent: ParsedSend,
  sentAt: Promise<number>,
  search: SearchContext,
): Promise<DetectedDelivery | undefined> {
  const { slug, blockTimeMs } = sent.destination;
  const { contracts, blockTimes, logScanner, network, chains, signal, remainingMs, elapsedMs } = search;
  const client = chains.getClient(slug);
  const { call, filter, isDelivery } = buildDeliveryQueries(sent, contracts);
  const scope = createAbortScope(signal);

  async function searchLog(newestLogs: Promise<LogPage | undefined>, timeoutMs: number): Promise<Log | undefined> {
    const newest = await withTimeoutOrFallback(newestLogs, timeoutMs / 2, undefined);
    const log = newest?.logs.find(isDelivery);
    // Missing although the whole chain was searched: the node has not indexed the log yet.
    if (log !== undefined || newest?.range.from === 0) return log;
    const isPrivate = usesCustomEndpoints(chains, [sent.source.slug, slug]);
    // The key contains the token because the bridges of two tokens may assign the same ID.
    const key = isPrivate ? undefined : `${network.slug} ${slug} ${sent.source.slug} ${sent.token} ${sent.id}`;
    const options: LogScanOptions = {
      client,
      filter,
      findStartBlock: async (scanSignal) => blockTimes.findBlockAt(client, await sentAt, blockTimeMs, scanSignal),
      blockMs: blockTimeMs,
      isMatch: isDelivery,
      targetCount: 1,
    };
    const [match] = await logScanner.resume(key, options, { ...search, signal: scope.signal });
    return match;
  }

  try {
    const newestLogs = readLogPage(
      client,
      { filter, range: { from: 0, to: "latest" }, newestFirst: true },
      scope.signal,
    ).catch(() => undefined);
    const flag = await readUint(client, call.to, call.data, scope.signal).catch(async (error: unknown) => {
      // A node that cannot execute contract calls may still have the log.
      const log = (await newestLogs)?.logs.find(isDelivery);
      if (log === undefined) throw error;
      return 1n;
    });
    if (flag === 0n) {
      // The logs may come from a later block or from an endpoint that is further ahead.
      const newest = await withTimeoutOrFallback<LogPage | undefined>(newestLogs, 0, undefined);
      const log = newest?.logs.find(isDelivery);
      return log && { log };
    }
    const timeoutMs = Math.min(Math.max(MIN_LOG_TIMEOUT_MS, elapsedMs?.() ?? 0), remainingMs() / 2);
    return {
      log: await withTimeoutOrFallback<Log | undefined>(searchLog(newestLogs, timeoutMs), timeoutMs, undefined),
    };
  } finally {
    scope.cancel();
  }
}

/** Builds the contract call that tells whether a transfer was delivered, and the filter for the log that delivered it. */
function buildDeliveryQueries(sent: ParsedSend, contracts: ContractRegistry) {
  const { source, destination, token, id } = sent;
  if (sent.kind === "cctp") {
    const transmitter = requireRouteValue(contracts.findMessageTransmitter(destination), sent);
    const domain = requireRouteValue(getCctpDomain(source), sent);
    const nonce = BigInt(id);
    return {
      call: { to: transmitter, data: encodeUsedNoncesCall(domain, nonce) },
      filter: { address: transmitter, topics: [EVENT_TOPICS.messageReceived, null, encodeTopic(nonce)] },
      isDelivery(log: Log): boolean {
        const event = decodeReceivedEvent(log);
        return event?.kind === "cctp" && event.sourceDomain === domain;
      },
    };
  }
  const bridge = requireRouteValue(contracts.findBridge(token, destination), sent);
  return {
    call: { to: bridge, data: encodeIsTransferIdSpentCall(id) },
    filter: { address: bridge, topics: [[EVENT_TOPICS.withdrawalBonded, EVENT_TOPICS.withdrew], id] },
    isDelivery: (log: Log): boolean => decodeReceivedEvent(log)?.kind === "l2",
  };
}

/**
 * Returns a part of the address book that every valid transfer has.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when it is missing
 */
export function requireRouteValue<T>(value: T | undefined, { token, source, destination }: ParsedSend): T {
  if (value === undefined) {
    const message = `${source.slug} returned a transfer of ${token} to ${destination.slug}, a route that does not exist`;
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  return value;
}
