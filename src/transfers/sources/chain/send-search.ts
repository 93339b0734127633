import {
  type Log,
  type LogFilter,
  type LogPage,
  type Receipt,
  readLogPage,
  readReceipt,
} from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import type { SendingContract } from "../../../hop/contract-registry.js";
import type { Chain } from "../../../hop/networks.js";
import { EVENT_TOPICS, encodeTopic } from "../../../hop/transfer-events.js";
import { createAbortScope } from "../../../resilience/abort-scope.js";
import { ambiguousNonceError, type LastSearchedBlock, type LookupContext } from "../transfer-source.js";
import { estimateBlockAfter, type SearchContext } from "./search-context.js";
import { getLastStableBlock } from "./searched-blocks.js";

/** The log that sent a transfer, with its chain. */
export interface LocatedSend {
  readonly chain: Chain;
  readonly log: Log;
  /** Receipt of the sending transaction, where it has been read already. */
  readonly receipt?: Receipt | undefined;
}

/** Hints that shorten a search for a send. */
interface SearchHints {
  /** Reads when the transfer was delivered, in Unix seconds: the search begins there and goes backwards. */
  readonly readDeliveryTime?: () => Promise<number>;
  /** Blocks up to this one are skipped. */
  readonly lastSearchedBlock?: LastSearchedBlock | undefined;
}

/**
 * Finds a transaction on any chain of the network: the chain and the receipt; undefined when no chain has it.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when no chain has it and at least one did not answer
 */
export async function findTransaction(hash: string, context: LookupContext) {
  const { network, chains, signal } = context;
  const findOnChain = async (chain: Chain, raceSignal: AbortSignal) => {
    const receipt = await readReceipt(chains.getClient(chain.slug), hash, raceSignal);
    return receipt && { chain, receipt };
  };
  return raceFirstDefined([...network.chains.values()], findOnChain, signal);
}

/**
 * Finds the log that sent the transfer with a transfer ID from one of these L2s.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when it was not found and the logs of at least one chain could not be searched
 */
export async function findSendByTransferId(
  id: string,
  sources: readonly Chain[],
  search: SearchContext,
  hints: SearchHints = {},
): Promise<LocatedSend | undefined> {
  const findOnChain = async (chain: Chain, signal: AbortSignal): Promise<LocatedSend | undefined> => {
    const filter = { address: listSenders(search, chain, "l2"), topics: [EVENT_TOPICS.transferSent, id] };
    const [log] = await searchBackwards(chain, { filter, id }, { ...search, signal }, hints);
    return log && { chain, log };
  };
  return raceFirstDefined(sources, findOnChain, search.signal);
}

/**
 * Finds the log that sent the CCTP transfer with a nonce from one of these chains.
 * @throws ServiceError INVALID_PARAMETER when several chains have one: a nonce is unique per source chain only
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the logs of at least one chain could not be searched
 */
export async function findSendByNonce(
  nonce: bigint,
  sources: readonly Chain[],
  search: SearchContext,
  hints: SearchHints = {},
): Promise<LocatedSend | undefined> {
  const sendsByChain = await Promise.all(
    sources.map(async (chain) => {
      const topics = [EVENT_TOPICS.cctpTransferSent, encodeTopic(nonce)];
      const filter = { address: listSenders(search, chain, "cctp"), topics };
      const logs = await searchBackwards(chain, { filter, id: String(nonce) }, search, hints);
      return logs.map((log) => ({ chain, log }));
    }),
  );
  const [send, ...others] = sendsByChain.flat();
  if (others.length > 0) throw ambiguousNonceError();
  return send;
}

/**
 * Searches a chain backwards from its head until something is found; if the delivery time is known, from there first.
 * Leaves out the blocks that earlier lookups have searched without a result.
 */
async function searchBackwards(
  chain: Chain,
  { filter, id }: { readonly filter: LogFilter; readonly id: string },
  search: SearchContext,
  { readDeliveryTime, lastSearchedBlock = () => -1 }: SearchHints,
): Promise<readonly Log[]> {
  if (filter.address.length === 0) return [];
  const { network, chains, isPrivate, signal, searchedBlocks } = search;
  const client = chains.getClient(chain.slug);
  const key = isPrivate ? undefined : `${network.slug} ${chain.slug} ${id}`;
  const first = lastSearchedBlock(chain) + 1;
  const from = searchedBlocks.listUnsearched(key, { from: first, to: Number.POSITIVE_INFINITY }).at(-1)?.from ?? first;
  const { logs, range } = await readLogPage(
    client,
    { filter, range: { from, to: "latest" }, newestFirst: true },
    signal,
  );
  if (logs.length > 0 || range.from <= from) return logs;
  const lastStable = getLastStableBlock(range.to, chain.blockTimeMs);
  const recordPage = (page: LogPage): void => {
    if (page.logs.length > 0) return;
    searchedBlocks.record(key, { from: page.range.from, to: Math.min(page.range.to, lastStable) });
  };
  recordPage({ logs, range });
  const last = range.from - 1;
  const middle =
    readDeliveryTime === undefined ? last : await estimateBlockAfter(chain, await readDeliveryTime(), search);
  // The block times are estimates, so the part after the delivery is searched last instead of being left out.
  const parts = [
    { from, to: Math.min(middle, last) },
    { from: middle + 1, to: last },
  ];
  for (const part of parts.flatMap((each) => searchedBlocks.listUnsearched(key, each))) {
    const isComplete = (matches: readonly Log[]): boolean => matches.length > 0;
    const partSearch = { filter, range: part, newestFirst: true, isComplete, onPage: recordPage };
    const matches = await searchLogs(client, partSearch, signal);
    if (matches.length > 0) return matches;
  }
  return [];
}

function listSenders({ contracts }: SearchContext, chain: Chain, kind: SendingContract["kind"]): string[] {
  return [...contracts.getSendingContracts(chain)]
    .filter(([, sender]) => sender.kind === kind)
    .map(([address]) => address);
}

/** What a source answers that has nothing. One for all, because a new one would record a stack. */
const NOT_FOUND = new Error("not found");

/**
 * Looks in all sources at the same time, returns the first defined result and aborts the other lookups. Returns
 * undefined only when every source has answered with undefined.
 * @throws the first failure, when no source has a result and at least one failed
 */
export async function raceFirstDefined<Source, T>(
  sources: readonly Source[],
  look: (source: Source, signal: AbortSignal) => Promise<T | undefined>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const scope = createAbortScope(signal);
  let failure: { readonly error: unknown } | undefined;
  const findIn = async (source: Source): Promise<T> => {
    try {
      const result = await look(source, scope.signal);
      if (result !== undefined) return result;
    } catch (error) {
      failure ??= { error };
    }
    throw NOT_FOUND;
  };
  try {
    return await Promise.any(sources.map(findIn));
  } catch {
    if (failure !== undefined) throw failure.error;
    return undefined;
  } finally {
    scope.cancel();
  }
}
