import type { ChainAccess } from "../chain/chains.js";
import { ServiceError } from "../errors.js";
import type { Attestations } from "../hop/attestations.js";
import { sampleMessage } from "../hop/cctp.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import { type Chain, type NetworkSlug, networkOf } from "../hop/networks.js";
import type { UsdcSwap } from "../hop/uniswap.js";
import type { PriceBook, TokenPrices } from "../prices/token-prices.js";
import { type ChainFacts, type ChainNeeds, readChainFacts } from "./chain-facts.js";
import type { DatedQuote, QuoteEngine, QuoteRequest } from "./engine.js";
import { type Clocks, createFreshFacts, type FreshFacts, type Pace, readTime, type Watched } from "./fresh-facts.js";
import { prepareQuotes, type Quote, type Quoter } from "./quote.js";
import { isCctp, needsName, planRoute, type RoutePlan } from "./route-plan.js";
import { SwapReverts } from "./stable-swap.js";
import { createUniswapWindow, type UniswapWindow } from "./uniswap-window.js";
import { createUsdcSwaps, type DatedAmount, type UsdcSwaps } from "./usdc-swaps.js";

export interface SnapshotEngineDeps {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Attestations | undefined;
  /** The chains of a network on the endpoints of our own. */
  readonly chains: (network: NetworkSlug) => ChainAccess;
  /** Longest age of facts while chains answer, in milliseconds; undefined: two blocks of the slower chain, at least 4 s. */
  readonly maxAgeMs: number | undefined;
  readonly maxStaleMs: number;
  readonly clocks: Clocks;
  /** Told of every quote that was given to a caller. */
  readonly onQuote?: (given: GivenQuote) => void;
}

/** A quote and what it was made from. */
export interface GivenQuote {
  readonly request: QuoteRequest;
  readonly quote: Quote;
  readonly source: ChainFacts | undefined;
  readonly destination: ChainFacts | undefined;
}

export interface SnapshotEngine extends QuoteEngine {
  /** Ends what goes on in the background. */
  close(): void;
}

const leastMaxAgeMs = 4_000;
const leastRefreshMs = 1_000;
/** How long a route is used that was planned without an attestation, which may be there later. */
const provisionalMs = 60_000;

/** What quotes of a route share, for one state of the settings. */
interface Route {
  readonly settings: FeeSettings;
  /** When it is to be planned anew, whatever the settings, on the steady clock. */
  readonly until: number;
  readonly plan: RoutePlan;
  readonly pace: Pace;
  readonly source: Watched | undefined;
  readonly destination: Watched | undefined;
  readonly swaps: UsdcSwaps | undefined;
  prepared: Prepared | undefined;
}

/** The part of a route's quotes that is the same for every amount, and what it was made from. */
interface Prepared {
  readonly source: ChainFacts | undefined;
  readonly destination: ChainFacts | undefined;
  readonly prices: PriceBook;
  readonly quoter: Quoter;
}

/** Quotes by arithmetic on facts that are read once for all callers and kept fresh while somebody asks. */
export function createSnapshotEngine(deps: SnapshotEngineDeps): SnapshotEngine {
  const { settings, prices, attestations, chains, clocks, onQuote } = deps;
  const { now, steady } = clocks;
  const routes = new Map<string, Route>();
  const factsByChain = new Map<string, FreshFacts>();
  /** By pool, so that all routes learn from each reading. */
  const windows = new Map<string, UniswapWindow>();
  const closing = new AbortController();

  function quote(request: QuoteRequest): DatedQuote | Promise<DatedQuote> {
    const route = routes.get(nameOf(request));
    const current = settings.peek(request.network);
    if (route !== undefined && isOpen(route, current)) return quoteOn(route, request);
    return routeFor(request).then((opened) => quoteOn(opened, request));
  }

  /** The route as the newest settings have it. */
  async function routeFor(request: QuoteRequest): Promise<Route> {
    const [current, attestation] = await Promise.all([settings.current(request.network), attestationFor(request)]);
    const name = nameOf(request);
    const known = routes.get(name);
    const route = known !== undefined && isOpen(known, current) ? known : openRoute(request, current, attestation);
    routes.set(name, route);
    return route;
  }

  function isOpen(route: Route, current: FeeSettings | undefined): boolean {
    return route.settings === current && steady() < route.until;
  }

  async function planFor(request: QuoteRequest): Promise<RoutePlan> {
    const [current, attestation] = await Promise.all([settings.current(request.network), attestationFor(request)]);
    return planRoute({ ...request, network: networkOf(request.network) }, current, attestation);
  }

  function openRoute(request: QuoteRequest, current: FeeSettings, attestation: string | undefined): Route {
    const { network, source, destination } = request;
    const plan = planRoute({ ...request, network: networkOf(network) }, current, attestation);
    const pace = paceOf(source, destination, deps);
    const watch = (chain: Chain, needs: ChainNeeds | undefined): Watched | undefined =>
      needs && factsOf(network, chain).watch(`${pace.refreshMs} ${needsName(needs)}`, needs, pace);
    const { usdcSwap } = plan;
    const client = chains(network).client(source.slug);
    const sourceNeeds = usdcSwap && plan.source && { ...plan.source, windows: windowOf(usdcSwap) };
    const isProvisional = attestations !== undefined && isCctp(request.token) && attestation === undefined;
    return {
      settings: current,
      until: isProvisional ? steady() + provisionalMs : Number.POSITIVE_INFINITY,
      plan,
      pace,
      source: watch(source, sourceNeeds ?? plan.source),
      destination: watch(destination, plan.destination),
      swaps:
        usdcSwap &&
        createUsdcSwaps({ client, swap: usdcSwap, maxAgeMs: pace.maxAgeMs, now: steady, signal: closing.signal }),
      prepared: undefined,
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
    const facts = createFreshFacts({ chain, client: chains(network).client(chain.slug), clocks });
    factsByChain.set(name, facts);
    return facts;
  }

  function quoteOn(route: Route, request: QuoteRequest): DatedQuote | Promise<DatedQuote> {
    // All are asked before any is waited for.
    const source = route.source?.ask();
    const destination = route.destination?.ask();
    const book = prices.peek(route.plan.priced);
    if (source instanceof Promise || destination instanceof Promise || book === undefined) {
      const all = [source, destination, book ?? prices.book(route.plan.priced)] as const;
      return Promise.all(all).then((each) => finish(route, request, ...each));
    }
    return finish(route, request, source, destination, book);
  }

  function finish(
    route: Route,
    request: QuoteRequest,
    source: ChainFacts | undefined,
    destination: ChainFacts | undefined,
    book: PriceBook,
  ): DatedQuote | Promise<DatedQuote> {
    const known = route.prepared;
    const isCurrent = known?.source === source && known?.destination === destination && known?.prices === book;
    const prepared =
      known !== undefined && isCurrent
        ? known
        : { source, destination, prices: book, quoter: prepare(route.plan, source, destination, book) };
    route.prepared = prepared;
    try {
      const swapped = route.swaps?.amountOut(request.amountIn, source);
      if (!(swapped instanceof Promise)) return give(route, request, prepared, swapped);
      return swapped.then((each) => give(route, request, prepared, each)).catch(toServiceError);
    } catch (error) {
      return toServiceError(error);
    }
  }

  function give(
    { pace }: Route,
    request: QuoteRequest,
    { source, destination, quoter }: Prepared,
    swapped: DatedAmount | undefined,
  ): DatedQuote {
    const time = steady();
    const result = quoter(request.amountIn, request.slippage, Math.floor(now() / 1000), swapped?.amountOut);
    const readAt = Math.min(source?.readAt ?? time, destination?.readAt ?? time, swapped?.readAt ?? time);
    onQuote?.({ request, quote: result, source, destination });
    return {
      quote: result,
      freshness: { ageMs: time - readAt, maxAgeMs: pace.maxAgeMs, refreshMs: pace.refreshMs },
    };
  }

  async function attestationFor({ token, destination }: QuoteRequest): Promise<string | undefined> {
    const message = isCctp(token) ? sampleMessage(destination.slug) : undefined;
    if (attestations === undefined || message === undefined) return undefined;
    try {
      return await attestations.find(message.hash);
    } catch (cause) {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "the CCTP attestation source gives no answer", { cause });
    }
  }

  return {
    quote,
    async quotePrivately(request, access, { signal }) {
      const { source, destination, amountIn, slippage } = request;
      const isOwn = (chain: Chain): boolean => access.isCustom(chain.slug);
      // Of chains that the caller did not name it is what everybody shares.
      const route = isOwn(source) && isOwn(destination) ? undefined : await routeFor(request);
      const plan = route?.plan ?? (await planFor(request));
      const read = (chain: Chain, needs: ChainNeeds | undefined, shared: Watched | undefined) =>
        isOwn(chain)
          ? needs && readChainFacts(access.client(chain.slug), chain, [needs], readTime(clocks), signal)
          : shared?.ask();
      const { usdcSwap } = plan;
      const client = access.client(source.slug);
      const ownSwaps =
        usdcSwap && isOwn(source) && createUsdcSwaps({ client, swap: usdcSwap, maxAgeMs: 0, now: steady, signal });
      try {
        const [from, to, book, ownSwap] = await Promise.all([
          read(source, plan.source, route?.source),
          read(destination, plan.destination, route?.destination),
          prices.book(plan.priced),
          ownSwaps ? ownSwaps.amountOut(amountIn) : undefined,
        ]);
        const swapped = ownSwap ?? (isOwn(source) ? undefined : await route?.swaps?.amountOut(amountIn, from));
        return prepare(plan, from, to, book)(amountIn, slippage, Math.floor(now() / 1000), swapped?.amountOut);
      } catch (error) {
        return toServiceError(error);
      }
    },
    close() {
      closing.abort();
      for (const facts of factsByChain.values()) facts.close();
    },
  };
}

function nameOf({ network, token, source, destination }: QuoteRequest): string {
  return `${network} ${token.name} ${source.slug} ${destination.slug}`;
}

/** About once per block of the slower chain, at most once a second, and often enough for the age that is asked for. */
function paceOf(source: Chain, destination: Chain, { maxAgeMs, maxStaleMs }: SnapshotEngineDeps): Pace {
  const blockMs = Math.max(source.blockMs, destination.blockMs);
  const longest = maxAgeMs ?? Math.max(leastMaxAgeMs, 2 * blockMs);
  return {
    refreshMs: Math.max(leastRefreshMs, Math.min(blockMs, longest / 2)),
    maxAgeMs: longest,
    maxStaleMs: Math.max(longest, maxStaleMs),
  };
}

function prepare(
  plan: RoutePlan,
  source: ChainFacts | undefined,
  destination: ChainFacts | undefined,
  prices: PriceBook,
): Quoter {
  try {
    return prepareQuotes(plan.snapshot(source, destination, prices));
  } catch (cause) {
    // A ratio of prices, or a factor of the settings, too large or too small to be written in the token's decimals.
    if (!(cause instanceof RangeError)) throw cause;
    throw new ServiceError("UPSTREAM_UNAVAILABLE", "no fee can be computed from the prices and the fee settings", {
      cause,
    });
  }
}

function toServiceError(error: unknown): never {
  if (!(error instanceof SwapReverts)) throw error;
  const message = "the pools of this route cannot swap this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
}
