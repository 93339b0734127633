import { ServiceError } from "../errors.js";
import type { Chain } from "../hop/networks.js";
import type { PriceTable, TokenPrices } from "../prices/token-prices.js";
import { catchMaybeAsync, isPromise, type MaybePromise, mapMaybeAsync } from "../resilience/maybe-async.js";
import type { Quote } from "./math/quote.js";
import { SwapRevertError } from "./math/swap-revert-error.js";
import type { QuoteEngine, QuoteRequester, TimestampedQuote } from "./quote-engine.js";
import type { ChainState } from "./state/chain-state.js";
import { type ChainStateSubscription, captureReadTimestamps } from "./state/chain-state-cache.js";
import type { QuoteRequest } from "./state/quote-request.js";
import type { ReadSet } from "./state/read-set.js";
import { readChainState } from "./state/reading/read-chain-state.js";
import { type CachedRoute, createQuoterFromPlan, createRouteCache, type RouteCacheDeps } from "./state/route-cache.js";
import { createUsdcSwapQuoter, type TimestampedAmount } from "./state/usdc-swap-quoter.js";

export interface SnapshotEngineDeps extends RouteCacheDeps {
  readonly prices: TokenPrices;
  /** Observes the age of the inputs of each shared quote, in milliseconds. */
  readonly onQuoteAge?: (ageMs: number) => void;
  /** Observes each shared quote. */
  readonly onQuoteServed?: (servedQuote: ServedQuote) => void;
}

/** A quote with its request and the chain state it was computed from. */
export interface ServedQuote {
  readonly request: QuoteRequest;
  readonly quote: Quote;
  readonly sourceState: ChainState | undefined;
  readonly destinationState: ChainState | undefined;
}

export interface SnapshotEngine extends QuoteEngine {
  /** Returns the number of routes whose chain state is refreshed. */
  countActiveRoutes(): number;
  /** Stops all background work. */
  close(): void;
}

/** Creates an engine that computes quotes from chain state that all callers share and that is refreshed while in use. */
export function createSnapshotEngine(deps: SnapshotEngineDeps): SnapshotEngine {
  const { prices, clocks, onQuoteAge, onQuoteServed } = deps;
  const { now, monotonicNow } = clocks;
  const routes = createRouteCache(deps);

  function quoteRoute(
    route: CachedRoute,
    request: QuoteRequest,
    requester: QuoteRequester,
  ): MaybePromise<TimestampedQuote> {
    // Starts all reads before it waits for the first.
    const sourceState = route.sourceSubscription?.get();
    const destinationState = route.destinationSubscription?.get();
    const priceTable = prices.peekTable(route.plan.pricedTokens);
    if (isPromise(sourceState) || isPromise(destinationState) || priceTable === undefined) {
      const inputs = [sourceState, destinationState, priceTable ?? prices.getTable(route.plan.pricedTokens)] as const;
      return Promise.all(inputs).then((resolved) => completeQuote(route, request, requester, ...resolved));
    }
    return completeQuote(route, request, requester, sourceState, destinationState, priceTable);
  }

  function completeQuote(
    route: CachedRoute,
    request: QuoteRequest,
    requester: QuoteRequester,
    sourceState: ChainState | undefined,
    destinationState: ChainState | undefined,
    priceTable: PriceTable,
  ): MaybePromise<TimestampedQuote> {
    const quoter = route.getQuoter(sourceState, destinationState, priceTable);
    /** @param swap output of the swap of USDC.e before the transfer */
    function buildTimestampedQuote(swap: TimestampedAmount | undefined): TimestampedQuote {
      const { maxAgeMs, refreshMs } = route.refreshPolicy;
      const quote = quoter(request.amountIn, request.slippagePercent, Math.floor(now() / 1000), swap?.amountOut);
      const time = monotonicNow();
      const readAt = Math.min(sourceState?.readAt ?? time, destinationState?.readAt ?? time, swap?.readAt ?? time);
      const ageMs = time - readAt;
      onQuoteAge?.(ageMs);
      onQuoteServed?.({ request, quote, sourceState, destinationState });
      return { quote, freshness: { ageMs, maxAgeMs, refreshMs } };
    }
    try {
      const swap = route.usdcSwapQuoter?.quoteAmountOut(request.amountIn, requester, sourceState);
      return catchMaybeAsync(mapMaybeAsync(swap, buildTimestampedQuote), throwServiceError);
    } catch (error) {
      return throwServiceError(error);
    }
  }

  return {
    quote(request, requester) {
      const route = routes.peek(request);
      return route === undefined
        ? routes.get(request).then((loadedRoute) => quoteRoute(loadedRoute, request, requester))
        : quoteRoute(route, request, requester);
    },
    async quoteWithCustomEndpoints(request, access, requester) {
      const { signal } = requester;
      const { source, destination, amountIn, slippagePercent } = request;
      const isCustom = (chain: Chain): boolean => access.hasCustomEndpoint(chain.slug);
      // Chains without a custom endpoint use the shared state.
      const route = isCustom(source) && isCustom(destination) ? undefined : await routes.get(request);
      const plan = route?.plan ?? (await routes.createPlan(request));
      const readState = (chain: Chain, readSet: ReadSet | undefined, shared: ChainStateSubscription | undefined) =>
        isCustom(chain)
          ? readSet &&
            readChainState(access.getClient(chain.slug), chain, [readSet], captureReadTimestamps(clocks), signal)
          : shared?.get();
      const { usdcSwapPool } = plan;
      const client = access.getClient(source.slug);
      const customSwapQuoter =
        usdcSwapPool &&
        isCustom(source) &&
        createUsdcSwapQuoter({ client, pool: usdcSwapPool, maxAgeMs: 0, now: monotonicNow, signal });
      try {
        const [sourceState, destinationState, priceTable, customSwap] = await Promise.all([
          readState(source, plan.sourceReadSet, route?.sourceSubscription),
          readState(destination, plan.destinationReadSet, route?.destinationSubscription),
          prices.getTable(plan.pricedTokens),
          customSwapQuoter ? customSwapQuoter.quoteAmountOut(amountIn, requester) : undefined,
        ]);
        const sharedSwapQuoter = isCustom(source) ? undefined : route?.usdcSwapQuoter;
        const swap = customSwap ?? (await sharedSwapQuoter?.quoteAmountOut(amountIn, requester, sourceState));
        const quoter = createQuoterFromPlan(plan, sourceState, destinationState, priceTable);
        return quoter(amountIn, slippagePercent, Math.floor(now() / 1000), swap?.amountOut);
      } catch (error) {
        return throwServiceError(error);
      }
    },
    countActiveRoutes: () => routes.countActive(),
    close: () => routes.close(),
  };
}

/** Reports a swap that reverts as an invalid amount; rethrows any other error. */
function throwServiceError(error: unknown): never {
  if (!(error instanceof SwapRevertError)) throw error;
  const message = "the pools of this route cannot swap this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
}
