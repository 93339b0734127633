import { type Log, type LogFilter, type Receipt, readLogPage, readReceipt } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import type { BridgeBook, Sender } from "../../../hop/contract-registry.js";
import type { Chain } from "../../../hop/networks.js";
import { topicOf, topics } from "../../../hop/transfer-events.js";
import { firstFound } from "../../../resilience/first-defined.js";
import { ambiguousNonce, type LookUpContext, type SearchedTo } from "../transfer-source.js";
import { blockAfter, type SearchMemory } from "./search-caches.js";

/** The log that sent a transfer, on its chain. */
export interface Origin {
  readonly chain: Chain;
  readonly log: Log;
}

/** A transaction that has been found. */
export interface Transaction {
  readonly chain: Chain;
  readonly receipt: Receipt;
}

/** Where to search first, or not at all. */
export interface SearchHints {
  /** Asks when the transfer arrived, Unix seconds: it was sent before, so that the search begins there and goes back. */
  readonly arrivedAt?: () => Promise<number>;
  readonly searchedTo?: SearchedTo | undefined;
}

/**
 * A transaction, on whichever chain it is.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when none has it and not all chains have answered
 */
export async function findTransaction(hash: string, context: LookUpContext): Promise<Transaction | undefined> {
  const { network, chains, signal } = context;
  const look = async (chain: Chain, during: AbortSignal): Promise<Transaction | undefined> => {
    const receipt = await readReceipt(chains.client(chain.slug), hash, during);
    return receipt && { chain, receipt };
  };
  return firstFound([...network.chains.values()], look, signal);
}

/**
 * The log that sent the transfer with a transfer ID from one of these L2s.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when none has it and not all of their logs could be searched
 */
export async function findById(
  id: string,
  sources: readonly Chain[],
  book: BridgeBook,
  memory: SearchMemory,
  context: LookUpContext,
  hints: SearchHints = {},
): Promise<Origin | undefined> {
  const look = async (chain: Chain, signal: AbortSignal): Promise<Origin | undefined> => {
    const address = sendersOf(book, chain, "l2");
    const filter = { address, topics: [topics.transferSent, id] };
    const [log] = await searchBack(chain, filter, memory, { ...context, signal }, hints);
    return log && { chain, log };
  };
  return firstFound(sources, look, context.signal);
}

/**
 * The log that sent the CCTP transfer with a nonce from one of these chains.
 * @throws ServiceError INVALID_PARAMETER when several chains have one: a nonce is unique per source chain only
 * @throws ServiceError UPSTREAM_UNAVAILABLE when not all of their logs could be searched
 */
export async function findByNonce(
  nonce: bigint,
  sources: readonly Chain[],
  book: BridgeBook,
  memory: SearchMemory,
  context: LookUpContext,
  hints: SearchHints = {},
): Promise<Origin | undefined> {
  const perChain = await Promise.all(
    sources.map(async (chain) => {
      const address = sendersOf(book, chain, "cctp");
      const filter = { address, topics: [topics.cctpTransferSent, topicOf(nonce)] };
      const logs = await searchBack(chain, filter, memory, context, hints);
      return logs.map((log) => ({ chain, log }));
    }),
  );
  const [only, ...more] = perChain.flat();
  if (more.length > 0) throw ambiguousNonce();
  return only;
}

/** Searches a chain back from its newest block until something is found; what was sent before a time first. */
async function searchBack(
  chain: Chain,
  filter: LogFilter,
  memory: SearchMemory,
  context: LookUpContext,
  { arrivedAt, searchedTo = () => -1 }: SearchHints,
): Promise<readonly Log[]> {
  if (filter.address.length === 0) return [];
  const { chains, signal } = context;
  const client = chains.client(chain.slug);
  const from = searchedTo(chain) + 1;
  const { logs, range } = await readLogPage(client, filter, { from, to: "latest" }, { newestFirst: true }, signal);
  if (logs.length > 0 || range.from <= from) return logs;
  const last = range.from - 1;
  const middle = arrivedAt === undefined ? last : await blockAfter(chain, await arrivedAt(), memory, context);
  // What the time does not say for sure is not left out, but comes last.
  for (const part of [
    { from, to: Math.min(middle, last) },
    { from: middle + 1, to: last },
  ]) {
    const until = (found: readonly Log[]): boolean => found.length > 0;
    const found = await searchLogs(client, filter, part, { newestFirst: true, until }, signal);
    if (found.length > 0) return found;
  }
  return [];
}

function sendersOf(book: BridgeBook, chain: Chain, kind: Sender["kind"]): string[] {
  return [...book.senders(chain)].filter(([, sender]) => sender.kind === kind).map(([address]) => address);
}
