import { type Log, type LogFilter, type Receipt, readLogPage, readReceipt } from "../../../chain/read/chain-reads.js";
import { searchLogs } from "../../../chain/read/log-search.js";
import type { ContractRegistry, SendingContract } from "../../../hop/contract-registry.js";
import type { Chain } from "../../../hop/networks.js";
import { encodeTopic, eventTopics } from "../../../hop/transfer-events.js";
import { raceFirstDefined } from "../../../resilience/first-defined.js";
import { ambiguousNonceError, type LastSearchedBlock, type LookupContext } from "../transfer-source.js";
import { findBlockAfter, type SearchCaches } from "./search-caches.js";

/** The log that sent a transfer, on its chain. */
export interface LocatedSend {
  readonly chain: Chain;
  readonly log: Log;
}

/** A transaction that has been found. */
export interface LocatedTransaction {
  readonly chain: Chain;
  readonly receipt: Receipt;
}

/** Where to search first, or not at all. */
export interface SearchHints {
  /** Asks when the transfer arrived, Unix seconds: it was sent before, so that the search begins there and goes back. */
  readonly readDeliveryTime?: () => Promise<number>;
  readonly lastSearchedBlock?: LastSearchedBlock | undefined;
}

/**
 * A transaction, on whichever chain it is.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when none has it and not all chains have answered
 */
export async function findTransaction(hash: string, context: LookupContext): Promise<LocatedTransaction | undefined> {
  const { network, chains, signal } = context;
  const look = async (chain: Chain, during: AbortSignal): Promise<LocatedTransaction | undefined> => {
    const receipt = await readReceipt(chains.getClient(chain.slug), hash, during);
    return receipt && { chain, receipt };
  };
  return raceFirstDefined([...network.chains.values()], look, signal);
}

/**
 * The log that sent the transfer with a transfer ID from one of these L2s.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when none has it and not all of their logs could be searched
 */
export async function findSendByTransferId(
  id: string,
  sources: readonly Chain[],
  book: ContractRegistry,
  memory: SearchCaches,
  context: LookupContext,
  hints: SearchHints = {},
): Promise<LocatedSend | undefined> {
  const look = async (chain: Chain, signal: AbortSignal): Promise<LocatedSend | undefined> => {
    const address = listSenderAddresses(book, chain, "l2");
    const filter = { address, topics: [eventTopics.transferSent, id] };
    const [log] = await searchBackwards(chain, filter, memory, { ...context, signal }, hints);
    return log && { chain, log };
  };
  return raceFirstDefined(sources, look, context.signal);
}

/**
 * The log that sent the CCTP transfer with a nonce from one of these chains.
 * @throws ServiceError INVALID_PARAMETER when several chains have one: a nonce is unique per source chain only
 * @throws ServiceError UPSTREAM_UNAVAILABLE when not all of their logs could be searched
 */
export async function findSendByNonce(
  nonce: bigint,
  sources: readonly Chain[],
  book: ContractRegistry,
  memory: SearchCaches,
  context: LookupContext,
  hints: SearchHints = {},
): Promise<LocatedSend | undefined> {
  const perChain = await Promise.all(
    sources.map(async (chain) => {
      const address = listSenderAddresses(book, chain, "cctp");
      const filter = { address, topics: [eventTopics.cctpTransferSent, encodeTopic(nonce)] };
      const logs = await searchBackwards(chain, filter, memory, context, hints);
      return logs.map((log) => ({ chain, log }));
    }),
  );
  const [only, ...more] = perChain.flat();
  if (more.length > 0) throw ambiguousNonceError();
  return only;
}

/** Searches a chain back from its newest block until something is found; what was sent before a time first. */
async function searchBackwards(
  chain: Chain,
  filter: LogFilter,
  memory: SearchCaches,
  context: LookupContext,
  { readDeliveryTime, lastSearchedBlock = () => -1 }: SearchHints,
): Promise<readonly Log[]> {
  if (filter.address.length === 0) return [];
  const { chains, signal } = context;
  const client = chains.getClient(chain.slug);
  const from = lastSearchedBlock(chain) + 1;
  const { logs, range } = await readLogPage(client, filter, { from, to: "latest" }, { newestFirst: true }, signal);
  if (logs.length > 0 || range.from <= from) return logs;
  const last = range.from - 1;
  const middle =
    readDeliveryTime === undefined ? last : await findBlockAfter(chain, await readDeliveryTime(), memory, context);
  // What the time does not say for sure is not left out, but comes last.
  for (const part of [
    { from, to: Math.min(middle, last) },
    { from: middle + 1, to: last },
  ]) {
    const isComplete = (found: readonly Log[]): boolean => found.length > 0;
    const found = await searchLogs(client, filter, part, { newestFirst: true, isComplete }, signal);
    if (found.length > 0) return found;
  }
  return [];
}

function listSenderAddresses(book: ContractRegistry, chain: Chain, kind: SendingContract["kind"]): string[] {
  return [...book.getSendingContracts(chain)].filter(([, sender]) => sender.kind === kind).map(([address]) => address);
}
