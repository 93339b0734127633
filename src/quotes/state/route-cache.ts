import type { NetworkChains } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { AttestationClient } from "../../hop/cctp/attestation-client.js";
import { buildSampleCctpMessage } from "../../hop/cctp/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { FeeSettingsSource } from "../../hop/fee-settings-source.js";
import { type Chain, getNetwork, type NetworkSlug } from "../../hop/networks.js";
import type { UsdcSwapPool } from "../../hop/usdc-swap-pools.js";
import type { PriceTable } from "../../prices/token-prices.js";
import { createRouteQuoter, type RouteQuoter } from "../math/quote.js";
import type { QuoteRequest } from "../quote-engine.js";
import type { ChainState } from "./chain-state.js";
import {
  type ChainStateCache,
  type ChainStateReadObserver,
  type ChainStateSubscription,
  type Clocks,
  createChainStateCache,
  type RefreshPolicy,
} from "./chain-state-cache.js";
import { getReadSetKey, type ReadSet } from "./read-set.js";
import { isCctpToken, planRoute, type RoutePlan } from "./route-plan.js";
import { createUniswapTickWindow, type UniswapTickWindow } from "./uniswap-tick-window.js";
import { createUsdcSwapQuoter, type UsdcSwapQuoter } from "./usdc-swap-quoter.js";

/** Makes quotes of what was read and known. @throws as quoterFrom */
export type RouteQuoterFactory = (
  source: ChainState | undefined,
  destination: ChainState | undefined,
  prices: PriceTable,
) => RouteQuoter;

/** What quotes of a route share, for one state of the settings. */
export interface CachedRoute {
  readonly plan: RoutePlan;
  readonly refreshPolicy: RefreshPolicy;
  readonly sourceSubscription: ChainStateSubscription | undefined;
  readonly destinationSubscription: ChainStateSubscription | undefined;
  readonly usdcSwapQuoter: UsdcSwapQuoter | undefined;
  /** Gives the same quoter for the same facts and prices as the time before. */
  readonly getQuoter: RouteQuoterFactory;
}

/** The routes that were asked for, each planned once for all callers. */
export interface RouteCache {
  /** The route as the newest settings have it, where it is at hand. */
  peek(request: QuoteRequest): CachedRoute | undefined;
  /** @throws ServiceError UPSTREAM_UNAVAILABLE without settings or attestation */
  get(request: QuoteRequest): Promise<CachedRoute>;
  /** How quotes of a route are made, for who reads its chains himself. @throws as get */
  createPlan(request: QuoteRequest): Promise<RoutePlan>;
  /** How many are kept fresh: somebody asked for what they read lately. */
  countActive(): number;
  /** Ends what goes on in the background. */
  close(): void;
}

export interface RouteCacheDeps {
  readonly settings: FeeSettingsSource;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<AttestationClient, "find"> | undefined;
  /** The chains of a network on the endpoints of our own. */
  readonly chains: (network: NetworkSlug) => NetworkChains;
  /** Longest age of facts while chains answer, in milliseconds; undefined: two blocks of the slower chain, at least 4 s. */
  readonly maxAgeMs: number | undefined;
  readonly maxStaleMs: number;
  readonly clocks: Clocks;
  /** Runs every read that quotes share. */
  readonly onRead?: (
    network: NetworkSlug,
    ...read: Parameters<ChainStateReadObserver>
  ) => ReturnType<ChainStateReadObserver>;
}

const MIN_MAX_AGE_MS = 4_000;
const MIN_REFRESH_MS = 1_000;
/** How long a route is used that was planned without an attestation, which may be there later. */
const PROVISIONAL_PLAN_TTL_MS = 60_000;

interface RouteCacheEntry {
  readonly settings: FeeSettings;
  /** When it is to be planned anew, whatever the settings, on the steady clock. */
  readonly expiresAt: number;
  readonly route: CachedRoute;
}

export function createRouteCache(deps: RouteCacheDeps): RouteCache {
  const { settings, attestations, chains, clocks, onRead } = deps;
  const { monotonicNow } = clocks;
  const entries = new Map<string, RouteCacheEntry>();
  const factsByChain = new Map<string, ChainStateCache>();
  /** By pool, so that all routes learn from each reading. */
  const windows = new Map<string, UniswapTickWindow>();
  const closing = new AbortController();

  function known(request: QuoteRequest, current: FeeSettings | undefined): CachedRoute | undefined {
    const entry = entries.get(getRouteKey(request));
    return entry !== undefined && entry.settings === current && monotonicNow() < entry.expiresAt
      ? entry.route
      : undefined;
  }

  async function terms({ network, token, destination }: QuoteRequest) {
    const message = isCctpToken(token) ? buildSampleCctpMessage(destination.slug) : undefined;
    const finding = message === undefined ? undefined : attestations?.find(message.hash);
    const [current, attestation] = await Promise.all([settings.getCurrent(network), finding]);
    return { current, attestation, isProvisional: finding !== undefined && attestation === undefined };
  }

  function open(request: QuoteRequest, plan: RoutePlan): CachedRoute {
    const { network, source, destination } = request;
    const refreshPolicy = computeRefreshPolicy(source, destination, deps);
    const watch = (chain: Chain, needs: ReadSet | undefined): ChainStateSubscription | undefined =>
      needs &&
      factsOf(network, chain).subscribe(`${refreshPolicy.refreshMs} ${getReadSetKey(needs)}`, needs, refreshPolicy);
    const { usdcSwapPool } = plan;
    const client = chains(network).getClient(source.slug);
    const sourceNeeds = usdcSwapPool &&
      plan.sourceReadSet && { ...plan.sourceReadSet, tickWindows: windowOf(usdcSwapPool) };
    const swapping = { client, maxAgeMs: refreshPolicy.maxAgeMs, now: monotonicNow, signal: closing.signal };
    return {
      plan,
      refreshPolicy,
      sourceSubscription: watch(source, sourceNeeds ?? plan.sourceReadSet),
      destinationSubscription: watch(destination, plan.destinationReadSet),
      usdcSwapQuoter: usdcSwapPool && createUsdcSwapQuoter({ ...swapping, pool: usdcSwapPool }),
      getQuoter: memoizeLast(plan),
    };
  }

  function windowOf(swap: UsdcSwapPool): ReadonlyMap<string, UniswapTickWindow> {
    const window = windows.get(swap.address) ?? createUniswapTickWindow(swap);
    windows.set(swap.address, window);
    return new Map([[swap.address, window]]);
  }

  function factsOf(network: NetworkSlug, chain: Chain): ChainStateCache {
    const name = `${network} ${chain.slug}`;
    const known = factsByChain.get(name);
    if (known !== undefined) return known;
    const observed: ChainStateReadObserver | undefined = onRead && ((...read) => onRead(network, ...read));
    const client = chains(network).getClient(chain.slug);
    const facts = createChainStateCache({ chain, client, clocks, onRead: observed });
    factsByChain.set(name, facts);
    return facts;
  }

  return {
    peek: (request) => known(request, settings.peek(request.network)),
    async get(request) {
      const { current, attestation, isProvisional } = await terms(request);
      const opened = known(request, current);
      if (opened !== undefined) return opened;
      const route = open(request, planQuoteRequest(request, current, attestation));
      const expiresAt = isProvisional ? monotonicNow() + PROVISIONAL_PLAN_TTL_MS : Number.POSITIVE_INFINITY;
      entries.set(getRouteKey(request), { settings: current, expiresAt, route });
      return route;
    },
    async createPlan(request) {
      const { current, attestation } = await terms(request);
      return planQuoteRequest(request, current, attestation);
    },
    countActive() {
      const isKept = ({ route: { sourceSubscription, destinationSubscription } }: RouteCacheEntry): boolean =>
        Boolean(sourceSubscription?.isActive() || destinationSubscription?.isActive());
      return [...entries.values()].filter(isKept).length;
    },
    close() {
      closing.abort();
      for (const facts of factsByChain.values()) facts.close();
    },
  };
}

/**
 * The quoter of a plan.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for what could not be read, or makes no fee
 */
export function createQuoterFromPlan(plan: RoutePlan, ...known: Parameters<RouteQuoterFactory>): RouteQuoter {
  try {
    return createRouteQuoter(plan.buildSnapshot(...known));
  } catch (cause) {
    // A ratio of prices, or a factor of the settings, too large or too small to be written in the token's decimals.
    if (!(cause instanceof RangeError)) throw cause;
    const message = "no fee can be computed from the prices and the fee settings";
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause });
  }
}

function memoizeLast(plan: RoutePlan): RouteQuoterFactory {
  let from: Parameters<RouteQuoterFactory> | undefined;
  let quoter: RouteQuoter | undefined;
  return (source, destination, prices) => {
    const isSame = from?.[0] === source && from?.[1] === destination && from?.[2] === prices;
    if (quoter !== undefined && isSame) return quoter;
    quoter = createQuoterFromPlan(plan, source, destination, prices);
    from = [source, destination, prices];
    return quoter;
  };
}

function planQuoteRequest(request: QuoteRequest, settings: FeeSettings, attestation: string | undefined): RoutePlan {
  return planRoute({ ...request, network: getNetwork(request.network) }, settings, attestation);
}

function getRouteKey({ network, token, source, destination }: QuoteRequest): string {
  return `${network} ${token.requestedSymbol} ${source.slug} ${destination.slug}`;
}

/** About once per block of the slower chain, at most once a second, and often enough for the age that is asked for. */
function computeRefreshPolicy(
  source: Chain,
  destination: Chain,
  { maxAgeMs, maxStaleMs }: RouteCacheDeps,
): RefreshPolicy {
  const blockMs = Math.max(source.blockTimeMs, destination.blockTimeMs);
  const longest = maxAgeMs ?? Math.max(MIN_MAX_AGE_MS, 2 * blockMs);
  return {
    refreshMs: Math.max(MIN_REFRESH_MS, Math.min(blockMs, longest / 2)),
    maxAgeMs: longest,
    maxStaleMs: Math.max(longest, maxStaleMs),
  };
}
