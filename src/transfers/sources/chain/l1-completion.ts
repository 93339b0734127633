import { type Log, type LogFilter, readLogPage } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import type { Chain } from "../../../hop/networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  encodeTopic,
  eventTopics,
  hasSameTransferFields,
  type L1CompletionFields,
} from "../../../hop/transfer-events.js";
import type { LookupContext } from "../transfer-source.js";
import { findBlockAfter, incompleteChainDataError, readLogTimestamp, type SearchCaches } from "./search-caches.js";

// A completion on an L2 names no transfer: it has the values of one. Of sends from L1 with equal values the first sent is
// the first completed, and each completion delivers one. So all equal ones are read on both sides and paired in order.

/** The transfers of one token from L1 to one L2 that have these values. */
export interface EqualTransferGroup {
  readonly source: Chain;
  readonly destination: Chain;
  /** The token's bridges, lower case. */
  readonly sourceBridge: string;
  readonly destinationBridge: string;
  readonly values: L1CompletionFields;
}

/** Where a log stands. The hash is lower case. */
export interface LogPosition {
  readonly transactionHash: string;
  readonly blockNumber: number;
  readonly logIndex: number;
}

/** How long before a transfer, in seconds, equal ones are looked for where endpoints do not search the whole chain. */
const LOOKBACK_SECONDS = 7 * 24 * 3600;

/** Sends that were searched. */
interface SearchedSends {
  /** In the order of the chain. */
  readonly logs: readonly Log[];
  /** The first block searched. */
  readonly from: number;
}

/**
 * The log that completed a transfer; undefined when none has.
 * @param sent where it was sent
 * @param sentAt when, Unix seconds
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
export async function findL1Completion(
  equal: EqualTransferGroup,
  sent: LogPosition,
  sentAt: Promise<number>,
  memory: SearchCaches,
  context: LookupContext,
): Promise<Log | undefined> {
  const { source, destination } = equal;
  const client = context.chains.getClient(destination.slug);
  const filter = buildCompletionFilter(equal);
  const [sends, newest] = await Promise.all([
    findSends(equal, sent.blockNumber, () => sentAt, memory, context),
    readLogPage(client, filter, { from: 0, to: "latest" }, { newestFirst: true }, context.signal),
  ]);
  const place = findLogIndex(sent, sends.logs);
  // A source whose logs lag behind its receipts cannot tell how many equal ones were sent before.
  if (place < 0) throw incompleteChainDataError(source);
  if (sends.from === 0 && newest.range.from === 0) return filterCompletions(newest.logs, equal)[place];

  const firstSend = sends.logs[0];
  if (firstSend === undefined) throw incompleteChainDataError(source);
  const firstAt = await (place === 0 ? sentAt : readLogTimestamp(firstSend, source, context));
  const from = await memory.blockTimes.findBlockAt(client, firstAt, destination.blockTimeMs, context.signal);
  if (from >= newest.range.from) return filterCompletions(newest.logs.filter(createMinBlockFilter(from)), equal)[place];
  const isPrivate = [source, destination].some(({ slug }) => context.chains.hasCustomEndpoint(slug));
  // How many came before it, and since when, depends on how far the source was searched.
  const key = isPrivate
    ? undefined
    : `${context.network.slug} ${sent.transactionHash} ${sent.logIndex} ${place} ${firstSend.transactionHash}`;
  const logs = await memory.logScanner.resume(
    key,
    {
      client,
      filter,
      findStartBlock: async () => from,
      blockMs: destination.blockTimeMs,
      isMatch: createCompletionMatcher(equal),
      targetCount: place + 1,
    },
    context.signal,
  );
  return logs[place];
}

/**
 * The log that sent the transfer which a log on an L2 completed; undefined when there is none.
 * @param completedAt asks for the time of the completion, Unix seconds
 * @throws ServiceError UPSTREAM_UNAVAILABLE when one of the chains cannot tell
 */
export async function findSendOfL1Completion(
  equal: EqualTransferGroup,
  completion: Log,
  completedAt: () => Promise<number>,
  memory: SearchCaches,
  context: LookupContext,
): Promise<Log | undefined> {
  const { source, destination } = equal;
  const client = context.chains.getClient(destination.slug);
  const filter = buildCompletionFilter(equal);
  const block = completion.blockNumber;
  const [sends, newest] = await Promise.all([
    findSends(equal, "latest", completedAt, memory, context),
    readLogPage(client, filter, { from: 0, to: block }, { newestFirst: true }, context.signal),
  ]);
  const [firstSend] = sends.logs;
  if (firstSend === undefined) return undefined;
  let { logs } = newest;
  if (sends.from > 0 || newest.range.from > 0) {
    const time = await readLogTimestamp(firstSend, source, context);
    const from = await memory.blockTimes.findBlockAt(client, time, destination.blockTimeMs, context.signal);
    const rest = { from, to: newest.range.from - 1 };
    const before =
      rest.from > rest.to ? [] : await searchLogs(client, filter, rest, { newestFirst: false }, context.signal);
    logs = [...before, ...logs].filter(createMinBlockFilter(from));
  }
  const place = findLogIndex(completion, filterCompletions(logs, equal));
  if (place < 0) throw incompleteChainDataError(destination);
  return sends.logs[place];
}

/** The sends with these values up to a block, all or as many as matter. */
async function findSends(
  equal: EqualTransferGroup,
  to: number | "latest",
  at: () => Promise<number>,
  memory: SearchCaches,
  context: LookupContext,
): Promise<SearchedSends> {
  const { source, destination, sourceBridge, values } = equal;
  const { chains, signal } = context;
  const client = chains.getClient(source.slug);
  const filter: LogFilter = {
    address: sourceBridge,
    topics: [
      eventTopics.transferSentToL2,
      encodeTopic(BigInt(destination.chainId)),
      encodeTopic(values.recipient),
      encodeTopic(values.relayer),
    ],
  };
  const isEqual = (log: Log): boolean => {
    const event = decodeSentEvent(log);
    return event !== undefined && hasSameTransferFields(event, values);
  };
  const newest = await readLogPage(client, filter, { from: 0, to }, { newestFirst: true }, signal);
  const searched = newest.range.from;
  if (searched === 0) return { logs: newest.logs.filter(isEqual), from: 0 };
  const time = await at();
  const from = await memory.blockTimes.findBlockAt(client, time - LOOKBACK_SECONDS, source.blockTimeMs, signal);
  const end = to === "latest" ? await findBlockAfter(source, time, memory, context) : to;
  const rest = { from, to: Math.min(end, searched - 1) };
  if (rest.from > rest.to) return { logs: newest.logs.filter(isEqual), from: searched };
  const before = await searchLogs(client, filter, rest, { newestFirst: false }, signal);
  return { logs: [...before, ...newest.logs].filter(isEqual), from };
}

function buildCompletionFilter({ destinationBridge, values }: EqualTransferGroup): LogFilter {
  return {
    address: destinationBridge,
    topics: [eventTopics.transferFromL1Completed, encodeTopic(values.recipient), encodeTopic(values.relayer)],
  };
}

function filterCompletions(logs: readonly Log[], equal: EqualTransferGroup): readonly Log[] {
  return logs.filter(createCompletionMatcher(equal));
}

/** Whether a log completes a transfer with these values. */
function createCompletionMatcher({ values }: EqualTransferGroup): (log: Log) => boolean {
  return (log) => {
    const event = decodeReceivedEvent(log);
    return event?.kind === "l1" && hasSameTransferFields(event, values);
  };
}

function findLogIndex(place: Omit<LogPosition, "blockNumber">, logs: readonly Log[]): number {
  return logs.findIndex((log) => log.logIndex === place.logIndex && log.transactionHash === place.transactionHash);
}

function createMinBlockFilter(block: number): (log: Log) => boolean {
  return ({ blockNumber }) => blockNumber >= block;
}
