import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { getNetwork } from "../../../src/hop/networks.js";
import { withGateway } from "../../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../../support/service/metrics-scrape.js";
import {
  countSequentialRounds,
  type ProxiedRequest,
  type RpcProxy,
  startRpcProxy,
} from "../../support/stubs/rpc-proxy.js";

// What RPC_QUORUM costs a cold quote. A counting proxy is each of the three endpoints of a chain.

const ENDPOINTS = 3;
const { chains } = inject("network");
const proxies = new Map<string, readonly RpcProxy[]>();
const HEAD_METHODS = new Set(["eth_getBlockByNumber", "eth_chainId"]);

beforeAll(async () => {
  for (const [slug, { url }] of Object.entries(chains)) {
    const started = Array.from({ length: ENDPOINTS }, () => startRpcProxy(url, { latencyMs: 40 }));
    proxies.set(slug, await Promise.all(started));
  }
});
afterAll(() => Promise.all([...proxies.values()].flat().map((proxy) => proxy.close())));

/** The requests and calls that read values, not heads or chain IDs, and all rounds. */
interface Cost {
  readonly rounds: number;
  readonly requests: Readonly<Record<string, number>>;
  readonly calls: Readonly<Record<string, number>>;
  /** By `hop_gateway_quorum_calls_total`, of all chains. */
  readonly counted: { readonly head: number; readonly vote: number };
}

const listCalls = ({ calls }: ProxiedRequest) => calls.filter(({ method }) => !HEAD_METHODS.has(method));

/** Returns what the first quote of a service costs. */
function measureColdQuote(path: string, quorum: number): Promise<Cost> {
  const urls = [...getNetwork("mainnet").chains.keys()].map((slug) => {
    const endpoints = proxies.get(slug)?.map(({ url }) => url) ?? [1, 2, 3].map((port) => `http://127.0.0.1:${port}`);
    return [`RPC_URL_${slug.toUpperCase()}`, endpoints.join(",")] as const;
  });
  return withGateway({ ...Object.fromEntries(urls), RPC_QUORUM: `${quorum}` }, async (gateway) => {
    for (const proxy of [...proxies.values()].flat()) proxy.reset();
    const { status, body } = await gateway.get(path);
    const requests = [...proxies].map(([slug, each]) => [slug, each.flatMap((proxy) => [...proxy.requests])] as const);
    expect({ status, body }).toMatchObject({ status: 200 });
    const metrics = await scrapeMetrics(gateway.metricsUrl);
    const sumUp = (count: (request: ProxiedRequest) => number): Readonly<Record<string, number>> =>
      Object.fromEntries(
        requests
          .map(([slug, all]) => [slug, all.reduce((sum, each) => sum + count(each), 0)] as const)
          .filter(([, sum]) => sum > 0),
      );
    const count = (purpose: string): number => metrics.sum("hop_gateway_quorum_calls_total", { purpose });
    return {
      rounds: countSequentialRounds(requests.flatMap(([, all]) => all)),
      requests: sumUp((request) => (listCalls(request).length > 0 ? 1 : 0)),
      calls: sumUp((request) => listCalls(request).length),
      counted: { head: count("head"), vote: count("vote") },
    };
  });
}

/** Compares what a cold quote costs. On a busy machine endpoints are late, and others asked beside them: then again. */
function expectCost(path: string, quorum: number, expected: unknown): Promise<Cost> {
  return vi.waitFor(
    async () => {
      const cost = await measureColdQuote(path, quorum);
      expect(cost).toEqual(expected);
      return cost;
    },
    { timeout: 90_000, interval: 100 },
  );
}

const multiply = (counts: Readonly<Record<string, number>>, factor: number): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(counts).map(([slug, count]) => [slug, factor * count]));

describe.each([
  ["between L2s", "arbitrum", "polygon", 1],
  ["to a chain with L1 fees", "polygon", "optimism", 2],
])("a cold quote %s", (_, from, to, rounds) => {
  const path = `/v1/quote?amount=${10n ** 18n}&token=ETH&fromChain=${from}&toChain=${to}&slippage=0.5`;

  test("takes no round more with a quorum, and n times the reads, each with the head of its endpoint", {
    timeout: 300_000,
  }, async () => {
    const plain = await expectCost(path, 1, {
      rounds,
      requests: { [from]: 1, [to]: rounds },
      calls: { [from]: expect.any(Number), [to]: expect.any(Number) },
      counted: { head: 0, vote: 0 },
    });
    const calls = Object.values(plain.calls).reduce((sum, count) => sum + count, 0);
    for (const quorum of [2, 3]) {
      await expectCost(path, quorum, {
        rounds,
        requests: multiply(plain.requests, quorum),
        calls: multiply(plain.calls, quorum),
        counted: { head: 2 * quorum, vote: quorum * calls },
      });
    }
  });
});
