import type { BlockAgeMonitor } from "../../chain/block-age/block-age-monitor.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { AttestationClient } from "../../hop/cctp/attestation-client.js";
import { buildSampleCctpMessage } from "../../hop/cctp/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { FeeSettingsSource } from "../../hop/fee-settings-source.js";
import type { Chain, NetworkSlug } from "../../hop/networks.js";
import { createRouteMap } from "../../hop/route-map.js";
import { isCctpSymbol } from "../../hop/tokens.js";
import type { UsdcSwapPool } from "../../hop/usdc-swap-pools.js";
import type { PriceTable } from "../../prices/token-prices.js";
import type { Clocks } from "../../resilience/clock.js";
import type { SharedState } from "../../shared-state/shared-state.js";
import { createRouteQuoter, type RouteQuoter } from "../math/quote.js";
import type { ChainState, ChainStateReadInterceptor } from "./chain-state.js";
import { type ChainStateCache, type ChainStateSubscription, createChainStateCache } from "./chain-state-cache.js";
import { computeRefreshPolicy, type QuoteAgeLimits, type RefreshPolicy } from "./chain-state-entry.js";
import { getQuoteRoute, type QuoteRequest } from "./quote-request.js";
import { addTickWindow, EMPTY_READ_SET, getReadSetKey, type ReadSet } from "./read-set.js";
import { planRoute, type RoutePlan } from "./route-plan.js";
import { createUniswapTickWindow, type UniswapTickWindow } from "./uniswap-tick-window.js";
import { createUsdcSwapQuoter, type UsdcSwapQuoter } from "./usdc-swap-quoter.js";

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
  readonly usdcSwapQuoter: UsdcSwapQuoter | undefined;
  /** Returns the inputs of quotes with details, which read more. */
  readonly getFullInputs: () => RouteInputs;
  readonly isActive: () => boolean;
}

/** Cache of requested routes; each is planned once for all callers. */
export interface RouteCache {
  /** Returns the route under the current settings if it is cached. */
  peek(request: QuoteRequest): CachedRoute | undefined;
  /** @throws ServiceError UPSTREAM_UNAVAILABLE without settings or attestation */
  get(request: QuoteRequest): Promise<CachedRoute>;
  /** Plans a route without subscribing to its chain state. @throws like get */
  createPlan(request: QuoteRequest): Promise<RoutePlan>;
  /** Returns the number of routes that were requested recently, so that their chain state is refreshed. */
  countActive(): number;
  /** Stops all background work. */
  close(): void;
}

export interface RouteCacheDeps extends QuoteAgeLimits {
  readonly settings: FeeSettingsSource;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<AttestationClient, "find"> | undefined;
  /** The chains of a network on the configured endpoints. */
  readonly chains: (network: NetworkSlug) => NetworkChainClients;
  readonly clocks: Clocks;
  /** Judges the age of blocks. Default: every chain may stand still. */
  readonly blockAges?: Pick<BlockAgeMonitor, "stalledCount" | "findStalled" | "isTooOld" | "getAgeMs"> | undefined;
  /** What other processes share with this one; undefined: there are none. */
  readonly sharedState?: SharedState | undefined;
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

interface RouteCacheEntry {
  readonly settings: FeeSettings;
  /** When it is planned again even under the same settings, on the monotonic clock. */
  readonly expiresAt: number;
  readonly route: CachedRoute;
}

export function createRouteCache(deps: RouteCacheDeps): RouteCache {
  const { settings, attestations, chains, clocks, blockAges, onRead, sharedState } = deps;
  const { monotonicNow } = clocks;
  const entries = createRouteMap<RouteCacheEntry>();
  const stateCaches = new Map<string, ChainStateCache>();
  /** By pool, so that all routes learn from each read. */
  const tickWindows = new Map<string, UniswapTickWindow>();
  const shutdown = new AbortController();

  function findCached(request: QuoteRequest, currentSettings: FeeSettings | undefined): CachedRoute | undefined {
    const entry = entries.get(request.token, request.source, request.destination);
    return entry !== undefined && entry.settings === currentSettings && monotonicNow() < entry.expiresAt
      ? entry.route
      : undefined;
  }

  async function loadPlanInputs({ network, token, destination }: QuoteRequest) {
    const message = isCctpSymbol(token.symbol) ? buildSampleCctpMessage(destination.slug) : undefined;
    const lookup = message === undefined ? undefined : attestations?.find(message.hash);
    const [currentSettings, attestation] = await Promise.all([settings.getCurrent(network), lookup]);
    return { currentSettings, attestation, isProvisional: lookup !== undefined && attestation === undefined };
  }

  function createRoute(request: QuoteRequest, plan: RoutePlan): CachedRoute {
    const { network, source, destination } = request;
    const refreshPolicy = computeRefreshPolicy(source, destination, deps);
    const { maxAgeMs, refreshMs } = refreshPolicy;
    const subscribe = (chain: Chain, readSet: ReadSet | undefined): ChainStateSubscription | undefined =>
      readSet &&
      getStateCache(network, chain).subscribe(`${refreshMs} ${getReadSetKey(readSet)}`, readSet, refreshPolicy);
    const { usdcSwapPool } = plan;
    // The newest block of a chain that the route does not read, so that it is known whether the chain stands still.
    const unread = [plan.sourceReadSet ? [] : source, plan.destinationReadSet ? [] : destination].flat();
    const heads = unread.flatMap((chain) =>
      blockAges && chain.maxBlockAgeMs > 0 ? (subscribe(chain, EMPTY_READ_SET) ?? []) : [],
    );
    const requestHeads = (): void => {
      for (const head of heads) void Promise.resolve(head.get()).catch(() => {});
    };
    const subscribeAll = ({ sourceReadSet, destinationReadSet }: ReadSetsOfRoute): RouteInputs => ({
      sourceSubscription: subscribe(
        source,
        usdcSwapPool ? addTickWindow(sourceReadSet, getTickWindow(usdcSwapPool)) : sourceReadSet,
      ),
      destinationSubscription: subscribe(destination, destinationReadSet),
      getQuoter: memoizeLast(plan, requestHeads),
      getBatchQuoter: memoizeLast(plan, requestHeads),
    });
    const inputs = subscribeAll(plan);
    let fullInputs: RouteInputs | undefined;
    const client = chains(network).getClient(source.slug);
    const swapOptions = { client, maxAgeMs, now: monotonicNow, signal: shutdown.signal };
    return {
      plan,
      refreshPolicy,
      ...inputs,
      usdcSwapQuoter: usdcSwapPool && createUsdcSwapQuoter({ ...swapOptions, pool: usdcSwapPool }),
      getFullInputs() {
        fullInputs ??= subscribeAll(plan.full);
        return fullInputs;
      },
      isActive: () => [inputs, fullInputs].some((used) => used !== undefined && isActive(used)),
    };
  }

  function getTickWindow(pool: UsdcSwapPool): UniswapTickWindow {
    const tickWindow = tickWindows.get(pool.address) ?? createUniswapTickWindow(pool);
    tickWindows.set(pool.address, tickWindow);
    return tickWindow;
  }

  function getStateCache(network: NetworkSlug, chain: Chain): ChainStateCache {
    const key = `${network} ${chain.slug}`;
    const cached = stateCaches.get(key);
    if (cached !== undefined) return cached;
    const onChainRead: ChainStateReadInterceptor | undefined = onRead && ((...read) => onRead(network, ...read));
    const client = chains(network).getClient(chain.slug);
    const sharing = sharedState && {
      sharedState,
      topic: `chain ${key}`,
      getTickWindow,
      onReceived: (state: ChainState) => deps.onReceived?.(network, chain, state),
    };
    const isStalled =
      blockAges && (() => blockAges.stalledCount() > 0 && blockAges.findStalled(network, chain.slug) !== undefined);
    const stateCache = createChainStateCache({ chain, client, clocks, onRead: onChainRead, isStalled, sharing });
    stateCaches.set(key, stateCache);
    return stateCache;
  }

  return {
    peek: (request) => findCached(request, settings.peek(request.network)),
    async get(request) {
      const { currentSettings, attestation, isProvisional } = await loadPlanInputs(request);
      const cached = findCached(request, currentSettings);
      if (cached !== undefined) return cached;
      const route = createRoute(request, planRoute(getQuoteRoute(request), currentSettings, attestation));
      const expiresAt = isProvisional ? monotonicNow() + PROVISIONAL_PLAN_TTL_MS : Number.POSITIVE_INFINITY;
      entries.set(request.token, request.source, request.destination, { settings: currentSettings, expiresAt, route });
      return route;
    },
    async createPlan(request) {
      const { currentSettings, attestation } = await loadPlanInputs(request);
      return planRoute(getQuoteRoute(request), currentSettings, attestation);
    },
    countActive() {
      return [...entries.values()].filter(({ route }) => route.isActive()).length;
    },
    close() {
      shutdown.abort();
      for (const stateCache of stateCaches.values()) stateCache.close();
    },
  };
}

/**
 * Creates the quoter of a plan.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for a value that could not be read, or from which no fee can be computed
 */
export function createQuoterFromPlan(plan: RoutePlan, ...inputs: Parameters<RouteQuoterFactory>): RouteQuoter {
  try {
    return createRouteQuoter(plan.buildSnapshot(...inputs));
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
    lastQuoter = createQuoterFromPlan(plan, source, destination, prices);
    lastInputs = [source, destination, prices];
    onNewInputs();
    return lastQuoter;
  };
}
