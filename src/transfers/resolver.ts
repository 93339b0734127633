import { createAbortScope, withTimeoutOrFallback } from "../resilience/abort-scope.js";
import type { ChainSource } from "./sources/chain/chain-source.js";
import type { IndexLookup } from "./sources/index-lookup.js";
import {
  isSourceUnavailable,
  type LookupContext,
  type LookupResult,
  type TransferQuery,
  type TransferSource,
} from "./sources/transfer-source.js";
import { isCctpNonce, type TransferStatus } from "./status.js";

/** Share of the remaining time that is kept for the explorer when the chains do not answer, and its upper limit. */
const FALLBACK_RESERVE_RATIO = 0.2;
const MAX_FALLBACK_RESERVE_MS = 1_000;
/** Waiting for the explorer ends this long before the deadline. */
const DEADLINE_MARGIN_MS = 50;

/**
 * Asks the index first, then the chains, which take precedence over the explorer. When the index already has the final send,
 * only the destination chain is read. The explorer is queried in parallel with the chains, so that no time is lost when they
 * fail; when they answer, the resolver does not wait for it.
 */
export class SourcesResolver implements TransferSource {
  readonly #chain: Pick<ChainSource, "resolve" | "resolveStatus">;
  readonly #index: Pick<IndexLookup, "ask"> | undefined;
  readonly #explorer: TransferSource | undefined;

  /**
   * @param index undefined when there is no index
   * @param explorer undefined when the explorer is disabled
   */
  constructor(
    chain: Pick<ChainSource, "resolve" | "resolveStatus">,
    index: Pick<IndexLookup, "ask"> | undefined,
    explorer: TransferSource | undefined,
  ) {
    this.#chain = chain;
    this.#index = index;
    this.#explorer = explorer;
  }

  async resolve(query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const indexed = this.#index && (await this.#index.ask(query, context));
    if (indexed?.status !== undefined) return indexed.status;
    const { signal, remainingMs } = context;
    const lookupScope = createAbortScope(signal);
    const availableMs = remainingMs();
    const chainScope = createAbortScope(
      lookupScope.signal,
      availableMs - Math.min(availableMs * FALLBACK_RESERVE_RATIO, MAX_FALLBACK_RESERVE_MS),
    );
    const chainContext: LookupContext = {
      ...context,
      signal: chainScope.signal,
      elapsedMs: () => availableMs - remainingMs(),
      lastSearchedBlock: indexed?.lastSearchedBlock,
    };
    let explorerStatus: TransferStatus | undefined;
    const explorerLookup = this.#queryExplorer(query, { ...context, signal: lookupScope.signal }).then((status) => {
      explorerStatus = status;
      return status;
    });
    try {
      const send = indexed?.send;
      const status = await (send !== undefined
        ? this.#chain.resolveStatus(send.transfer, send.otherTransferIds, chainContext)
        : this.#findOnChains(query, explorerLookup, chainContext));
      return status && addPrice(status, explorerStatus);
    } catch (error) {
      if (!isSourceUnavailable(error)) throw error;
      // The margin leaves time to report which chain failed, which is more useful than a bare timeout.
      const status = await withTimeoutOrFallback(
        explorerLookup,
        Math.max(0, remainingMs() - DEADLINE_MARGIN_MS),
        undefined,
      );
      if (status !== undefined) return status;
      throw error;
    } finally {
      chainScope.cancel();
      lookupScope.cancel();
    }
  }

  /** Queries the explorer; returns undefined also when it fails. */
  async #queryExplorer(query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    try {
      return await this.#explorer?.resolve(query, context);
    } catch {
      return undefined;
    }
  }

  /**
   * Queries the chains. A lookup by ID alone needs a log search; if the explorer names the transaction meanwhile, that
   * transaction is read directly, and the first of the two answers is used.
   */
  async #findOnChains(
    query: TransferQuery,
    explorerLookup: Promise<LookupResult>,
    context: LookupContext,
  ): Promise<LookupResult> {
    const search = this.#chain.resolve(query, context);
    // For a nonce the explorer returns one transfer where the chains may have several.
    if (query.transactionHash !== undefined || isCctpNonce(query.transferId ?? "")) return search;
    const verifiedHint = explorerLookup
      .then(async (hint) => {
        const hash = hint?.sent.transactionHash;
        if (hash === undefined) return undefined;
        const status = await this.#chain.resolve({ ...query, transactionHash: hash }, context);
        // If the hash is that of the delivering transaction, the answer lists other sibling transfers.
        return status?.sent.transactionHash === hash ? status : undefined;
      })
      .catch(() => undefined);
    const hintOrSearch = verifiedHint.then((status) => status ?? search);
    return Promise.race([hintOrSearch, search.catch(() => hintOrSearch)]);
  }
}

/** Adds the USD price at the time of sending, which only the explorer records. */
function addPrice(status: TransferStatus, explorerStatus: TransferStatus | undefined): TransferStatus {
  if (explorerStatus?.priceUsd === undefined || explorerStatus.sent.id !== status.sent.id) return status;
  return explorerStatus.sent.token === status.sent.token ? { ...status, priceUsd: explorerStatus.priceUsd } : status;
}
