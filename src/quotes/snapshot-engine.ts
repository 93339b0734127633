import { ServiceError } from "../errors.js";
import type { Chain } from "../hop/networks.js";
import type { PriceBook, TokenPrices } from "../prices/token-prices.js";
import type { Quote } from "./math/quote.js";
import { SwapReverts } from "./math/stable-swap.js";
import type { DatedQuote, QuoteEngine, QuoteRequest, Waiting } from "./quote-engine.js";
import { type ChainFacts, readChainFacts } from "./state/chain-state.js";
import { readTime, type Watched } from "./state/chain-state-cache.js";
import type { ChainNeeds } from "./state/read-set.js";
import { createOpenRoutes, type OpenRoute, type OpenRoutesDeps, quoterFrom } from "./state/route-cache.js";
import { createUsdcSwaps } from "./state/usdc-swap-quoter.js";

export interface SnapshotEngineDeps extends OpenRoutesDeps {
  readonly prices: TokenPrices;
  /** Told of every quote that all may share how old its facts are, in milliseconds. */
  readonly onAge?: (ageMs: number) => void;
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
  /** How many routes are kept fresh. */
  routesKept(): number;
  /** Ends what goes on in the background. */
  close(): void;
}

/** Quotes by arithmetic on facts that are read once for all callers and kept fresh while somebody asks. */
export function createSnapshotEngine(deps: SnapshotEngineDeps): SnapshotEngine {
  const { prices, clocks, onAge, onQuote } = deps;
  const { now, steady } = clocks;
  const routes = createOpenRoutes(deps);

  function quoteOn(route: OpenRoute, request: QuoteRequest, by: Waiting): DatedQuote | Promise<DatedQuote> {
    // All are asked before any is waited for.
    const source = route.source?.ask();
    const destination = route.destination?.ask();
    const book = prices.peek(route.plan.priced);
    if (source instanceof Promise || destination instanceof Promise || book === undefined) {
      const all = [source, destination, book ?? prices.book(route.plan.priced)] as const;
      return Promise.all(all).then((each) => finish(route, request, by, ...each));
    }
    return finish(route, request, by, source, destination, book);
  }

  function finish(
    route: OpenRoute,
    request: QuoteRequest,
    by: Waiting,
    source: ChainFacts | undefined,
    destination: ChainFacts | undefined,
    book: PriceBook,
  ): DatedQuote | Promise<DatedQuote> {
    const quoter = route.quoterFor(source, destination, book);
    /** @param swapped what USDC.e gave */
    function give(swapped: { readonly amountOut: bigint; readonly readAt: number } | undefined): DatedQuote {
      const { maxAgeMs, refreshMs } = route.pace;
      const quote = quoter(request.amountIn, request.slippage, Math.floor(now() / 1000), swapped?.amountOut);
      const time = steady();
      const readAt = Math.min(source?.readAt ?? time, destination?.readAt ?? time, swapped?.readAt ?? time);
      const ageMs = time - readAt;
      onAge?.(ageMs);
      onQuote?.({ request, quote, source, destination });
      return { quote, freshness: { ageMs, maxAgeMs, refreshMs } };
    }
    try {
      const swapped = route.swaps?.amountOut(request.amountIn, by, source);
      return swapped instanceof Promise ? swapped.then(give).catch(toServiceError) : give(swapped);
    } catch (error) {
      return toServiceError(error);
    }
  }

  return {
    quote(request, by) {
      const route = routes.peek(request);
      return route === undefined
        ? routes.get(request).then((opened) => quoteOn(opened, request, by))
        : quoteOn(route, request, by);
    },
    async quotePrivately(request, access, by) {
      const { signal } = by;
      const { source, destination, amountIn, slippage } = request;
      const isOwn = (chain: Chain): boolean => access.isCustom(chain.slug);
      // Of chains that the caller did not name it is what everybody shares.
      const route = isOwn(source) && isOwn(destination) ? undefined : await routes.get(request);
      const plan = route?.plan ?? (await routes.plan(request));
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
          ownSwaps ? ownSwaps.amountOut(amountIn, by) : undefined,
        ]);
        const swapped = ownSwap ?? (isOwn(source) ? undefined : await route?.swaps?.amountOut(amountIn, by, from));
        return quoterFrom(plan, from, to, book)(amountIn, slippage, Math.floor(now() / 1000), swapped?.amountOut);
      } catch (error) {
        return toServiceError(error);
      }
    },
    routesKept: () => routes.kept(),
    close: () => routes.close(),
  };
}

function toServiceError(error: unknown): never {
  if (!(error instanceof SwapReverts)) throw error;
  const message = "the pools of this route cannot swap this amount";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
}
