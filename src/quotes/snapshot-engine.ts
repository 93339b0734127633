import { ServiceError } from "../errors.js";
import type { Chain } from "../hop/networks.js";
import type { UsdcSwapPool } from "../hop/usdc-swap-pools.js";
import type { PriceTable, TokenPrices } from "../prices/token-prices.js";
import { catchMaybeAsync, isPromise, type MaybePromise, mapMaybeAsync } from "../resilience/maybe-async.js";
import type { ExplainedQuote, RouteQuoter } from "./math/quote.js";
import { SwapRevertError } from "./math/swap-revert-error.js";
import { createQuotePreparer } from "./prepare-quotes.js";
import { createQuoteDetails, type DeliveryTime, NO_DELIVERY_TIME, type QuoteDetailsInputs } from "./quote-details.js";
import type { DetailedQuote, QuoteEngine, QuoteRequester, TimestampedQuote } from "./quote-engine.js";
import { assertStateYoung } from "./refuse-stalled.js";
import { type ChainState, captureReadTimestamps } from "./state/chain-state.js";
import type { ChainStateSubscription } from "./state/chain-state-cache.js";
import { computeRefreshPolicy } from "./state/chain-state-entry.js";
import type { QuoteRequest } from "./state/quote-request.js";
import { addTickWindow, type ReadSet } from "./state/read-set.js";
import { readChainState } from "./state/reading/read-chain-state.js";
import {
  type CachedRoute,
  createQuoterFromPlan,
  createRouteCache,
  type RouteCacheDeps,
  type RouteQuoterFactory,
} from "./state/route-cache.js";
import { createUniswapTickWindow } from "./state/uniswap-tick-window.js";
import { createUsdcSwapQuoter, type TimestampedAmount } from "./state/usdc-swap-quoter.js";

export interface SnapshotEngineDeps extends RouteCacheDeps {
  readonly prices: TokenPrices;
  /** Observes the age of the inputs of each shared quote, in milliseconds. */
  readonly onQuoteAge?: (ageMs: number) => void;
  /** Observes each shared quote. */
  readonly onQuoteServed?: QuoteObserver;
  /** Returns how long transfers on the route of a request took; undefined: nothing is known. */
  readonly getDeliveryTime?: (request: QuoteRequest) => DeliveryTime;
}

/** Called with the request of each quote. Returns a function that takes the quote with its inputs, if it wants them. */
export type QuoteObserver = (request: QuoteRequest) => ((servedQuote: ServedQuote) => void) | undefined;

/** A quote with what it was computed from. */
export interface ServedQuote {
  readonly amountIn: bigint;
  readonly quote: DetailedQuote;
  readonly sourceState: ChainState | undefined;
  readonly destinationState: ChainState | undefined;
  readonly priceTable: PriceTable;
  /** Whether a swap was read apart from the chain state, and so of another block. */
  readonly hasSeparateSwap: boolean;
}

export interface SnapshotEngine extends QuoteEngine {
  /** Returns the number of routes whose chain state is refreshed. */
  countActiveRoutes(): number;
  /** Stops all background work. */
  close(): void;
}

/** Creates an engine that computes quotes from chain state that all callers share and that is refreshed while in use. */
export function createSnapshotEngine(deps: SnapshotEngineDeps): SnapshotEngine {
  const { prices, clocks, blockAges, onQuoteAge, onQuoteServed, getDeliveryTime = () => NO_DELIVERY_TIME } = deps;
  const { now, monotonicNow } = clocks;
  const routes = createRouteCache(deps);

  /** @param time on the monotonic clock, not in the future */
  function toUnixSeconds(time: number): number {
    return Math.floor((now() - (monotonicNow() - time)) / 1000);
  }

  function quoteRoute(
    route: CachedRoute,
    request: QuoteRequest,
    requester: QuoteRequester,
  ): MaybePromise<TimestampedQuote> {
    const { sourceSubscription, destinationSubscription, getQuoter } = request.isFull ? route.getFullInputs() : route;
    // Starts all reads before it waits for the first.
    const sourceState = getSourceState(sourceSubscription, request, route.plan.usdcSwapPool);
    const destinationState = destinationSubscription?.get();
    const priceTable = prices.peekTable(route.plan.pricedTokens);
    if (isPromise(sourceState) || isPromise(destinationState) || priceTable === undefined) {
      const inputs = [sourceState, destinationState, priceTable ?? prices.getTable(route.plan.pricedTokens)] as const;
      return Promise.all(inputs).then((resolved) => completeQuote(route, getQuoter, request, requester, ...resolved));
    }
    return completeQuote(route, getQuoter, request, requester, sourceState, destinationState, priceTable);
  }

  function completeQuote(
    route: CachedRoute,
    getQuoter: RouteQuoterFactory,
    request: QuoteRequest,
    requester: QuoteRequester,
    sourceState: ChainState | undefined,
    destinationState: ChainState | undefined,
    priceTable: PriceTable,
  ): MaybePromise<TimestampedQuote> {
    const quoter = getQuoter(sourceState, destinationState, priceTable);
    const { receiveAmount } = request;
    const amountIn = receiveAmount === undefined ? request.amountIn : findAmountIn(quoter, receiveAmount);
    /** @param swap output of the swap of USDC.e before the transfer */
    function buildTimestampedQuote(swap: TimestampedAmount | undefined): TimestampedQuote {
      const { maxAgeMs, refreshMs } = route.refreshPolicy;
      const swappedAmount = swap?.amountOut;
      const { slippagePercent } = request;
      const nowSeconds = Math.floor(now() / 1000);
      const explained = request.isFull
        ? quoter.explain(amountIn, slippagePercent, nowSeconds, swappedAmount)
        : undefined;
      const basicQuote = explained?.quote ?? quoter.quote(amountIn, slippagePercent, nowSeconds, swappedAmount);
      const time = monotonicNow();
      const readAt = Math.min(sourceState?.readAt ?? time, destinationState?.readAt ?? time, swap?.readAt ?? time);
      const ageMs = time - readAt;
      onQuoteAge?.(ageMs);
      const quote = explained
        ? addDetails(explained, {
            plan: route.plan,
            quoter,
            priceTable,
            sourceState,
            destinationState,
            maxAgeMs,
            deliveryTime: getDeliveryTime(request),
            swapReadAtSeconds: toUnixSeconds(swap?.readAt ?? time),
          })
        : basicQuote;
      const takeServedQuote = onQuoteServed?.(request);
      if (takeServedQuote !== undefined) {
        const hasSeparateSwap = swap !== undefined && swap.readAt !== sourceState?.readAt;
        takeServedQuote({ amountIn, quote, sourceState, destinationState, priceTable, hasSeparateSwap });
      }
      return { quote, freshness: { ageMs, maxAgeMs, refreshMs } };
    }
    try {
      const swap = route.usdcSwapQuoter?.quoteAmountOut(amountIn, requester, sourceState);
      return catchMaybeAsync(mapMaybeAsync(swap, buildTimestampedQuote), throwServiceError);
    } catch (error) {
      return throwServiceError(error);
    }
  }

  return {
    prepareQuotes: createQuotePreparer({ routes, prices, completeQuote }),
    quote(request, requester) {
      const route = routes.peek(request);
      return route === undefined
        ? routes.get(request).then((loadedRoute) => quoteRoute(loadedRoute, request, requester))
        : quoteRoute(route, request, requester);
    },
    async quoteWithCustomEndpoints(request, access, requester) {
      const { signal } = requester;
      const { source, destination, slippagePercent, receiveAmount, isFull } = request;
      const isCustom = (chain: Chain): boolean => access.hasCustomEndpoint(chain.slug);
      // Chains without a custom endpoint use the shared state.
      const route = isCustom(source) && isCustom(destination) ? undefined : await routes.get(request);
      const plan = route?.plan ?? (await routes.createPlan(request));
      const { sourceReadSet, destinationReadSet } = isFull ? plan.full : plan;
      const subscriptions = isFull ? route?.getFullInputs() : route;
      const readState = (chain: Chain, readSet: ReadSet | undefined, getShared: () => SubscribedState) =>
        isCustom(chain)
          ? readSet &&
            readChainState(access.getClient(chain.slug), chain, [readSet], captureReadTimestamps(clocks), signal)
          : getShared();
      const { usdcSwapPool } = plan;
      const client = access.getClient(source.slug);
      const customSwapQuoter =
        usdcSwapPool &&
        isCustom(source) &&
        createUsdcSwapQuoter({ client, pool: usdcSwapPool, maxAgeMs: 0, now: monotonicNow, signal });
      // Only the arithmetic in this process can be inverted, and the first read of a window tells where its price is.
      const window = isCustom(source) && (isFull || receiveAmount !== undefined) && usdcSwapPool;
      const swapReadSet = window ? addTickWindow(sourceReadSet, createUniswapTickWindow(window)) : sourceReadSet;
      try {
        if (window && receiveAmount !== undefined) await readState(source, swapReadSet, () => undefined);
        const startedAt = monotonicNow();
        const [sourceState, destinationState, priceTable, customSwap] = await Promise.all([
          readState(source, swapReadSet, () =>
            getSourceState(subscriptions?.sourceSubscription, request, usdcSwapPool),
          ),
          readState(destination, destinationReadSet, () => subscriptions?.destinationSubscription?.get()),
          prices.getTable(plan.pricedTokens),
          customSwapQuoter && receiveAmount === undefined
            ? customSwapQuoter.quoteAmountOut(request.amountIn, requester)
            : undefined,
        ]);
        if (isCustom(source)) assertStateYoung(blockAges, request, source, sourceState);
        if (isCustom(destination)) assertStateYoung(blockAges, request, destination, destinationState);
        const quoter = createQuoterFromPlan(plan, sourceState, destinationState, priceTable);
        const amountIn = receiveAmount === undefined ? request.amountIn : findAmountIn(quoter, receiveAmount);
        const swapQuoter = customSwapQuoter || route?.usdcSwapQuoter;
        const swap = customSwap ?? (await swapQuoter?.quoteAmountOut(amountIn, requester, sourceState));
        const nowSeconds = Math.floor(now() / 1000);
        if (!isFull) return quoter.quote(amountIn, slippagePercent, nowSeconds, swap?.amountOut);
        const { maxAgeMs } = computeRefreshPolicy(source, destination, deps);
        return addDetails(quoter.explain(amountIn, slippagePercent, nowSeconds, swap?.amountOut), {
          plan,
          quoter,
          priceTable,
          sourceState,
          destinationState,
          maxAgeMs,
          deliveryTime: getDeliveryTime(request),
          swapReadAtSeconds: toUnixSeconds(swap?.readAt ?? startedAt),
        });
      } catch (error) {
        return throwServiceError(error);
      }
    },
    countActiveRoutes: () => routes.countActive(),
    close: () => routes.close(),
  };
}

/** undefined: nothing is read on the chain. */
type SubscribedState = MaybePromise<ChainState> | undefined;

/** Returns a state from which the swap can be inverted where the request needs that: right after the start, of the second read. */
function getSourceState(
  subscription: ChainStateSubscription | undefined,
  { receiveAmount }: QuoteRequest,
  pool: UsdcSwapPool | undefined,
): SubscribedState {
  if (subscription === undefined || receiveAmount === undefined || pool === undefined) return subscription?.get();
  const reloadWithoutTicks = (state: ChainState): MaybePromise<ChainState> =>
    state.hasTicks(pool.address) ? state : subscription.reload();
  const state = subscription.get();
  return isPromise(state) ? state.then(reloadWithoutTicks) : reloadWithoutTicks(state);
}

function addDetails(explained: ExplainedQuote, inputs: QuoteDetailsInputs): DetailedQuote {
  return { ...explained.quote, details: createQuoteDetails(explained, inputs) };
}

/** @throws ServiceError INVALID_PARAMETER when no amount brings this much */
function findAmountIn(quoter: RouteQuoter, receiveAmount: bigint): bigint {
  const amountIn = quoter.findAmountIn(receiveAmount);
  if (amountIn !== undefined) return amountIn;
  const message = "the pools of this route cannot deliver this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "receiveAmount" });
}

/** Reports a swap that reverts as an invalid amount; rethrows any other error. */
function throwServiceError(error: unknown): never {
  if (!(error instanceof SwapRevertError)) throw error;
  const message = "the pools of this route cannot swap this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
}
