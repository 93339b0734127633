import { ServiceError } from "../errors.js";
import type { Chain } from "../hop/networks.js";
import type { PriceTable, TokenPrices } from "../prices/token-prices.js";
import type { Quote } from "./math/quote.js";
import { SwapRevertError } from "./math/swap-revert-error.js";
import type { QuoteEngine, QuoteRequest, QuoteRequester, TimestampedQuote } from "./quote-engine.js";
import { type ChainState, readChainState } from "./state/chain-state.js";
import { type ChainStateSubscription, captureReadTimestamps } from "./state/chain-state-cache.js";
import type { ReadSet } from "./state/read-set.js";
import { type CachedRoute, createQuoterFromPlan, createRouteCache, type RouteCacheDeps } from "./state/route-cache.js";
import { createUsdcSwapQuoter } from "./state/usdc-swap-quoter.js";

export interface SnapshotEngineDeps extends RouteCacheDeps {
  readonly prices: TokenPrices;
  /** Told of every quote that all may share how old its facts are, in milliseconds. */
  readonly onQuoteAge?: (ageMs: number) => void;
  /** Told of every quote that was given to a caller. */
  readonly onQuoteServed?: (given: ServedQuote) => void;
}

/** A quote and what it was made from. */
export interface ServedQuote {
  readonly request: QuoteRequest;
  readonly quote: Quote;
  readonly sourceState: ChainState | undefined;
  readonly destinationState: ChainState | undefined;
}

export interface SnapshotEngine extends QuoteEngine {
  /** How many routes are kept fresh. */
  countActiveRoutes(): number;
  /** Ends what goes on in the background. */
  close(): void;
}

/** Quotes by arithmetic on facts that are read once for all callers and kept fresh while somebody asks. */
export function createSnapshotEngine(deps: SnapshotEngineDeps): SnapshotEngine {
  const { prices, clocks, onQuoteAge, onQuoteServed } = deps;
  const { now, monotonicNow } = clocks;
  const routes = createRouteCache(deps);

  function quoteOn(
    route: CachedRoute,
    request: QuoteRequest,
    by: QuoteRequester,
  ): TimestampedQuote | Promise<TimestampedQuote> {
    // All are asked before any is waited for.
    const source = route.sourceSubscription?.get();
    const destination = route.destinationSubscription?.get();
    const book = prices.peekTable(route.plan.pricedTokens);
    if (source instanceof Promise || destination instanceof Promise || book === undefined) {
      const all = [source, destination, book ?? prices.getTable(route.plan.pricedTokens)] as const;
      return Promise.all(all).then((each) => finish(route, request, by, ...each));
    }
    return finish(route, request, by, source, destination, book);
  }

  function finish(
    route: CachedRoute,
    request: QuoteRequest,
    by: QuoteRequester,
    sourceState: ChainState | undefined,
    destinationState: ChainState | undefined,
    book: PriceTable,
  ): TimestampedQuote | Promise<TimestampedQuote> {
    const quoter = route.getQuoter(sourceState, destinationState, book);
    /** @param swapped what USDC.e gave */
    function give(swapped: { readonly amountOut: bigint; readonly readAt: number } | undefined): TimestampedQuote {
      const { maxAgeMs, refreshMs } = route.refreshPolicy;
      const quote = quoter(request.amountIn, request.slippagePercent, Math.floor(now() / 1000), swapped?.amountOut);
      const time = monotonicNow();
      const readAt = Math.min(sourceState?.readAt ?? time, destinationState?.readAt ?? time, swapped?.readAt ?? time);
      const ageMs = time - readAt;
      onQuoteAge?.(ageMs);
      onQuoteServed?.({ request, quote, sourceState, destinationState });
      return { quote, freshness: { ageMs, maxAgeMs, refreshMs } };
    }
    try {
      const swapped = route.usdcSwapQuoter?.quoteAmountOut(request.amountIn, by, sourceState);
      return swapped instanceof Promise ? swapped.then(give).catch(toServiceError) : give(swapped);
    } catch (error) {
      return toServiceError(error);
    }
  }

  return {
    quote(request, by) {
      const route = routes.peek(request);
      return route === undefined
        ? routes.get(request).then((opened) => quoteOn(opened, request, by))
        : quoteOn(route, request, by);
    },
    async quoteWithCustomEndpoints(request, access, by) {
      const { signal } = by;
      const { source, destination, amountIn, slippagePercent } = request;
      const isOwn = (chain: Chain): boolean => access.hasCustomEndpoint(chain.slug);
      // Of chains that the caller did not name it is what everybody shares.
      const route = isOwn(source) && isOwn(destination) ? undefined : await routes.get(request);
      const plan = route?.plan ?? (await routes.createPlan(request));
      const read = (chain: Chain, needs: ReadSet | undefined, shared: ChainStateSubscription | undefined) =>
        isOwn(chain)
          ? needs && readChainState(access.getClient(chain.slug), chain, [needs], captureReadTimestamps(clocks), signal)
          : shared?.get();
      const { usdcSwapPool } = plan;
      const client = access.getClient(source.slug);
      const ownSwaps =
        usdcSwapPool &&
        isOwn(source) &&
        createUsdcSwapQuoter({ client, pool: usdcSwapPool, maxAgeMs: 0, now: monotonicNow, signal });
      try {
        const [from, to, book, ownSwap] = await Promise.all([
          read(source, plan.sourceReadSet, route?.sourceSubscription),
          read(destination, plan.destinationReadSet, route?.destinationSubscription),
          prices.getTable(plan.pricedTokens),
          ownSwaps ? ownSwaps.quoteAmountOut(amountIn, by) : undefined,
        ]);
        const swapped =
          ownSwap ?? (isOwn(source) ? undefined : await route?.usdcSwapQuoter?.quoteAmountOut(amountIn, by, from));
        return createQuoterFromPlan(plan, from, to, book)(
          amountIn,
          slippagePercent,
          Math.floor(now() / 1000),
          swapped?.amountOut,
        );
      } catch (error) {
        return toServiceError(error);
      }
    },
    countActiveRoutes: () => routes.countActive(),
    close: () => routes.close(),
  };
}

function toServiceError(error: unknown): never {
  if (!(error instanceof SwapRevertError)) throw error;
  const message = "the pools of this route cannot swap this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
}
