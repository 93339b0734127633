import type { ChainAccess } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { Attestations } from "../../hop/cctp/attestation-client.js";
import { sampleMessage } from "../../hop/cctp/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { FeeSettingsSource } from "../../hop/fee-settings-source.js";
import { type Chain, type NetworkSlug, networkOf } from "../../hop/networks.js";
import type { UsdcSwap } from "../../hop/usdc-swap-pools.js";
import type { PriceBook } from "../../prices/token-prices.js";
import { prepareQuotes, type Quoter } from "../math/quote.js";
import type { QuoteRequest } from "../quote-engine.js";
import type { ChainFacts } from "./chain-state.js";
import {
  type Clocks,
  createFreshFacts,
  type FreshFacts,
  type Pace,
  type ReadObserver,
  type Watched,
} from "./chain-state-cache.js";
import { type ChainNeeds, needsName } from "./read-set.js";
import { isCctp, planRoute, type RoutePlan } from "./route-plan.js";
import { createUniswapWindow, type UniswapWindow } from "./uniswap-tick-window.js";
import { createUsdcSwaps, type UsdcSwaps } from "./usdc-swap-quoter.js";

/** Makes quotes of what was read and known. @throws as quoterFrom */
export type QuoterMaker = (
  source: ChainFacts | undefined,
  destination: ChainFacts | undefined,
  prices: PriceBook,
) => Quoter;

/** What quotes of a route share, for one state of the settings. */
export interface OpenRoute {
  readonly plan: RoutePlan;
  readonly pace: Pace;
  readonly source: Watched | undefined;
  readonly destination: Watched | undefined;
  readonly swaps: UsdcSwaps | undefined;
  /** Gives the same quoter for the same facts and prices as the time before. */
  readonly quoterFor: QuoterMaker;
}

/** The routes that were asked for, each planned once for all callers. */
export interface OpenRoutes {
  /** The route as the newest settings have it, where it is at hand. */
  peek(request: QuoteRequest): OpenRoute | undefined;
  /** @throws ServiceError UPSTREAM_UNAVAILABLE without settings or attestation */
  get(request: QuoteRequest): Promise<OpenRoute>;
  /** How quotes of a route are made, for who reads its chains himself. @throws as get */
  plan(request: QuoteRequest): Promise<RoutePlan>;
  /** How many are kept fresh: somebody asked for what they read lately. */
  kept(): number;
  /** Ends what goes on in the background. */
  close(): void;
}

export interface OpenRoutesDeps {
  readonly settings: FeeSettingsSource;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<Attestations, "find"> | undefined;
  /** The chains of a network on the endpoints of our own. */
  readonly chains: (network: NetworkSlug) => ChainAccess;
  /** Longest age of facts while chains answer, in milliseconds; undefined: two blocks of the slower chain, at least 4 s. */
  readonly maxAgeMs: number | undefined;
  readonly maxStaleMs: number;
  readonly clocks: Clocks;
  /** Runs every read that quotes share. */
  readonly onRead?: (network: NetworkSlug, ...read: Parameters<ReadObserver>) => ReturnType<ReadObserver>;
}

const leastMaxAgeMs = 4_000;
const leastRefreshMs = 1_000;
/** How long a route is used that was planned without an attestation, which may be there later. */
const provisionalMs = 60_000;

interface Entry {
  readonly settings: FeeSettings;
  /** When it is to be planned anew, whatever the settings, on the steady clock. */
  readonly until: number;
  readonly route: OpenRoute;
}

export function createOpenRoutes(deps: OpenRoutesDeps): OpenRoutes {
  const { settings, attestations, chains, clocks, onRead } = deps;
  const { steady } = clocks;
  const entries = new Map<string, Entry>();
  const factsByChain = new Map<string, FreshFacts>();
  /** By pool, so that all routes learn from each reading. */
  const windows = new Map<string, UniswapWindow>();
  const closing = new AbortController();

  function known(request: QuoteRequest, current: FeeSettings | undefined): OpenRoute | undefined {
    const entry = entries.get(nameOf(request));
    return entry !== undefined && entry.settings === current && steady() < entry.until ? entry.route : undefined;
  }

  async function terms({ network, token, destination }: QuoteRequest) {
    const message = isCctp(token) ? sampleMessage(destination.slug) : undefined;
    const finding = message === undefined ? undefined : attestations?.find(message.hash);
    const [current, attestation] = await Promise.all([settings.current(network), finding]);
    return { current, attestation, isProvisional: finding !== undefined && attestation === undefined };
  }

  function open(request: QuoteRequest, plan: RoutePlan): OpenRoute {
    const { network, source, destination } = request;
    const pace = paceOf(source, destination, deps);
    const watch = (chain: Chain, needs: ChainNeeds | undefined): Watched | undefined =>
      needs && factsOf(network, chain).watch(`${pace.refreshMs} ${needsName(needs)}`, needs, pace);
    const { usdcSwap } = plan;
    const client = chains(network).client(source.slug);
    const sourceNeeds = usdcSwap && plan.source && { ...plan.source, windows: windowOf(usdcSwap) };
    const swapping = { client, maxAgeMs: pace.maxAgeMs, now: steady, signal: closing.signal };
    return {
      plan,
      pace,
      source: watch(source, sourceNeeds ?? plan.source),
      destination: watch(destination, plan.destination),
      swaps: usdcSwap && createUsdcSwaps({ ...swapping, swap: usdcSwap }),
      quoterFor: keepingTheLast(plan),
    };
  }

  function windowOf(swap: UsdcSwap): ReadonlyMap<string, UniswapWindow> {
    const window = windows.get(swap.pool) ?? createUniswapWindow(swap);
    windows.set(swap.pool, window);
    return new Map([[swap.pool, window]]);
  }

  function factsOf(network: NetworkSlug, chain: Chain): FreshFacts {
    const name = `${network} ${chain.slug}`;
    const known = factsByChain.get(name);
    if (known !== undefined) return known;
    const observed: ReadObserver | undefined = onRead && ((...read) => onRead(network, ...read));
    const client = chains(network).client(chain.slug);
    const facts = createFreshFacts({ chain, client, clocks, onRead: observed });
    factsByChain.set(name, facts);
    return facts;
  }

  return {
    peek: (request) => known(request, settings.peek(request.network)),
    async get(request) {
      const { current, attestation, isProvisional } = await terms(request);
      const opened = known(request, current);
      if (opened !== undefined) return opened;
      const route = open(request, planWith(request, current, attestation));
      const until = isProvisional ? steady() + provisionalMs : Number.POSITIVE_INFINITY;
      entries.set(nameOf(request), { settings: current, until, route });
      return route;
    },
    async plan(request) {
      const { current, attestation } = await terms(request);
      return planWith(request, current, attestation);
    },
    kept() {
      const isKept = ({ route: { source, destination } }: Entry): boolean =>
        Boolean(source?.isKept() || destination?.isKept());
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
export function quoterFrom(plan: RoutePlan, ...known: Parameters<QuoterMaker>): Quoter {
  try {
    return prepareQuotes(plan.snapshot(...known));
  } catch (cause) {
    // A ratio of prices, or a factor of the settings, too large or too small to be written in the token's decimals.
    if (!(cause instanceof RangeError)) throw cause;
    const message = "no fee can be computed from the prices and the fee settings";
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause });
  }
}

function keepingTheLast(plan: RoutePlan): QuoterMaker {
  let from: Parameters<QuoterMaker> | undefined;
  let quoter: Quoter | undefined;
  return (source, destination, prices) => {
    const isSame = from?.[0] === source && from?.[1] === destination && from?.[2] === prices;
    if (quoter !== undefined && isSame) return quoter;
    quoter = quoterFrom(plan, source, destination, prices);
    from = [source, destination, prices];
    return quoter;
  };
}

function planWith(request: QuoteRequest, settings: FeeSettings, attestation: string | undefined): RoutePlan {
  return planRoute({ ...request, network: networkOf(request.network) }, settings, attestation);
}

function nameOf({ network, token, source, destination }: QuoteRequest): string {
  return `${network} ${token.name} ${source.slug} ${destination.slug}`;
}

/** About once per block of the slower chain, at most once a second, and often enough for the age that is asked for. */
function paceOf(source: Chain, destination: Chain, { maxAgeMs, maxStaleMs }: OpenRoutesDeps): Pace {
  const blockMs = Math.max(source.blockMs, destination.blockMs);
  const longest = maxAgeMs ?? Math.max(leastMaxAgeMs, 2 * blockMs);
  return {
    refreshMs: Math.max(leastRefreshMs, Math.min(blockMs, longest / 2)),
    maxAgeMs: longest,
    maxStaleMs: Math.max(longest, maxStaleMs),
  };
}
