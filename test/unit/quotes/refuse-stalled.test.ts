import { describe, expect, test } from "vitest";
import type { NetworkChainClients } from "../../../src/chain/chains.js";
import type { BlockReading } from "../../../src/chain/heads/head-tracker.js";
import type { DetailedQuote, PreparedQuote, QuoteEngine, TimestampedQuote } from "../../../src/quotes/quote-engine.js";
import { assertStateYoung, refuseStalled } from "../../../src/quotes/refuse-stalled.js";
import type { ChainState } from "../../../src/quotes/state/chain-state.js";
import { createQuoteRequest } from "../../support/stubs/quote-routes.js";

const NOW = 1_795_000_000_000;
/** The same on the monotonic clock. */
const READ_AT = 5_000;
const getAgeMs = ({ timestamp, readAt }: BlockReading): number => NOW + readAt - READ_AT - timestamp * 1000;
const createRequest = (from: string, to: string) => createQuoteRequest("USDT", from, to);
const toPolygon = createRequest("arbitrum", "polygon");
const fromPolygon = createRequest("polygon", "arbitrum");
const others = createRequest("optimism", "arbitrum");
const requester = { caller: "a", signal: new AbortController().signal };

const quote = { amountIn: 1n } as DetailedQuote;
const timestamped: TimestampedQuote = { quote, freshness: { ageMs: 0, maxAgeMs: 1, refreshMs: 1 } };

/** An engine that knows all quotes, and a monitor of chains that are stalled for five minutes. */
function setup(isSynchronous: boolean, options: Partial<Parameters<typeof refuseStalled>[1]> = {}) {
  const stalled = new Set<string>();
  const engine: QuoteEngine = {
    quote: () => (isSynchronous ? timestamped : Promise.resolve(timestamped)),
    quoteWithCustomEndpoints: async () => quote,
    prepareQuotes: (requests) =>
      requests.map(() => (isSynchronous ? () => timestamped : Promise.resolve(async () => timestamped))),
  };
  const guarded = refuseStalled(engine, {
    blockAges: {
      stalledCount: () => stalled.size,
      findStalled: (_, slug) => (stalled.has(slug) ? { timestamp: NOW / 1000 - 300, ageMs: 300_000 } : undefined),
      isTooOld: (_, __, block) => getAgeMs(block) > 120_000,
      getAgeMs,
    },
    now: () => READ_AT,
    checksCustomEndpoints: true,
    ...options,
  });
  return { stalled, guarded };
}

const refused = expect.objectContaining({
  reason: "CHAIN_STALLED",
  message: "polygon is stalled: its newest block is 5 min old",
});
const run = async (work: () => unknown): Promise<unknown> => work();

describe.each([true, false])("an engine that answers synchronously: %s", (isSynchronous) => {
  test("quotes while no chain is stalled", async () => {
    const { guarded } = setup(isSynchronous);
    const result = guarded.quote(toPolygon, requester);
    expect(result instanceof Promise).toBe(!isSynchronous);
    expect(await result).toBe(timestamped);
  });

  test("refuses routes from and to a stalled chain, and no others", async () => {
    const { guarded, stalled } = setup(isSynchronous);
    stalled.add("polygon");
    await expect(run(() => guarded.quote(toPolygon, requester))).rejects.toEqual(refused);
    await expect(run(() => guarded.quote(fromPolygon, requester))).rejects.toEqual(refused);
    expect(await guarded.quote(others, requester)).toBe(timestamped);
    stalled.clear();
    expect(await guarded.quote(toPolygon, requester)).toBe(timestamped);
  });

  test("refuses only the quotes of a batch whose chain is stalled, even if that shows after its inputs were read", async () => {
    const { guarded, stalled } = setup(isSynchronous);
    const prepared = await Promise.all(guarded.prepareQuotes([toPolygon, others, fromPolygon], requester));
    stalled.add("polygon");
    const [first, second, third] = prepared as [PreparedQuote, PreparedQuote, PreparedQuote];
    await expect(run(first)).rejects.toEqual(refused);
    expect(await second()).toBe(timestamped);
    await expect(run(third)).rejects.toEqual(refused);
  });
});

test("refuses a quote whose own read shows that the chain is stalled", async () => {
  const { guarded, stalled } = setup(false);
  const result = guarded.quote(toPolygon, requester);
  stalled.add("polygon");
  await expect(result).rejects.toEqual(refused);
});

describe("the state that a quote has read", () => {
  /** Judges a state whose block was this old when it was read. */
  function judge(ageSeconds: number): void {
    const blockAges = { isTooOld: (_: string, __: string, block: BlockReading) => getAgeMs(block) > 100_000, getAgeMs };
    const block = { number: 1n, timeSeconds: BigInt(NOW / 1000 - ageSeconds) };
    assertStateYoung(blockAges, toPolygon, toPolygon.destination, { block, readAt: READ_AT } as ChainState);
  }

  test.each([
    [101, "101 s"],
    [119, "119 s"],
    [120, "2 min"],
    [7_170, "120 min"],
  ])("is refused with a block that was %i s old, as %s", (ageSeconds, age) => {
    const message = `polygon is stalled: its newest block is ${age} old`;
    expect(() => judge(ageSeconds)).toThrow(expect.objectContaining({ reason: "CHAIN_STALLED", message }));
  });

  test("is accepted with a young block, and where nothing is limited or read", () => {
    const state = { block: { timeSeconds: 0n }, readAt: READ_AT } as ChainState;
    const blockAges = { isTooOld: () => true, getAgeMs };
    expect(() => judge(100)).not.toThrow();
    expect(() => assertStateYoung(undefined, toPolygon, toPolygon.source, state)).not.toThrow();
    expect(() => assertStateYoung(blockAges, toPolygon, toPolygon.source, undefined)).not.toThrow();
  });
});

describe("with endpoints of the caller", () => {
  const readAt: string[] = [];
  const withEndpointFor = (slug: string, ageSeconds: number): NetworkChainClients => ({
    hasCustomEndpoint: (other) => other === slug,
    getClient: (other) => ({
      slug: other,
      async send() {
        readAt.push(other);
        const hash = `0x${"0".repeat(64)}`;
        return { number: "0x1", timestamp: `0x${(NOW / 1000 - ageSeconds).toString(16)}`, hash, parentHash: hash };
      },
      sendBatch: () => Promise.reject(new Error("not expected")),
      getLogs: () => Promise.reject(new Error("not expected")),
    }),
  });

  test("a stalled chain is refused unless the endpoint is of that chain", async () => {
    const { guarded, stalled } = setup(true);
    stalled.add("polygon");
    const ofArbitrum = guarded.quoteWithCustomEndpoints(toPolygon, withEndpointFor("arbitrum", 0), requester);
    await expect(ofArbitrum).rejects.toEqual(refused);
    expect(await guarded.quoteWithCustomEndpoints(toPolygon, withEndpointFor("polygon", 0), requester)).toBe(quote);
    expect(readAt).toEqual([]);
  });

  test("an endpoint of an old block is refused if the engine does not check it", async () => {
    const { guarded } = setup(true, { checksCustomEndpoints: false });
    const old = guarded.quoteWithCustomEndpoints(toPolygon, withEndpointFor("polygon", 300), requester);
    await expect(old).rejects.toEqual(refused);
    expect(await guarded.quoteWithCustomEndpoints(toPolygon, withEndpointFor("polygon", 100), requester)).toBe(quote);
    expect(readAt).toEqual(["polygon", "polygon"]);
  });
});
