import { usesCustomEndpoints } from "../../../chain/chains.js";
import { type BlockRange, type Log, type LogFilter, readLogPage } from "../../../chain/read/chain-reads.js";
import type { Chain } from "../../../hop/networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  EVENT_TOPICS,
  encodeTopic,
  hasSameTransferFields,
  type L1CompletionFields,
} from "../../../hop/transfer-events.js";
import type { LookupContext } from "../transfer-source.js";
import type { LogScanOptions } from "./resumable-log-scanner.js";
import {
  estimateBlockAfter,
  incompleteChainDataError,
  readLogTimestamp,
  type SearchContext,
} from "./search-context.js";

// A completion event on an L2 carries no transfer ID, only the values of a transfer from L1. Several transfers may have
// equal values; they are completed in the order in which they were sent, one per completion event. So all sends and all
// completions with equal values are read, and the n-th send belongs to the n-th completion.

/** All transfers of one token from L1 to one L2 that have the same values. */
export interface EqualTransferGroup {
  readonly source: Chain;
  readonly destination: Chain;
  /** The token's bridge on L1, lower case. */
  readonly sourceBridge: string;
  /** The token's bridge on the L2, lower case. */
  readonly destinationBridge: string;
  readonly values: L1CompletionFields;
}

/** The position of a log on its chain. */
type LogPosition = Pick<Log, "transactionHash" | "blockNumber" | "logIndex">;

/** How far before a transfer sends with equal values are searched, where endpoints do not search the whole chain. */
const LOOKBACK_SECONDS = 7 * 24 * 3600;

/**
 * Finds the log that completed a transfer; undefined when it has not been completed.
 * @param sent position of the sending log
 * @param sentAt Unix seconds
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
export async function findL1Completion(
  group: EqualTransferGroup,
  sent: LogPosition,
  sentAt: Promise<number>,
  context: SearchContext,
): Promise<Log | undefined> {
  const { source, destination } = group;
  const client = context.chains.getClient(destination.slug);
  const filter = buildCompletionFilter(group);
  const [sends, newest] = await Promise.all([
    findGroupSends(group, { event: sent, to: sent.blockNumber, readTime: () => sentAt }, context),
    readLogPage(client, { filter, range: { from: 0, to: "latest" }, newestFirst: true }, context.signal),
  ]);
  const order = findLogIndex(sent, sends.logs);
  // An endpoint whose logs lag behind its receipts cannot tell how many equal transfers were sent earlier.
  if (order < 0) throw incompleteChainDataError(source);
  if (sends.from === 0 && newest.range.from === 0) return filterCompletions(newest.logs, group)[order];

  const firstSend = sends.logs[0];
  if (firstSend === undefined) throw incompleteChainDataError(source);
  const firstSentAt = await (order === 0 ? sentAt : readLogTimestamp(firstSend, source, context));
  const from = await context.blockTimes.findBlockAt(client, firstSentAt, destination.blockTimeMs, context.signal);
  if (from >= newest.range.from) return filterCompletions(newest.logs.filter(createMinBlockFilter(from)), group)[order];
  // The order and the start depend on how far back the source was searched, so both are part of the key.
  const key = createScanKey(group, sent, `${order} ${firstSend.transactionHash}`, context);
  const completions = await context.logScanner.resume(
    key,
    {
      client,
      filter,
      findStartBlock: async () => from,
      blockMs: destination.blockTimeMs,
      isMatch: createCompletionMatcher(group),
      targetCount: order + 1,
    },
    context,
  );
  return completions[order];
}

/**
 * Finds the log that sent the transfer which a log on an L2 completed; undefined when there is none.
 * @param readCompletionTime reads the time of the completion, in Unix seconds
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
export async function findSendOfL1Completion(
  group: EqualTransferGroup,
  completion: Log,
  readCompletionTime: () => Promise<number>,
  context: SearchContext,
): Promise<Log | undefined> {
  const { source, destination } = group;
  const client = context.chains.getClient(destination.slug);
  const filter = buildCompletionFilter(group);
  const [sends, newest] = await Promise.all([
    findGroupSends(group, { event: completion, to: "latest", readTime: readCompletionTime }, context),
    readLogPage(client, { filter, range: { from: 0, to: completion.blockNumber }, newestFirst: true }, context.signal),
  ]);
  const [firstSend] = sends.logs;
  if (firstSend === undefined) return undefined;
  let { logs } = newest;
  if (sends.from > 0 || newest.range.from > 0) {
    const firstSentAt = await readLogTimestamp(firstSend, source, context);
    const from = await context.blockTimes.findBlockAt(client, firstSentAt, destination.blockTimeMs, context.signal);
    const earlier = { from, to: newest.range.from - 1 };
    const key = createScanKey(group, completion, firstSend.transactionHash, context);
    const options = { client, filter, blockMs: destination.blockTimeMs, isMatch: createCompletionMatcher(group) };
    const earlierLogs = await scanRange(key, earlier, options, context);
    logs = [...earlierLogs, ...logs].filter(createMinBlockFilter(from));
  }
  const order = findLogIndex(completion, filterCompletions(logs, group));
  if (order < 0) throw incompleteChainDataError(destination);
  return sends.logs[order];
}

/**
 * Finds the sends of a group up to a block: all of them where the endpoint searches the whole chain, otherwise those since
 * `LOOKBACK_SECONDS` before the given time.
 * @param event the send or completion in question
 * @param to last block
 * @param readTime reads the time of the event, in Unix seconds
 * @returns the logs in chain order, and the first block that was searched
 */
async function findGroupSends(
  group: EqualTransferGroup,
  {
    event,
    to,
    readTime,
  }: { readonly event: LogPosition; readonly to: number | "latest"; readonly readTime: () => Promise<number> },
  context: SearchContext,
): Promise<{ readonly logs: readonly Log[]; readonly from: number }> {
  const { source, destination, sourceBridge, values } = group;
  const { chains, signal } = context;
  const client = chains.getClient(source.slug);
  const filter: LogFilter = {
    address: sourceBridge,
    topics: [
      EVENT_TOPICS.transferSentToL2,
      encodeTopic(BigInt(destination.chainId)),
      encodeTopic(values.recipient),
      encodeTopic(values.relayer),
    ],
  };
  const isInGroup = (log: Log): boolean => {
    const sentEvent = decodeSentEvent(log);
    return sentEvent !== undefined && hasSameTransferFields(sentEvent, values);
  };
  const newest = await readLogPage(client, { filter, range: { from: 0, to }, newestFirst: true }, signal);
  const firstSearched = newest.range.from;
  if (firstSearched === 0) return { logs: newest.logs.filter(isInGroup), from: 0 };
  const time = await readTime();
  const from = await context.blockTimes.findBlockAt(client, time - LOOKBACK_SECONDS, source.blockTimeMs, signal);
  const end = to === "latest" ? await estimateBlockAfter(source, time, context) : to;
  const earlier = { from, to: Math.min(end, firstSearched - 1) };
  const options = { client, filter, blockMs: source.blockTimeMs, isMatch: isInGroup };
  const earlierLogs = await scanRange(createScanKey(group, event, "sends", context), earlier, options, context);
  return { logs: [...earlierLogs, ...newest.logs].filter(isInGroup), from: Math.min(from, firstSearched) };
}

/** Scans a range such that the next lookup continues where this one stops. */
async function scanRange(
  key: string | undefined,
  { from, to }: BlockRange,
  options: Pick<LogScanOptions, "client" | "filter" | "blockMs" | "isMatch">,
  context: SearchContext,
): Promise<readonly Log[]> {
  if (from > to) return [];
  const all = { findStartBlock: async () => from, endBlock: to, targetCount: Number.POSITIVE_INFINITY };
  const logs = await context.logScanner.resume(key, { ...options, ...all }, context);
  // An earlier lookup may have scanned further.
  return logs.filter(({ blockNumber }) => blockNumber <= to);
}

/** Returns the key of a scan on behalf of an event; undefined: the scan is private. */
function createScanKey(
  { source, destination }: EqualTransferGroup,
  { transactionHash, logIndex }: LogPosition,
  purpose: string,
  { network, chains }: LookupContext,
): string | undefined {
  if (usesCustomEndpoints(chains, [source.slug, destination.slug])) return undefined;
  return `${network.slug} ${transactionHash} ${logIndex} ${purpose}`;
}

function buildCompletionFilter({ destinationBridge, values }: EqualTransferGroup): LogFilter {
  return {
    address: destinationBridge,
    topics: [EVENT_TOPICS.transferFromL1Completed, encodeTopic(values.recipient), encodeTopic(values.relayer)],
  };
}

function filterCompletions(logs: readonly Log[], group: EqualTransferGroup): readonly Log[] {
  return logs.filter(createCompletionMatcher(group));
}

/** Creates a predicate for logs that complete a transfer of the group. */
function createCompletionMatcher({ values }: EqualTransferGroup): (log: Log) => boolean {
  return (log) => {
    const event = decodeReceivedEvent(log);
    return event?.kind === "l1" && hasSameTransferFields(event, values);
  };
}

function findLogIndex({ logIndex, transactionHash }: Omit<LogPosition, "blockNumber">, logs: readonly Log[]): number {
  return logs.findIndex((log) => log.logIndex === logIndex && log.transactionHash === transactionHash);
}

function createMinBlockFilter(block: number): (log: Log) => boolean {
  return ({ blockNumber }) => blockNumber >= block;
}
