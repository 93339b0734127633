import { createRouteMap } from "../hop/route-map.js";
import type { PriceTable, TokenPrices } from "../prices/token-prices.js";
import { isPromise, type MaybePromise, mapMaybeAsync } from "../resilience/maybe-async.js";
import type { PreparedQuote, QuoteEngine, QuoteRequester, TimestampedQuote } from "./quote-engine.js";
import type { ChainState } from "./state/chain-state.js";
import type { ChainStateCache, ChainStateSubscription } from "./state/chain-state-cache.js";
import type { QuoteRequest } from "./state/quote-request.js";
import type { CachedRoute, RouteCache, RouteInputs, RouteQuoterFactory } from "./state/route-cache.js";

export interface QuotePreparerDeps {
  readonly routes: Pick<RouteCache, "peek" | "get">;
  readonly prices: TokenPrices;
  /** Computes a quote from its inputs. */
  readonly completeQuote: (
    route: CachedRoute,
    getQuoter: RouteQuoterFactory,
    request: QuoteRequest,
    requester: QuoteRequester,
    sourceState: ChainState | undefined,
    destinationState: ChainState | undefined,
    prices: PriceTable,
  ) => MaybePromise<TimestampedQuote>;
}

/** A request and its route. */
interface PlannedRequest {
  readonly request: QuoteRequest;
  readonly route: CachedRoute;
  readonly inputs: RouteInputs;
}

/** What a batch reads on one chain. */
interface ChainReads {
  readonly subscriptions: Set<ChainStateSubscription>;
  /** Addresses of the Uniswap pools whose ticks are needed. */
  readonly pools: Set<string>;
}

/** Creates a function that gets the inputs of several quotes at once, each chain's in one block. */
export function createQuotePreparer({
  routes,
  prices,
  completeQuote,
}: QuotePreparerDeps): QuoteEngine["prepareQuotes"] {
  /** Returns the routes of the requests, each looked up once. */
  function findRoutes(requests: readonly QuoteRequest[]): readonly MaybePromise<CachedRoute>[] {
    const found = createRouteMap<MaybePromise<CachedRoute>>();
    return requests.map((request) => {
      const { token, source, destination } = request;
      const known = found.get(token, source, destination);
      if (known !== undefined) return known;
      const route = routes.peek(request) ?? routes.get(request);
      found.set(token, source, destination, route);
      return route;
    });
  }

  function prepare(
    planned: readonly PlannedRequest[],
    requester: QuoteRequester,
  ): readonly MaybePromise<PreparedQuote>[] {
    const states = getStates(planned);
    const findState = (subscription: ChainStateSubscription | undefined) =>
      subscription && states.get(subscription.cache);
    return planned.map(({ request, route, inputs }) => {
      const { sourceSubscription, destinationSubscription, getBatchQuoter } = inputs;
      const createPreparedQuote =
        (source: ChainState | undefined, destination: ChainState | undefined, table: PriceTable): PreparedQuote =>
        () => {
          if (source !== undefined) sourceSubscription?.assertCoveredBy(source);
          if (destination !== undefined) destinationSubscription?.assertCoveredBy(destination);
          return completeQuote(route, getBatchQuoter, request, requester, source, destination, table);
        };
      const sourceState = findState(sourceSubscription);
      const destinationState = findState(destinationSubscription);
      const { pricedTokens } = route.plan;
      const table = prices.peekTable(pricedTokens);
      if (!isPromise(sourceState) && !isPromise(destinationState) && table !== undefined)
        return createPreparedQuote(sourceState, destinationState, table);
      return Promise.all([sourceState, destinationState, table ?? prices.getTable(pricedTokens)]).then((resolved) =>
        createPreparedQuote(...resolved),
      );
    });
  }

  return (requests, requester) => {
    const found = findRoutes(requests);
    if (found.every((route) => !isPromise(route)))
      return prepare(
        found.map((route, index) => plan(requests[index] as QuoteRequest, route as CachedRoute)),
        requester,
      );
    // Waits for all routes, so that each chain is read once.
    const prepared = Promise.allSettled(found).then((outcomes) => {
      const planned = outcomes.flatMap((outcome, index) =>
        outcome.status === "fulfilled" ? [plan(requests[index] as QuoteRequest, outcome.value)] : [],
      );
      const quotes = prepare(planned, requester);
      return new Map(planned.map(({ request }, index) => [request, quotes[index] as MaybePromise<PreparedQuote>]));
    });
    return found.map(async (route, index) => {
      await route;
      return (await prepared).get(requests[index] as QuoteRequest) as MaybePromise<PreparedQuote>;
    });
  };
}

function plan(request: QuoteRequest, route: CachedRoute): PlannedRequest {
  return { request, route, inputs: request.isFull ? route.getFullInputs() : route };
}

/** Starts to read every chain, and returns its state for all requests. */
function getStates(planned: readonly PlannedRequest[]): ReadonlyMap<ChainStateCache, MaybePromise<ChainState>> {
  const readsByCache = new Map<ChainStateCache, ChainReads>();
  function add(subscription: ChainStateSubscription | undefined, pool?: string): void {
    if (subscription === undefined) return;
    const reads = readsByCache.get(subscription.cache) ?? { subscriptions: new Set(), pools: new Set() };
    reads.subscriptions.add(subscription);
    if (pool !== undefined) reads.pools.add(pool);
    readsByCache.set(subscription.cache, reads);
  }
  for (const { request, route, inputs } of planned) {
    // Swaps of USDC.e can be inverted once their ticks are known: right after the start, after the second read.
    const needsTicks = request.receiveAmount !== undefined;
    add(inputs.sourceSubscription, needsTicks ? route.plan.usdcSwapPool?.address : undefined);
    add(inputs.destinationSubscription);
  }
  const states = new Map<ChainStateCache, MaybePromise<ChainState>>();
  for (const [cache, reads] of readsByCache) {
    const subscriptions = [...reads.subscriptions];
    const withTicks = (state: ChainState): MaybePromise<ChainState> =>
      [...reads.pools].every((pool) => state.hasTicks(pool)) ? state : cache.reloadTogether(subscriptions);
    const state = mapMaybeAsync(cache.getTogether(subscriptions), withTicks);
    // Each quote reports the failure.
    if (isPromise(state)) state.catch(() => {});
    states.set(cache, state);
  }
  return states;
}
