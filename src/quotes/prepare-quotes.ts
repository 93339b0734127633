import { RouteMap } from "../hop/routes.js";
import type { PriceTable, TokenPrices } from "../prices/token-prices.js";
import { isPromise, type MaybePromise, mapMaybeAsync } from "../resilience/maybe-async.js";
import type { Requester } from "../resilience/waiters.js";
import type { PreparedQuote, TimestampedQuote } from "./quote-engine.js";
import type { ChainState } from "./state/chain-state.js";
import type { ChainStateCache, ChainStateSubscription } from "./state/chain-state-cache.js";
import type { QuoteRequest } from "./state/quote-request.js";
import type { CachedRoute, RouteCache, RouteInputs, RouteQuoterFactory } from "./state/route-cache.js";

/** What a shared quote is computed from. */
export interface QuoteInputs {
  readonly route: CachedRoute;
  readonly getQuoter: RouteQuoterFactory;
  readonly request: QuoteRequest;
  readonly requester: Requester;
  readonly sourceState: ChainState | undefined;
  readonly destinationState: ChainState | undefined;
  readonly priceTable: PriceTable;
}

/** A request and its route. */
type PlannedRequest = Pick<QuoteInputs, "request" | "route"> & { readonly inputs: RouteInputs };

/** Gets the inputs of several quotes at once, each chain's in one block. */
export class QuotePreparer {
  readonly #routes: Pick<RouteCache, "peek" | "get">;
  readonly #prices: TokenPrices;
  readonly #completeQuote: (inputs: QuoteInputs) => MaybePromise<TimestampedQuote>;

  /** @param completeQuote computes a quote from its inputs */
  constructor(
    routes: Pick<RouteCache, "peek" | "get">,
    prices: TokenPrices,
    completeQuote: (inputs: QuoteInputs) => MaybePromise<TimestampedQuote>,
  ) {
    this.#routes = routes;
    this.#prices = prices;
    this.#completeQuote = completeQuote;
  }

  /** As QuoteEngine.prepareQuotes. */
  prepare(requests: readonly QuoteRequest[], requester: Requester): readonly MaybePromise<PreparedQuote>[] {
    const found = this.#findRoutes(requests);
    if (found.every((route) => !isPromise(route)))
      return this.#prepareAll(
        found.map((route, index) => plan(requests[index] as QuoteRequest, route as CachedRoute)),
        requester,
      );
    // Waits for all routes, so that each chain is read once.
    const prepared = Promise.allSettled(found).then((outcomes) => {
      const planned = outcomes.flatMap((outcome, index) =>
        outcome.status === "fulfilled" ? [plan(requests[index] as QuoteRequest, outcome.value)] : [],
      );
      const quotes = this.#prepareAll(planned, requester);
      return new Map(planned.map(({ request }, index) => [request, quotes[index] as MaybePromise<PreparedQuote>]));
    });
    return found.map(async (route, index) => {
      await route;
      return (await prepared).get(requests[index] as QuoteRequest) as MaybePromise<PreparedQuote>;
    });
  }

  /** Returns the routes of the requests, each looked up once. */
  #findRoutes(requests: readonly QuoteRequest[]): readonly MaybePromise<CachedRoute>[] {
    const found = new RouteMap<MaybePromise<CachedRoute>>();
    return requests.map((request) => {
      const { token, source, destination } = request;
      const known = found.get(token, source, destination);
      if (known !== undefined) return known;
      const route = this.#routes.peek(request) ?? this.#routes.get(request);
      found.set(token, source, destination, route);
      return route;
    });
  }

  #prepareAll(planned: readonly PlannedRequest[], requester: Requester): readonly MaybePromise<PreparedQuote>[] {
    const states = getStates(planned);
    const findState = (subscription: ChainStateSubscription | undefined) =>
      subscription && states.get(subscription.cache);
    return planned.map((each) => {
      const { sourceSubscription, destinationSubscription } = each.inputs;
      const { pricedTokens } = each.route.plan;
      const [sourceState, destinationState] = [findState(sourceSubscription), findState(destinationSubscription)];
      const table = this.#prices.peekTable(pricedTokens);
      if (!isPromise(sourceState) && !isPromise(destinationState) && table !== undefined)
        return this.#createPreparedQuote(each, requester, [sourceState, destinationState, table]);
      const inputs = [sourceState, destinationState, table ?? this.#prices.getTable(pricedTokens)] as const;
      return Promise.all(inputs).then((resolved) => this.#createPreparedQuote(each, requester, resolved));
    });
  }

  #createPreparedQuote(
    { request, route, inputs }: PlannedRequest,
    requester: Requester,
    [sourceState, destinationState, priceTable]: readonly [
      source: ChainState | undefined,
      destination: ChainState | undefined,
      priceTable: PriceTable,
    ],
  ): PreparedQuote {
    const { sourceSubscription, destinationSubscription, getBatchQuoter: getQuoter } = inputs;
    return () => {
      if (sourceState !== undefined) sourceSubscription?.assertCoveredBy(sourceState);
      if (destinationState !== undefined) destinationSubscription?.assertCoveredBy(destinationState);
      const states = { sourceState, destinationState, priceTable };
      return this.#completeQuote({ route, getQuoter, request, requester, ...states });
    };
  }
}

function plan(request: QuoteRequest, route: CachedRoute): PlannedRequest {
  return { request, route, inputs: request.isFull ? route.getFullInputs() : route };
}

/** Starts to read every chain, and returns its state for all requests. */
function getStates(planned: readonly PlannedRequest[]): ReadonlyMap<ChainStateCache, MaybePromise<ChainState>> {
  /** The Uniswap pools are those whose ticks are needed, by their addresses. */
  const readsByCache = new Map<
    ChainStateCache,
    { readonly subscriptions: Set<ChainStateSubscription>; readonly pools: Set<string> }
  >();
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
