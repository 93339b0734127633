import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { ServiceError } from "../../../../src/errors.js";
import { type FeeSettings, getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import type { PriceTable } from "../../../../src/prices/token-prices.js";
import { ChainState } from "../../../../src/quotes/state/chain-state.js";
import {
  type CachedRoute,
  createQuoterFromPlan,
  RouteCache,
  type RouteCacheDeps,
} from "../../../../src/quotes/state/route-cache.js";
import type { RoutePlan } from "../../../../src/quotes/state/route-plan.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { createQuoteChainStub } from "../../../support/stubs/quote-chain-stub.js";
import { addressOf, createQuoteRequest } from "../../../support/stubs/quote-routes.js";
import { createSharedStoreStub } from "../../../support/stubs/shared-store.js";

const prices = { getUsdPrice: () => 1, getOrigin: () => undefined } as unknown as PriceTable;

const usdtRequest = createQuoteRequest("USDT", "arbitrum", "optimism");
const cctpRequest = createQuoteRequest("USDC", "arbitrum", "polygon");
/** Nothing is read on Ethereum. */
const fromEthereum = createQuoteRequest("USDT", "ethereum", "optimism");

function setup(options: Partial<RouteCacheDeps> = {}) {
  const clock = { time: 1_000_000 };
  const settings: { current: FeeSettings | undefined } = { current: getBuiltInFeeSettings("mainnet") };
  const reads: string[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const pool = { decimals: 6, balances: [10n ** 12n, 10n ** 12n] as const, aPrecise: 20_000n, swapFee: 4_000_000n };
  function getClient(slug: string): ChainClient {
    const stub = createQuoteChainStub({
      ...{
        slug,
        pools: new Map([[addressOf("USDT", slug, "l2SaddleSwap"), pool]]),
        gasPrice: 1n,
        estimateGas: () => 1n,
        l1Fee: () => 0n,
      },
      ...{ minBonderFeeAbsolute: () => 0n, minBonderFee: 0n },
    });
    return {
      ...stub,
      async send(method, params, signal) {
        if (method !== "eth_getBlockByNumber") return stub.send(method, params, signal);
        reads.push(slug);
        return { number: "0x1", timestamp: "0x1" };
      },
      sendBatch(calls, signal) {
        reads.push(slug);
        signals.push(signal);
        return stub.sendBatch(calls, signal);
      },
    };
  }
  const routes = closeAfterTest(
    new RouteCache({
      settings: {
        peek: () => settings.current,
        getCurrent: async () => settings.current ?? expect.unreachable("there are none"),
      },
      attestations: undefined,
      chains: () => ({ hasCustomEndpoint: () => false, getClient }),
      maxAgeMs: undefined,
      maxStaleMs: 30_000,
      clocks: { now: () => clock.time, monotonicNow: () => clock.time },
      ...options,
    }),
  );
  return { routes, clock, settings, reads, signals };
}

async function readStates({ sourceSubscription, destinationSubscription }: CachedRoute) {
  return [await sourceSubscription?.get(), await destinationSubscription?.get()] as const;
}

/** A monitor for which these chains are stalled. */
function createBlockAges(stalled: ReadonlySet<string>): NonNullable<RouteCacheDeps["blockAges"]> {
  return {
    stalledCount: () => stalled.size,
    findStalled: (_, slug) => (stalled.has(slug) ? { timestamp: 0, ageMs: 300_000 } : undefined),
    isTooOld: () => false,
    getAgeMs: () => 0,
  };
}

describe("a route", () => {
  test("is planned once for the same settings, and again for others", async () => {
    const { routes, settings } = setup();
    expect(routes.peek(usdtRequest)).toBeUndefined();
    const route = await routes.get(usdtRequest);
    expect(routes.peek({ ...usdtRequest, amountIn: 1n })).toBe(route);
    expect(await routes.get(usdtRequest)).toBe(route);
    settings.current = { ...getBuiltInFeeSettings("mainnet") };
    expect(routes.peek(usdtRequest)).toBeUndefined();
    const planned = await routes.get(usdtRequest);
    expect(planned).not.toBe(route);
    expect(routes.peek(usdtRequest)).toBe(planned);
    settings.current = undefined;
    expect(routes.peek(usdtRequest)).toBeUndefined();
  });

  test.each([
    ["of CCTP without an attestation for less than a minute", cctpRequest, undefined, [true, false, false], 1],
    ["of CCTP with an attestation for ever", cctpRequest, "0x5a", [true, true, true], 1],
    ["without CCTP for ever", usdtRequest, undefined, [true, true, true], 0],
  ])("%s is used", async (_, request, attestation, expected, lookups) => {
    const asked: string[] = [];
    const find = async (hash: string) => {
      asked.push(hash);
      return attestation;
    };
    const { routes, clock } = setup({ attestations: { find } as RouteCacheDeps["attestations"] });
    const route = await routes.get(request);
    const used = [59_999, 1, 10 ** 9].map((ms) => {
      clock.time += ms;
      return routes.peek(request) === route;
    });
    expect(used).toEqual(expected);
    expect(asked).toHaveLength(lookups);
  });

  test("of CCTP is planned for ever if there is no source of attestations", async () => {
    const { routes, clock } = setup();
    const route = await routes.get(cctpRequest);
    clock.time += 60_000;
    expect(routes.peek(cctpRequest)).toBe(route);
  });

  test("shares the state of a chain with the other routes of that chain, and tells who observes its reads", async () => {
    const observed: unknown[] = [];
    const { routes, reads } = setup({
      onRead(network, read, run) {
        observed.push([network, read]);
        return run();
      },
    });
    const [first, second] = [
      await routes.get(usdtRequest),
      await routes.get(createQuoteRequest("USDT", "arbitrum", "polygon")),
    ];
    expect(first.sourceSubscription).toBe(second.sourceSubscription);
    expect(first.sourceSubscription?.cache).toBe(second.sourceSubscription?.cache);
    expect(first.destinationSubscription?.cache).not.toBe(second.destinationSubscription?.cache);
    await Promise.all([readStates(first), readStates(second)]);
    expect(new Set(reads)).toEqual(new Set(["arbitrum", "optimism", "polygon"]));
    expect(observed).toContainEqual(["mainnet", { chain: "arbitrum", readSetCount: 1 }]);
  });
});

describe("several processes", () => {
  test("read a chain once for all, and report what they receive", async () => {
    const store = createSharedStoreStub();
    const received: unknown[] = [];
    const onReceived: RouteCacheDeps["onReceived"] = (network, { slug }) => received.push([network, slug]);
    const started = [{}, { onReceived }, {}].map((options) => setup({ ...options, sharedCache: store.start() }));
    for (const { routes } of started) await readStates(await routes.get(usdtRequest));
    expect(started.map(({ reads }) => [...new Set(reads)].toSorted())).toEqual([["arbitrum", "optimism"], [], []]);
    expect(received).toEqual(["arbitrum", "optimism"].map((slug) => ["mainnet", slug]));
  });

  test("plan the routes of each other, to read what these need", async () => {
    const store = createSharedStoreStub();
    const [first, second] = [setup({ sharedCache: store.start() }), setup({ sharedCache: store.start() })];
    const theirs = createQuoteRequest("USDT", "polygon", "optimism");
    await (await second.routes.get(theirs)).destinationSubscription?.get();
    await (await first.routes.get(usdtRequest)).getFullInputs().destinationSubscription?.get();
    await expect.poll(() => first.routes.peek(theirs)).toBeDefined();
  });
});

describe("active routes", () => {
  test.each([
    ["two chains", usdtRequest],
    ["a destination only", fromEthereum],
  ])("are those with %s whose state was requested within 15 s, with or without details", async (_, request) => {
    const { routes, clock } = setup();
    const route = await routes.get(request);
    await routes.get(cctpRequest);
    expect([routes.countActive(), route.isActive()]).toEqual([0, false]);
    await readStates(route);
    expect([routes.countActive(), route.isActive()]).toEqual([1, true]);
    clock.time += 15_001;
    expect([routes.countActive(), route.isActive()]).toEqual([0, false]);
    await route.getFullInputs().destinationSubscription?.get();
    expect([routes.countActive(), route.isActive()]).toEqual([1, true]);
    expect(route.getFullInputs()).toBe(route.getFullInputs());
  });
});

describe("the newest block of a chain that a route does not read", () => {
  const unlimited = { ...fromEthereum, source: { ...fromEthereum.source, maxBlockAgeMs: 0 } };
  test.each([
    ["is read with new inputs where the age of blocks is limited", fromEthereum, createBlockAges(new Set()), 1],
    ["is not read where the chain has no limit", unlimited, createBlockAges(new Set()), 0],
    ["is not read where no age is judged", fromEthereum, undefined, 0],
  ])("%s", async (_, request, blockAges, count) => {
    const { routes, reads } = setup({ blockAges });
    const route = await routes.get(request);
    const [source, destination] = await readStates(route);
    expect(source).toBeUndefined();
    expect(reads).not.toContain("ethereum");
    route.getQuoter(source, destination, prices);
    await new Promise((resolve) => setImmediate(resolve));
    expect(reads.filter((slug) => slug === "ethereum")).toHaveLength(count);
  });
});

test.each([
  ["arbitrum", true],
  ["polygon", false],
])("while %s is stalled, state of arbitrum that is 3.5 s old is read again: %s", async (slug, isReadAgain) => {
  const stalled = new Set<string>();
  const { routes, clock } = setup({ blockAges: createBlockAges(stalled) });
  const route = await routes.get(usdtRequest);
  await readStates(route);
  clock.time += 3_500;
  expect(route.sourceSubscription?.get()).not.toBeInstanceOf(Promise);
  stalled.add(slug);
  expect(route.sourceSubscription?.get() instanceof Promise).toBe(isReadAgain);
});

test("closing ends the reads", async () => {
  const { routes, signals } = setup();
  await readStates(await routes.get(usdtRequest));
  expect(signals.map((signal) => signal?.aborted)).toEqual(signals.map(() => false));
  routes.close();
  expect(signals).not.toEqual([]);
  expect(signals.map((signal) => signal?.aborted)).toEqual(signals.map(() => true));
});

describe("the quoter of a route", () => {
  test("is the previous one only for the same states and prices", async () => {
    const { routes } = setup();
    const route = await routes.get(usdtRequest);
    const [source, destination] = (await readStates(route)) as [ChainState, ChainState];
    const quoter = route.getQuoter(source, destination, prices);
    expect(route.getQuoter(source, destination, prices)).toBe(quoter);
    const others: Parameters<typeof route.getQuoter>[] = [
      [new ChainState(source, "polygon"), destination, prices],
      [source, new ChainState(destination, "arbitrum"), prices],
      [source, destination, { ...prices }],
    ];
    for (const inputs of others) {
      const other = route.getQuoter(...inputs);
      expect(other).not.toBe(quoter);
      expect(route.getQuoter(...inputs)).toBe(other);
      expect(route.getQuoter(source, destination, prices)).not.toBe(other);
    }
  });

  test.each([
    [
      new RangeError("too large"),
      { reason: "UPSTREAM_UNAVAILABLE", message: /^no fee can be computed from the prices/ },
    ],
    [
      new ServiceError("UPSTREAM_UNAVAILABLE", "no gas price"),
      { reason: "UPSTREAM_UNAVAILABLE", message: /^no gas price$/ },
    ],
    [new TypeError("a bug"), { reason: undefined, message: /^a bug$/ }],
  ])("fails with %s as it is, unless no fee can be computed", (thrown, { reason, message }) => {
    const plan = {
      buildSnapshot() {
        throw thrown;
      },
    } as unknown as RoutePlan;
    const error = expect.objectContaining({ message: expect.stringMatching(message), ...(reason && { reason }) });
    expect(() => createQuoterFromPlan(plan, undefined, undefined, prices)).toThrow(error);
  });
});
