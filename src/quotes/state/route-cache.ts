import type { NetworkChainClients } from "../../chain/chains.js";
import type { BlockAgeMonitor } from "../../chain/heads/block-age-monitor.js";
import { ServiceError } from "../../errors.js";
import type { AttestationClient } from "../../hop/attestation-client.js";
import { buildSampleCctpMessage, type UsdcSwapPool } from "../../hop/cctp.js";
import type { FeeSettings, FeeSettingsSource } from "../../hop/fee-settings.js";
import { type Chain, getNetwork, type NetworkSlug } from "../../hop/networks.js";
import { RouteMap } from "../../hop/routes.js";
import { findToken, isCctpSymbol } from "../../hop/tokens.js";
import type { PriceTable } from "../../prices/token-prices.js";
import type { Clocks } from "../../resilience/clock.js";
import type { SharedCache } from "../../shared-state/shared-cache.js";
import { RouteQuoter } from "../math/quote.js";
import type { ChainState, ChainStateReadInterceptor } from "./chain-state.js";
import { ChainStateCache, type ChainStateSubscription } from "./chain-state-cache.js";
import { computeRefreshPolicy, type QuoteAgeLimits, type RefreshPolicy } from "./chain-state-entry.js";
import { getQuoteRoute, type QuoteRequest } from "./quote-request.js";
import { addContractReads, EMPTY_READ_SET, getReadSetKey, type ReadSet } from "./read-set.js";
import { planRoute, type RoutePlan } from "./route-plan.js";
import { UniswapTickWindow } from "./uniswap-tick-window.js";
import { UsdcSwapQuoter } from "./usdc-swap-quoter.js";

/** Creates a quoter from chain state and prices. @throws like createQuoterFromPlan */
export type RouteQuoterFactory = (
  source: ChainState | undefined,
  destination: ChainState | undefined,
  prices: PriceTable,
) => RouteQuoter;

/** What quotes of one view read, and what is computed from it for all of them. */
export interface RouteInputs {
  readonly sourceSubscription: ChainStateSubscription | undefined;
  readonly destinationSubscription: ChainStateSubscription | undefined;
  /** Returns the previous quoter if the arguments are the same objects as in the previous call. */
  readonly getQuoter: RouteQuoterFactory;
  /** The same for batches, which may use other states at the same time. */
  readonly getBatchQuoter: RouteQuoterFactory;
}

/** What all quotes of a route share under one version of the fee settings; the inputs are those of quotes without details. */
export interface CachedRoute extends RouteInputs {
  readonly plan: RoutePlan;
  readonly refreshPolicy: RefreshPolicy;
  readonly usdcSwapQuoter: Pick<UsdcSwapQuoter, "quoteAmountOut"> | undefined;
  /** Returns the inputs of quotes with details, which read more. */
  readonly getFullInputs: () => RouteInputs;
  readonly isActive: () => boolean;
}

export interface RouteCacheDeps extends QuoteAgeLimits {
  readonly settings: Pick<FeeSettingsSource, "peek" | "getCurrent">;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<AttestationClient, "find"> | undefined;
  /** The chains of a network on the configured endpoints. */
  readonly chains: (network: NetworkSlug) => NetworkChainClients;
  readonly clocks: Clocks;
  /** Judges the age of blocks. Default: every chain may be stalled. */
  readonly blockAges?: Pick<BlockAgeMonitor, "stalledCount" | "findStalled" | "isTooOld" | "getAgeMs"> | undefined;
  /** What processes share; undefined: this one shares nothing. */
  readonly sharedCache?: SharedCache | undefined;
  /** Observes every chain state that another process has read. */
  readonly onReceived?: (network: NetworkSlug, chain: Chain, state: ChainState) => void;
  /** Runs every shared read of chain state. */
  readonly onRead?: (
    network: NetworkSlug,
    ...read: Parameters<ChainStateReadInterceptor>
  ) => ReturnType<ChainStateReadInterceptor>;
}

/** How long a route planned without an attestation is used; the attestation may become available. */
const PROVISIONAL_PLAN_TTL_MS = 60_000;

type ReadSetsOfRoute = Pick<RoutePlan, "sourceReadSet" | "destinationReadSet">;

/** Cache of requested routes; each is planned once for all callers. */
export class RouteCache {
  readonly #deps: RouteCacheDeps;
  readonly #entries = new RouteMap<{
    readonly settings: FeeSettings;
    /** When it is planned again even under the same settings, on the monotonic clock. */
    readonly expiresAt: number;
    readonly route: CachedRoute;
  }>();
  readonly #stateCaches = new Map<string, ChainStateCache>();
  /** By pool, so that all routes learn from each read. */
  readonly #tickWindows = new Map<string, UniswapTickWindow>();
  readonly #shutdown = new AbortController();

  constructor(deps: RouteCacheDeps) {
    this.#deps = deps;
  }

  /** Returns the route under the current settings if it is cached. */
  peek(request: QuoteRequest): CachedRoute | undefined {
    return this.#findCached(request, this.#deps.settings.peek(request.network));
  }

  /** @throws ServiceError UPSTREAM_UNAVAILABLE without settings or attestation */
  async get(request: QuoteRequest): Promise<CachedRoute> {
    const { settings, attestation, isProvisional } = await this.#loadPlanInputs(request);
    const cached = this.#findCached(request, settings);
    if (cached !== undefined) return cached;
    const route = this.#createRoute(request, planRoute(getQuoteRoute(request), settings, attestation));
    const now = this.#deps.clocks.monotonicNow();
    const expiresAt = isProvisional ? now + PROVISIONAL_PLAN_TTL_MS : Number.POSITIVE_INFINITY;
    this.#entries.set(request.token, request.source, request.destination, { settings, expiresAt, route });
    return route;
  }

  /** Plans a route without subscribing to its chain state. @throws like get */
  async createPlan(request: QuoteRequest): Promise<RoutePlan> {
    const { settings, attestation } = await this.#loadPlanInputs(request);
    return planRoute(getQuoteRoute(request), settings, attestation);
  }

  /** Returns the number of routes that were requested recently, so that their chain state is refreshed. */
  countActive(): number {
    return [...this.#entries.values()].filter(({ route }) => route.isActive()).length;
  }

  /** Stops all background work. */
  close(): void {
    this.#shutdown.abort();
    for (const stateCache of this.#stateCaches.values()) stateCache.close();
  }

  #findCached(request: QuoteRequest, settings: FeeSettings | undefined): CachedRoute | undefined {
    const entry = this.#entries.get(request.token, request.source, request.destination);
    const isCurrent =
      entry !== undefined && entry.settings === settings && this.#deps.clocks.monotonicNow() < entry.expiresAt;
    return isCurrent ? entry.route : undefined;
  }

  async #loadPlanInputs({ network, token, destination }: QuoteRequest) {
    const message = isCctpSymbol(token.symbol) ? buildSampleCctpMessage(destination.slug) : undefined;
    const lookup = message === undefined ? undefined : this.#deps.attestations?.find(message.hash);
    const [settings, attestation] = await Promise.all([this.#deps.settings.getCurrent(network), lookup]);
    return { settings, attestation, isProvisional: lookup !== undefined && attestation === undefined };
  }

  #createRoute(request: QuoteRequest, plan: RoutePlan): CachedRoute {
    const { network, source, destination } = request;
    const { chains, clocks } = this.#deps;
    const refreshPolicy = computeRefreshPolicy(source, destination, this.#deps);
    const { usdcSwapPool } = plan;
    const heads = this.#subscribeToHeads(request, plan, refreshPolicy);
    const requestHeads = (): void => {
      for (const head of heads) void Promise.resolve(head.get()).catch(() => {});
    };
    const subscribeAll = ({ sourceReadSet, destinationReadSet }: ReadSetsOfRoute, isFull: boolean): RouteInputs => {
      const named = { refreshPolicy, routeNames: [printRouteName(request, isFull)] };
      const swapReadSet = usdcSwapPool
        ? addContractReads(sourceReadSet, [this.#getTickWindow(usdcSwapPool)])
        : sourceReadSet;
      return {
        sourceSubscription: this.#subscribe(network, source, swapReadSet, named),
        destinationSubscription: this.#subscribe(network, destination, destinationReadSet, named),
        getQuoter: memoizeLast(plan, requestHeads),
        getBatchQuoter: memoizeLast(plan, requestHeads),
      };
    };
    const inputs = subscribeAll(plan, false);
    let fullInputs: RouteInputs | undefined;
    return {
      plan,
      refreshPolicy,
      ...inputs,
      usdcSwapQuoter:
        usdcSwapPool &&
        new UsdcSwapQuoter({
          client: chains(network).getClient(source.slug),
          pool: usdcSwapPool,
          maxAgeMs: refreshPolicy.maxAgeMs,
          now: clocks.monotonicNow,
          signal: this.#shutdown.signal,
        }),
      getFullInputs() {
        fullInputs ??= subscribeAll(plan.full, true);
        return fullInputs;
      },
      isActive: () => [inputs, fullInputs].some((used) => used !== undefined && isActive(used)),
    };
  }

  /** Subscribes to the newest blocks of chains that the route does not read, so that it is known whether they are stalled. */
  #subscribeToHeads(
    { network, source, destination }: QuoteRequest,
    plan: RoutePlan,
    refreshPolicy: RefreshPolicy,
  ): readonly ChainStateSubscription[] {
    const unread = [plan.sourceReadSet ? [] : source, plan.destinationReadSet ? [] : destination].flat();
    const isJudged = ({ maxBlockAgeMs }: Chain): boolean => this.#deps.blockAges !== undefined && maxBlockAgeMs > 0;
    return unread
      .filter(isJudged)
      .flatMap((chain) => this.#subscribe(network, chain, EMPTY_READ_SET, { refreshPolicy, routeNames: [] }) ?? []);
  }

  #subscribe(
    network: NetworkSlug,
    chain: Chain,
    readSet: ReadSet | undefined,
    { refreshPolicy, routeNames }: { readonly refreshPolicy: RefreshPolicy; readonly routeNames: readonly string[] },
  ): ChainStateSubscription | undefined {
    if (readSet === undefined) return undefined;
    const key = `${refreshPolicy.refreshMs} ${getReadSetKey(readSet)}`;
    return this.#getStateCache(network, chain).subscribe(key, readSet, refreshPolicy, routeNames);
  }

  #getTickWindow(pool: UsdcSwapPool): UniswapTickWindow {
    const tickWindow = this.#tickWindows.get(pool.address) ?? new UniswapTickWindow(pool);
    this.#tickWindows.set(pool.address, tickWindow);
    return tickWindow;
  }

  #getStateCache(network: NetworkSlug, chain: Chain): ChainStateCache {
    const key = `${network} ${chain.slug}`;
    const cached = this.#stateCaches.get(key);
    if (cached !== undefined) return cached;
    const { chains, clocks, blockAges, onRead, onReceived, sharedCache } = this.#deps;
    const stateCache = new ChainStateCache({
      chain,
      client: chains(network).getClient(chain.slug),
      clocks,
      onRead: onRead && ((...read) => onRead(network, ...read)),
      isStalled:
        blockAges && (() => blockAges.stalledCount() > 0 && blockAges.findStalled(network, chain.slug) !== undefined),
      sharing: sharedCache && {
        cache: sharedCache,
        key,
        findReadSet: (routeName) => this.#findReadSet(network, chain, routeName),
        onReceived: (state) => onReceived?.(network, chain, state),
      },
    });
    this.#stateCaches.set(key, stateCache);
    return stateCache;
  }

  /** Returns what a route reads on a chain, for another process; plans a route that this process does not know yet. */
  #findReadSet(network: NetworkSlug, chain: Chain, routeName: string): ReadSet | undefined {
    const { request, isFull } = parseRouteName(network, routeName);
    if (request === undefined) return undefined;
    const route = this.peek(request);
    if (route === undefined) {
      void this.get(request).catch(() => {});
      return undefined;
    }
    const { sourceSubscription, destinationSubscription } = isFull ? route.getFullInputs() : route;
    return (chain === request.source ? sourceSubscription : destinationSubscription)?.readSet;
  }
}

const FULL_VIEW = "full";

/** Prints the name by which processes tell each other what they need: token, chains and view. */
function printRouteName({ token, source, destination }: QuoteRequest, isFull: boolean): string {
  return [token.requestedSymbol, source.slug, destination.slug, ...(isFull ? [FULL_VIEW] : [])].join(" ");
}

/** Parses what printRouteName prints; request undefined: this version knows no such route. */
function parseRouteName(networkSlug: NetworkSlug, name: string) {
  const network = getNetwork(networkSlug);
  const [symbol = "", from = "", to = "", view] = name.split(" ");
  const token = findToken(network, symbol);
  const [source, destination] = [network.chains.get(from), network.chains.get(to)];
  const request: QuoteRequest | undefined = token &&
    source &&
    destination && { network: networkSlug, token, source, destination, amountIn: 0n, slippagePercent: 0 };
  return { request, isFull: view === FULL_VIEW };
}

/**
 * Creates the quoter of a plan.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for a value that could not be read, or from which no fee can be computed
 */
export function createQuoterFromPlan(plan: RoutePlan, ...inputs: Parameters<RouteQuoterFactory>): RouteQuoter {
  try {
    return new RouteQuoter(plan.buildSnapshot(...inputs));
  } catch (cause) {
    // A ratio of prices or a factor of the settings is too large or too small for plain decimal text.
    if (!(cause instanceof RangeError)) throw cause;
    const message = "no fee can be computed from the prices and the fee settings";
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause });
  }
}

function isActive({ sourceSubscription, destinationSubscription }: RouteInputs): boolean {
  return Boolean(sourceSubscription?.isActive() || destinationSubscription?.isActive());
}

/** @param onNewInputs called about once per refresh of the inputs while quotes are requested */
function memoizeLast(plan: RoutePlan, onNewInputs: () => void): RouteQuoterFactory {
  let lastInputs: Parameters<RouteQuoterFactory> | undefined;
  let lastQuoter: RouteQuoter | undefined;
  return (source, destination, prices) => {
    const isSame = lastInputs?.[0] === source && lastInputs?.[1] === destination && lastInputs?.[2] === prices;
    if (lastQuoter !== undefined && isSame) return lastQuoter;
    // Also for a quote that fails: without the heads, prices may seem too old by a wrong clock.
    onNewInputs();
    lastQuoter = createQuoterFromPlan(plan, source, destination, prices);
    lastInputs = [source, destination, prices];
    return lastQuoter;
  };
}
