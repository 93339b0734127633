import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors.js";
import type { PriceTable, TokenPrices } from "../../../src/prices/token-prices.js";
import { QuotePreparer } from "../../../src/quotes/prepare-quotes.js";
import type { ChainState } from "../../../src/quotes/state/chain-state.js";
import type { ChainStateCache, ChainStateSubscription } from "../../../src/quotes/state/chain-state-cache.js";
import type { QuoteRequest } from "../../../src/quotes/state/quote-request.js";
import type { CachedRoute, RouteCache } from "../../../src/quotes/state/route-cache.js";
import { createQuoteRequest } from "../../support/stubs/quote-routes.js";

const requester = { caller: "a", signal: new AbortController().signal };
const POOL = "0xpool";
const TABLE = { getUsdPrice: () => 1 } as unknown as PriceTable;

const createRequest = (from: string, to: string): QuoteRequest =>
  createQuoteRequest("USDC.e", from, to, { amountIn: 1n, slippagePercent: 0 });

interface SetupOptions {
  /** Whether states have to be awaited, or the only chain of which they have. */
  readonly isAsync?: boolean | string;
  readonly hasPrices?: boolean;
  /** The chain that no route reads. */
  readonly unread?: string;
  /** The chain that does not respond. */
  readonly failing?: string;
  /** The chain whose state lacks a value. */
  readonly lacking?: string;
}

/** Routes of which each subscribes to both of its chains; each read of a chain is a state of its own. */
function setup({ isAsync = false, hasPrices = true, unread = "", failing = "", lacking = "" }: SetupOptions = {}) {
  const reads: string[] = [];
  const known = new Map<string, CachedRoute>();
  const caches = new Map<string, ChainStateCache>();
  let ticksAfterRead = 0;

  function getCache(slug: string): ChainStateCache {
    let count = 0;
    const read = (kind: string, subscriptions: readonly ChainStateSubscription[]): ChainState => {
      count += 1;
      const number = count;
      reads.push(`${kind} ${slug} ${subscriptions.length}`);
      return { slug, hasTicks: (pool: string) => pool === POOL && number > ticksAfterRead } as unknown as ChainState;
    };
    const cache = caches.get(slug) ?? {
      subscribe: () => expect.unreachable("not subscribed here"),
      getTogether: (subscriptions) => {
        if (slug === failing) return Promise.reject(new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} is down`));
        const state = read("get", subscriptions);
        return isAsync === true || isAsync === slug ? Promise.resolve(state) : state;
      },
      reloadTogether: async (subscriptions) => read("reload", subscriptions),
      close: () => {},
    };
    caches.set(slug, cache as ChainStateCache);
    return cache as ChainStateCache;
  }

  function createRoute({ source, destination }: QuoteRequest): CachedRoute {
    const subscribe = (slug: string) =>
      slug === unread
        ? undefined
        : {
            cache: getCache(slug),
            assertCoveredBy() {
              if (slug === lacking) throw new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} lacks a value`);
            },
          };
    const name = `${source.slug} ${destination.slug}`;
    const route = {
      sourceSubscription: subscribe(source.slug),
      destinationSubscription: subscribe(destination.slug),
      getBatchQuoter: `quoter of ${name}`,
      plan: { pricedTokens: [], usdcSwapPool: source.slug === "polygon" ? { address: POOL } : undefined },
      getFullInputs: () => ({ ...route, getBatchQuoter: `full quoter of ${name}` }),
    };
    return route as unknown as CachedRoute;
  }

  const routes: Pick<RouteCache, "peek" | "get"> = {
    peek: ({ source, destination }) => known.get(`${source.slug} ${destination.slug}`),
    async get(request) {
      if (request.source.slug === "gnosis") throw new ServiceError("UPSTREAM_UNAVAILABLE", "no settings");
      return createRoute(request);
    },
  };
  const prices = {
    peekTable: () => (hasPrices ? TABLE : undefined),
    getTable: async () => TABLE,
  } as unknown as TokenPrices;
  const preparer = new QuotePreparer(
    routes,
    prices,
    ({ getQuoter, request, sourceState, destinationState, priceTable }) =>
      ({ quote: getQuoter, request, source: sourceState, destination: destinationState, table: priceTable }) as never,
  );
  return {
    reads,
    know: (request: QuoteRequest) =>
      known.set(`${request.source.slug} ${request.destination.slug}`, createRoute(request)),
    setTicksAfterRead: (count: number) => {
      ticksAfterRead = count;
    },
    async quote(requests: readonly QuoteRequest[]): Promise<readonly unknown[]> {
      const prepared = preparer.prepare(requests, requester);
      return Promise.all(
        prepared.map(async (one) => {
          try {
            return await (await one)();
          } catch (error) {
            return error instanceof ServiceError ? error.message : error;
          }
        }),
      );
    },
    prepare: (requests: readonly QuoteRequest[]) => preparer.prepare(requests, requester),
  };
}

const toOptimism = createRequest("polygon", "optimism");
const toBase = createRequest("polygon", "base");

describe("a batch", () => {
  test.each([false, true])("reads each chain once for all of its routes (asynchronously: %s)", async (isAsync) => {
    const { quote, reads, know } = setup({ isAsync });
    know(toOptimism);
    know(toBase);
    const [first, second, third] = (await quote([toOptimism, toBase, toOptimism])) as { source: ChainState }[];
    expect(reads.sort()).toEqual(["get base 1", "get optimism 1", "get polygon 2"]);
    expect(first?.source).toBe(second?.source);
    expect(first).toEqual(third);
    expect(first).toMatchObject({ quote: "quoter of polygon optimism", request: toOptimism });
  });

  test.each([
    ["are cached", false, true],
    ["are cached but the prices", false, false],
    ["are being read but the prices", true, true],
    ["are being read", true, false],
    ["are cached but the source's state", "polygon", true],
    ["are cached but the destination's state", "optimism", true],
  ])("computes each quote from the states of its chains and the prices, if these %s", async (_, isAsync, hasPrices) => {
    const { quote, know } = setup({ isAsync, hasPrices });
    know(toOptimism);
    const inputs = { source: { slug: "polygon" }, destination: { slug: "optimism" } };
    const [computed] = (await quote([toOptimism])) as { table: PriceTable }[];
    expect(computed).toMatchObject(inputs);
    expect(computed?.table).toBe(TABLE);
  });

  test.each([
    ["polygon", { source: undefined, destination: { slug: "optimism" } }],
    ["optimism", { source: { slug: "polygon" }, destination: undefined }],
  ])("reads nothing on %s where the route needs nothing of it", async (unread, inputs) => {
    const { quote, know, reads } = setup({ unread });
    know(toOptimism);
    expect(await quote([toOptimism])).toMatchObject([inputs]);
    expect(reads).toHaveLength(1);
  });

  test.each([
    [{ failing: "polygon" }, "polygon is down"],
    [{ failing: "optimism" }, "optimism is down"],
    [{ lacking: "polygon" }, "polygon lacks a value"],
    [{ lacking: "optimism" }, "optimism lacks a value"],
  ])("fails where a chain is %j, and not on other routes", async (options, message) => {
    const { quote, know } = setup(options);
    const other = createRequest("arbitrum", "base");
    know(toOptimism);
    know(other);
    expect(await quote([toOptimism, other])).toEqual([message, expect.objectContaining({ request: other })]);
  });

  test("is prepared at once if everything is cached", () => {
    const { prepare, know } = setup();
    know(toOptimism);
    expect(prepare([toOptimism])[0]).toBeTypeOf("function");
  });

  test("waits for routes that are not planned yet, and only one of them fails", async () => {
    const { quote, reads, know } = setup();
    know(toOptimism);
    const requests = [createRequest("gnosis", "base"), toOptimism, toBase, toBase];
    const outcomes = await quote(requests);
    expect(outcomes[0]).toBe("no settings");
    expect(outcomes.slice(1)).toMatchObject(requests.slice(1).map((request) => ({ request })));
    expect(reads.filter((read) => read.includes("polygon"))).toEqual(["get polygon 2"]);
  });

  test("reads more for a quote with details", async () => {
    const { quote, know } = setup();
    know(toOptimism);
    expect(await quote([{ ...toOptimism, isFull: true }])).toMatchObject([
      { quote: "full quoter of polygon optimism" },
    ]);
  });
});

describe("a swap of USDC.e that is inverted needs the ticks of its pool", () => {
  const exact = { ...toOptimism, amountIn: 0n, receiveAmount: 5n };
  const readsOf = async (request: QuoteRequest, ticksAfterRead: number, isAsync: boolean) => {
    const { quote, know, reads, setTicksAfterRead } = setup({ isAsync });
    know(request);
    setTicksAfterRead(ticksAfterRead);
    await quote([request]);
    return reads.filter((read) => read.includes("polygon"));
  };

  test.each([false, true])("and reads the source again if they are not known (asynchronously: %s)", async (isAsync) => {
    expect(await readsOf(exact, 1, isAsync)).toEqual(["get polygon 1", "reload polygon 1"]);
    expect(await readsOf(exact, 0, isAsync)).toEqual(["get polygon 1"]);
    expect(await readsOf(toOptimism, 1, isAsync)).toEqual(["get polygon 1"]);
  });

  test("and other swaps need none", async () => {
    const { quote, know, reads, setTicksAfterRead } = setup();
    const fromArbitrum = { ...createRequest("arbitrum", "optimism"), receiveAmount: 5n };
    know(fromArbitrum);
    setTicksAfterRead(1);
    await quote([fromArbitrum]);
    expect(reads).toEqual(["get arbitrum 1", "get optimism 1"]);
  });
});
