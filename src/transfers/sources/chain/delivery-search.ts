import { type Log, readLogPage, readUint } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import {
  decodeReceivedEvent,
  encodeIsTransferIdSpentCall,
  encodeTopic,
  encodeUsedNoncesCall,
  eventTopics,
} from "../../../hop/transfer-events.js";
import { createAbortScope } from "../../../resilience/fetch-json.js";
import { withTimeout } from "../../../resilience/with-timeout.js";
import type { LookupContext } from "../transfer-source.js";
import type { LogScanOptions } from "./resumable-log-scanner.js";
import type { SearchCaches } from "./search-caches.js";
import type { ParsedSend } from "./transfer-logs.js";

/** That a transfer has arrived. */
export interface DetectedDelivery {
  /** The log that delivered it; undefined: not found. */
  readonly log: Log | undefined;
}

/** What an endpoint gives at once of the logs that end with the newest. */
interface NewestLogs {
  readonly logs: readonly Log[];
  /** Whether it searched the whole chain. */
  readonly isCompleteHistory: boolean;
}

/** For how long the log that delivered a transfer is waited for once it is known to have arrived, in milliseconds. */
const DELIVERY_LOG_TIMEOUT_MS = 2_000;

/**
 * Whether a transfer over an L2 bridge or CCTP has arrived, as the destination's contract says, and by which log. Asks
 * for both at once: where an endpoint searches its whole chain, that is one round trip. Where it searches less, a search
 * begins at the time of sending, and goes on when the answer is out.
 * @param sentAt Unix seconds
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the destination cannot tell
 */
export async function findDelivery(
  sent: ParsedSend,
  sentAt: Promise<number>,
  book: ContractRegistry,
  { blockTimes, logScanner }: SearchCaches,
  { network, chains, signal, remainingMs }: LookupContext,
): Promise<DetectedDelivery | undefined> {
  const { slug, blockTimeMs } = sent.destination;
  const client = chains.getClient(slug);
  const { call, filter, delivers } = buildDeliveryQueries(sent, book);
  const limit = createAbortScope(signal);

  async function search(first: Promise<NewestLogs | undefined>, patience: number): Promise<Log | undefined> {
    const newest = await withTimeout(first, patience / 2, undefined);
    const log = newest?.logs.find(delivers);
    // Not in all logs there are: the node has not indexed this one yet.
    if (log !== undefined || newest?.isCompleteHistory === true) return log;
    const isPrivate = [sent.source, sent.destination].some((chain) => chains.hasCustomEndpoint(chain.slug));
    // Bridges of two tokens may give the same id.
    const key = isPrivate ? undefined : `${network.slug} ${slug} ${sent.source.slug} ${sent.token} ${sent.id}`;
    const findStartBlock = async (during: AbortSignal): Promise<number> =>
      blockTimes.findBlockAt(client, await sentAt, blockTimeMs, during);
    const options: LogScanOptions = {
      client,
      filter,
      findStartBlock,
      blockMs: blockTimeMs,
      isMatch: delivers,
      targetCount: 1,
    };
    const [found] = await logScanner.resume(key, options, limit.signal);
    return found;
  }

  try {
    const first = readLogPage(client, filter, { from: 0, to: "latest" }, { newestFirst: true }, limit.signal).then(
      ({ logs, range }): NewestLogs => ({ logs, isCompleteHistory: range.from === 0 }),
      () => undefined,
    );
    const flag = await readUint(client, call.to, call.data, limit.signal).catch(async (error: unknown) => {
      // A node that cannot run contracts may still have the log.
      const log = (await first)?.logs.find(delivers);
      if (log === undefined) throw error;
      return 1n;
    });
    if (flag === 0n) {
      // Another endpoint, or a later block, may have told of it already.
      const newest = await withTimeout<NewestLogs | undefined>(first, 0, undefined);
      const log = newest?.logs.find(delivers);
      return log && { log };
    }
    const patience = Math.min(DELIVERY_LOG_TIMEOUT_MS, remainingMs() / 2);
    return { log: await withTimeout<Log | undefined>(search(first, patience), patience, undefined) };
  } finally {
    limit.cancel();
  }
}

/** What the destination's contract is asked, which logs may tell, and which of them does. */
function buildDeliveryQueries(sent: ParsedSend, book: ContractRegistry) {
  const { source, destination, token, id } = sent;
  if (sent.kind === "cctp") {
    const transmitter = requireDefined(book.findMessageTransmitter(destination), sent);
    const domain = requireDefined(getCctpDomain(source), sent);
    const nonce = BigInt(id);
    return {
      call: { to: transmitter, data: encodeUsedNoncesCall(domain, nonce) },
      filter: { address: transmitter, topics: [eventTopics.messageReceived, null, encodeTopic(nonce)] },
      delivers(log: Log): boolean {
        const event = decodeReceivedEvent(log);
        return event?.kind === "cctp" && event.sourceDomain === domain;
      },
    };
  }
  const bridge = requireDefined(book.findBridge(token, destination), sent);
  return {
    call: { to: bridge, data: encodeIsTransferIdSpentCall(id) },
    filter: { address: bridge, topics: [[eventTopics.withdrawalBonded, eventTopics.withdrew], id] },
    delivers: (log: Log): boolean => decodeReceivedEvent(log)?.kind === "l2",
  };
}

/**
 * A part of the address book that every transfer has.
 * @throws ServiceError UPSTREAM_UNAVAILABLE where it is missing
 */
export function requireDefined<T>(value: T | undefined, { token, source, destination }: ParsedSend): T {
  if (value === undefined) {
    const message = `${source.slug} tells of a transfer of ${token} to ${destination.slug}, which cannot be`;
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  return value;
}
