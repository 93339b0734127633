import { createAbortScope } from "../resilience/fetch-json.js";
import { withTimeout } from "../resilience/with-timeout.js";
import type { ChainSource } from "./sources/chain/chain-source.js";
import type { IndexSource } from "./sources/index-source.js";
import {
  isCctpNonce,
  isUpstreamUnavailable,
  type LookupContext,
  type LookupResult,
  querySource,
  type TransferQuery,
  type TransferSource,
} from "./sources/transfer-source.js";
import type { TransferStatus } from "./status.js";

/** Looks a transfer up wherever it may be known. */
export interface TransferResolver {
  /**
   * The transfer that is meant; undefined when there is none for sure.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when nobody knows of it and one who could did not answer
   * @throws ServiceError INVALID_PARAMETER as the sources do
   */
  resolve(query: TransferQuery, context: LookupContext): Promise<LookupResult>;
}

export interface TransferResolverOptions {
  readonly chain: ChainSource;
  /** undefined: there is none. */
  readonly index: IndexSource | undefined;
  readonly explorer: TransferSource | undefined;
}

/** Part of the time that is left for others when the chains do not answer, and the most of it, in milliseconds. */
const FALLBACK_RESERVE_RATIO = 0.2;
const MAX_FALLBACK_RESERVE_MS = 1_000;
/** So long before the answer is due nobody is waited for any more, in milliseconds. */
const DEADLINE_MARGIN_MS = 50;

/**
 * The chain's word beats the index's, and that the explorer's. What the index knows to be sent is followed on its
 * destination alone. The explorer is asked beside the chains, so that no time is lost when they cannot tell, and is not
 * waited for when they can.
 */
export function createTransferResolver({ chain, index, explorer }: TransferResolverOptions): TransferResolver {
  async function resolve(query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const { signal, remainingMs } = context;
    const everything = createAbortScope(signal);
    const left = remainingMs();
    const chains = createAbortScope(
      everything.signal,
      left - Math.min(left * FALLBACK_RESERVE_RATIO, MAX_FALLBACK_RESERVE_MS),
    );
    const onChains: LookupContext = {
      ...context,
      signal: chains.signal,
      lastSearchedBlock: index?.getLastSearchedBlock(context),
    };
    let explored: TransferStatus | undefined;
    const exploring = explore(query, { ...context, signal: everything.signal }).then((found) => {
      explored = found;
      return found;
    });
    try {
      const sent = index?.findFinalizedSend(query, context);
      const found = await (sent !== undefined
        ? chain.resolveStatus(sent.transfer, sent.otherTransferIds, onChains)
        : findOnChains(query, exploring, onChains));
      return found && addPrice(found, explored);
    } catch (error) {
      if (!isUpstreamUnavailable(error)) throw error;
      // Not to the last moment: who did not answer is worth more than that nobody did.
      const found = await withTimeout(exploring, Math.max(0, remainingMs() - DEADLINE_MARGIN_MS), undefined);
      if (found !== undefined) return found;
      throw error;
    } finally {
      chains.cancel();
      everything.cancel();
    }
  }

  /** What the explorer says; undefined also where it cannot say anything. */
  async function explore(query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    try {
      return explorer && (await querySource(explorer, query, context));
    } catch {
      return undefined;
    }
  }

  /** By an id alone the chains need to search. The explorer may know the transaction, which they can then look at. */
  async function findOnChains(
    query: TransferQuery,
    exploring: Promise<LookupResult>,
    context: LookupContext,
  ): Promise<LookupResult> {
    const searched = querySource(chain, query, context);
    // Of a nonce the explorer knows one transfer where the chains may have several.
    if (query.transactionHash !== undefined || isCctpNonce(query.transferId ?? "")) return searched;
    const verified = exploring
      .then(async (hint) => {
        const hash = hint?.sent.transactionHash;
        const found =
          hash === undefined ? undefined : await chain.findByTransactionHash(hash, query.transferId, context);
        // The hash of the delivering transaction is another question, with other transfers beside.
        return found?.sent.transactionHash === hash ? found : undefined;
      })
      .catch(() => undefined);
    const hinted = verified.then((found) => found ?? searched);
    return Promise.race([hinted, searched.catch(() => hinted)]);
  }

  return { resolve };
}

/** Adds the price of the time of sending, which the explorer has kept. */
function addPrice(found: TransferStatus, explored: TransferStatus | undefined): TransferStatus {
  if (explored?.priceUsd === undefined || explored.sent.id !== found.sent.id) return found;
  return explored.sent.token === found.sent.token ? { ...found, priceUsd: explored.priceUsd } : found;
}
