import type { NetworkChainClients } from "../chain/chains.js";
import { ServiceError } from "../errors.js";
import type { UsdcSwapPool } from "../hop/cctp.js";
import type { Chain } from "../hop/networks.js";
import type { TokenPrices } from "../prices/token-prices.js";
import { catchMaybeAsync, isPromise, type MaybePromise, mapMaybeAsync } from "../resilience/maybe-async.js";
import type { Requester } from "../resilience/waiters.js";
import type { Quote, RouteQuoter } from "./math/quote.js";
import { SwapRevertError } from "./math/stable-swap.js";
import { type QuoteInputs, QuotePreparer } from "./prepare-quotes.js";
import { createQuoteDetails, type DeliveryTime, type QuoteDetailsInputs } from "./quote-details.js";
import type { DetailedQuote, PreparedQuote, QuoteEngine, TimestampedQuote } from "./quote-engine.js";
import { assertStateYoung } from "./refuse-stalled.js";
import { type ChainState, captureReadTimestamps } from "./state/chain-state.js";
import type { ChainStateSubscription } from "./state/chain-state-cache.js";
import { computeRefreshPolicy } from "./state/chain-state-entry.js";
import type { QuoteRequest } from "./state/quote-request.js";
import { readChainState } from "./state/read-chain-state.js";
import { addContractReads, type ReadSet } from "./state/read-set.js";
import { type CachedRoute, createQuoterFromPlan, RouteCache, type RouteCacheDeps } from "./state/route-cache.js";
import type { RoutePlan } from "./state/route-plan.js";
import { UniswapTickWindow } from "./state/uniswap-tick-window.js";
import { type TimestampedAmount, UsdcSwapQuoter } from "./state/usdc-swap-quoter.js";

export interface SnapshotEngineDeps extends RouteCacheDeps {
  readonly prices: TokenPrices;
  /** Observes the age of the inputs of each shared quote, in milliseconds. */
  readonly onQuoteAge?: (ageMs: number) => void;
  /** Returns how long transfers on the route of a request took; undefined: nothing is known. */
  readonly getDeliveryTime?: (request: QuoteRequest) => DeliveryTime | undefined;
}

/** Computes quotes from chain state that all callers share and that is refreshed while in use. */
export class SnapshotEngine implements QuoteEngine {
  readonly #deps: SnapshotEngineDeps;
  readonly #routes: RouteCache;
  readonly #preparer: QuotePreparer;

  constructor(deps: SnapshotEngineDeps) {
    this.#deps = deps;
    this.#routes = new RouteCache(deps);
    this.#preparer = new QuotePreparer(this.#routes, deps.prices, (inputs) => this.#completeQuote(inputs));
  }

  quote(request: QuoteRequest, requester: Requester): MaybePromise<TimestampedQuote> {
    const route = this.#routes.peek(request);
    return route === undefined
      ? this.#routes.get(request).then((loadedRoute) => this.#quoteRoute(loadedRoute, request, requester))
      : this.#quoteRoute(route, request, requester);
  }

  prepareQuotes(requests: readonly QuoteRequest[], requester: Requester): readonly MaybePromise<PreparedQuote>[] {
    return this.#preparer.prepare(requests, requester);
  }

  async quoteWithCustomEndpoints(
    request: QuoteRequest,
    access: NetworkChainClients,
    requester: Requester,
  ): Promise<DetailedQuote> {
    const isCustom = (chain: Chain): boolean => access.hasCustomEndpoint(chain.slug);
    // Chains without a custom endpoint use the shared state.
    const isShared = !isCustom(request.source) || !isCustom(request.destination);
    const route = isShared ? await this.#routes.get(request) : undefined;
    const plan = route?.plan ?? (await this.#routes.createPlan(request));
    try {
      return await this.#quoteThrough(access, request, requester, { plan, route });
    } catch (error) {
      return throwServiceError(error);
    }
  }

  /** Returns the number of routes whose chain state is refreshed. */
  countActiveRoutes(): number {
    return this.#routes.countActive();
  }

  /** Stops all background work. */
  close(): void {
    this.#routes.close();
  }

  #quoteRoute(route: CachedRoute, request: QuoteRequest, requester: Requester): MaybePromise<TimestampedQuote> {
    const { prices } = this.#deps;
    const { pricedTokens, usdcSwapPool } = route.plan;
    const { sourceSubscription, destinationSubscription, getQuoter } = request.isFull ? route.getFullInputs() : route;
    // Starts all reads before it waits for the first.
    const sourceState = getSourceState(sourceSubscription, request, usdcSwapPool);
    const destinationState = destinationSubscription?.get();
    const priceTable = prices.peekTable(pricedTokens);
    if (isPromise(sourceState) || isPromise(destinationState) || priceTable === undefined) {
      return Promise.all([sourceState, destinationState, priceTable ?? prices.getTable(pricedTokens)]).then(
        ([source, destination, table]) =>
          this.#completeQuote({
            route,
            getQuoter,
            request,
            requester,
            sourceState: source,
            destinationState: destination,
            priceTable: table,
          }),
      );
    }
    // Not by a spread, which takes a third of the time of a quote.
    return this.#completeQuote({ route, getQuoter, request, requester, sourceState, destinationState, priceTable });
  }

  #completeQuote(inputs: QuoteInputs): MaybePromise<TimestampedQuote> {
    const { route, getQuoter, request, requester, sourceState, destinationState, priceTable } = inputs;
    const quoter = getQuoter(sourceState, destinationState, priceTable);
    const amountIn = findAmountIn(quoter, request);
    try {
      const swap = route.usdcSwapQuoter?.quoteAmountOut(amountIn, requester, sourceState);
      const complete = (swapped: TimestampedAmount | undefined) => this.#build(inputs, quoter, amountIn, swapped);
      return catchMaybeAsync(mapMaybeAsync(swap, complete), throwServiceError);
    } catch (error) {
      return throwServiceError(error);
    }
  }

  /** @param swap output of the swap of USDC.e before the transfer */
  #build(
    { route, request, sourceState, destinationState, priceTable }: QuoteInputs,
    quoter: RouteQuoter,
    amountIn: bigint,
    swap: TimestampedAmount | undefined,
  ): TimestampedQuote {
    const { onQuoteAge, clocks } = this.#deps;
    const { maxAgeMs, refreshMs } = route.refreshPolicy;
    const time = clocks.monotonicNow();
    const readAt = Math.min(sourceState?.readAt ?? time, destinationState?.readAt ?? time, swap?.readAt ?? time);
    const ageMs = time - readAt;
    onQuoteAge?.(ageMs);
    const quote = this.#compute(request, {
      amountIn,
      swap,
      swapReadAt: swap?.readAt ?? time,
      quoter,
      plan: route.plan,
      maxAgeMs,
      sourceState,
      destinationState,
      priceTable,
    });
    return { quote, freshness: { ageMs, maxAgeMs, refreshMs } };
  }

  async #quoteThrough(
    access: NetworkChainClients,
    request: QuoteRequest,
    requester: Requester,
    { plan, route }: { readonly plan: RoutePlan; readonly route: CachedRoute | undefined },
  ): Promise<DetailedQuote> {
    const { clocks, prices, blockAges } = this.#deps;
    const { signal } = requester;
    const { source, destination, receiveAmount, isFull } = request;
    const { usdcSwapPool } = plan;
    const isSourceCustom = access.hasCustomEndpoint(source.slug);
    const isDestinationCustom = access.hasCustomEndpoint(destination.slug);
    const { sourceReadSet, destinationReadSet } = isFull ? plan.full : plan;
    const subscriptions = isFull ? route?.getFullInputs() : route;
    const readCustom = async (chain: Chain, readSet: ReadSet | undefined): Promise<ChainState | undefined> =>
      readSet &&
      readChainState(access.getClient(chain.slug), chain, [readSet], { ...captureReadTimestamps(clocks), signal });
    const swapQuoter =
      usdcSwapPool && isSourceCustom
        ? new UsdcSwapQuoter({
            client: access.getClient(source.slug),
            pool: usdcSwapPool,
            maxAgeMs: 0,
            now: clocks.monotonicNow,
            signal,
          })
        : undefined;
    // Only the arithmetic in this process can be inverted, and the first read of a window tells where its price is.
    const window = isSourceCustom && (isFull || receiveAmount !== undefined) && usdcSwapPool;
    const swapReadSet = window ? addContractReads(sourceReadSet, [new UniswapTickWindow(window)]) : sourceReadSet;
    if (window && receiveAmount !== undefined) await readCustom(source, swapReadSet);
    const startedAt = clocks.monotonicNow();
    const [sourceState, destinationState, priceTable, customSwap] = await Promise.all([
      isSourceCustom
        ? readCustom(source, swapReadSet)
        : getSourceState(subscriptions?.sourceSubscription, request, usdcSwapPool),
      isDestinationCustom ? readCustom(destination, destinationReadSet) : subscriptions?.destinationSubscription?.get(),
      prices.getTable(plan.pricedTokens),
      receiveAmount === undefined ? swapQuoter?.quoteAmountOut(request.amountIn, requester) : undefined,
    ]);
    if (isSourceCustom) assertStateYoung(blockAges, request, source, sourceState);
    if (isDestinationCustom) assertStateYoung(blockAges, request, destination, destinationState);
    const quoter = createQuoterFromPlan(plan, sourceState, destinationState, priceTable);
    const amountIn = findAmountIn(quoter, request);
    const sharedOrCustom = swapQuoter ?? route?.usdcSwapQuoter;
    const swap = customSwap ?? (await sharedOrCustom?.quoteAmountOut(amountIn, requester, sourceState));
    const { maxAgeMs } = computeRefreshPolicy(source, destination, this.#deps);
    const swapReadAt = swap?.readAt ?? startedAt;
    const states = { sourceState, destinationState, priceTable };
    return this.#compute(request, { plan, quoter, amountIn, swap, swapReadAt, maxAgeMs, ...states });
  }

  #compute(
    request: QuoteRequest,
    computation: QuoteDetailsInputs & {
      readonly amountIn: bigint;
      readonly swap: TimestampedAmount | undefined;
      /** On the monotonic clock, not in the future. */
      readonly swapReadAt: number;
    },
  ): DetailedQuote {
    const { clocks, getDeliveryTime } = this.#deps;
    const { quoter, amountIn, swap, swapReadAt } = computation;
    const now = clocks.now();
    const input = [amountIn, request.slippagePercent, Math.floor(now / 1000), swap?.amountOut] as const;
    if (!request.isFull) return addExceededBurnLimit(quoter.quote(...input), quoter);
    const explained = quoter.explain(...input);
    const swapReadAtSeconds = Math.floor((now - (clocks.monotonicNow() - swapReadAt)) / 1000);
    const details = createQuoteDetails(explained, computation, swapReadAtSeconds, getDeliveryTime?.(request));
    return { ...explained.quote, details };
  }
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

/**
 * Returns the amount of a request.
 * @throws ServiceError INVALID_PARAMETER when no amount brings what it asks for
 */
function findAmountIn(quoter: RouteQuoter, { amountIn, receiveAmount }: QuoteRequest): bigint {
  const found = receiveAmount === undefined ? amountIn : quoter.findAmountIn(receiveAmount);
  if (found !== undefined) return found;
  const message = "the pools of this route cannot deliver this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "receiveAmount" });
}

/** Adds the burn limit to a quote by CCTP whose amount is above it. */
function addExceededBurnLimit(quote: Quote, { snapshot }: RouteQuoter): DetailedQuote {
  if (snapshot.kind !== "cctp" || snapshot.burnLimit === undefined || quote.amountIn <= snapshot.burnLimit)
    return quote;
  return { ...quote, exceededBurnLimit: snapshot.burnLimit };
}

/** Reports a swap that reverts as an invalid amount; rethrows any other error. */
function throwServiceError(error: unknown): never {
  if (!(error instanceof SwapRevertError)) throw error;
  const message = "the pools of this route cannot swap this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
}
