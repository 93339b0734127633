import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import fc from "fast-check";
import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { createJsonRpc } from "../../../devnet/chain/json-rpc.js";
import { BridgeService, type GetQuoteResponse } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { useChainProxies } from "../../support/service/chain-proxies.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { countSequentialRounds, toRpcEnvironment } from "../../support/stubs/rpc-proxy.js";

// Batches of quotes: what they return, compared with single calls, and what they send to the chains. A counting proxy is
// in front of each chain.

const proxies = useChainProxies();
let gateway: TestGateway;

const resetAll = (): void => {
  for (const proxy of proxies.values()) proxy.reset();
};
beforeEach(async () => {
  for (const { behaviour } of proxies.values()) behaviour.latencyMs = 0;
  gateway = await startGateway({ ...toRpcEnvironment(proxies), QUOTE_MAX_AGE_MS: "60000" });
  resetAll();
});
afterEach(() => gateway.stop());

interface Result {
  readonly toChain: string;
  readonly amount: string;
  readonly quote?: Readonly<Record<string, unknown>> & { readonly details?: Readonly<Record<string, unknown>> };
  readonly error?: Readonly<Record<string, unknown>>;
}

async function getBatch(query: string): Promise<readonly Result[]> {
  const { status, body } = await gateway.get(`/v1/quotes?${query}`);
  expect({ query, status, body }).toMatchObject({ status: 200 });
  return (body as { readonly results: readonly Result[] }).results;
}

const countRequests = () =>
  Object.fromEntries(
    [...proxies].flatMap(([slug, { requests }]) => (requests.length === 0 ? [] : [[slug, requests.length] as const])),
  );

const toPairs = (fields: Readonly<Record<string, string | number>>): [string, string][] =>
  Object.entries(fields).map(([name, value]) => [name, String(value)]);

const USDT = "token=USDT&fromChain=polygon&slippage=0.5";
const tenAmounts = Array.from({ length: 10 }, (_, index) => `amount=${index + 1}000000`).join("&");

test("a cold batch takes as many rounds as one quote, and reads each chain once", async () => {
  for (const { behaviour } of proxies.values()) behaviour.latencyMs = 40;
  const results = await getBatch(`${USDT}&${tenAmounts}`);
  expect(results).toHaveLength(10 * new Set(results.map(({ toChain }) => toChain)).size);
  expect(results.every(({ quote }) => quote !== undefined)).toBe(true);
  const counts = countRequests();
  // Optimism charges for data on L1, which takes a second request, as for a single quote.
  expect(counts).toEqual({ ethereum: 1, gnosis: 1, polygon: 1, arbitrum: 1, optimism: 2 });
  expect(countSequentialRounds([...proxies.values()].flatMap(({ requests }) => requests))).toBe(2);
  resetAll();
  await getBatch(`${USDT}&${tenAmounts}`);
  expect(countRequests()).toEqual({});
});

test("all quotes of a batch that read a chain are of the same block", async () => {
  // Reads of single routes at different times have different blocks.
  const routes = [
    ["polygon", "arbitrum", "USDT"],
    ["polygon", "optimism", "ETH"],
    ["gnosis", "polygon", "USDT"],
    ["polygon", "ethereum", "HOP"],
  ] as const;
  const toRequest = ([fromChain, toChain, token]: (typeof routes)[number]) => ({
    ...{ fromChain, toChain, token, amount: "1000000", slippage: 0.5, view: "FULL" },
  });
  for (const route of routes) {
    await gateway.get(`/v1/quote?${new URLSearchParams(toPairs(toRequest(route)))}`);
    await createJsonRpc(inject("network").chains.polygon?.url ?? "")("evm_mine");
  }
  const client = createClient(BridgeService, createGrpcTransport({ baseUrl: gateway.url }));
  const { results } = await client.batchGetQuotes({ requests: routes.map(toRequest) });
  const blocks = new Map<string, Set<bigint>>();
  const add = (chain: string, block: bigint): void => {
    if (block !== 0n) blocks.set(chain, (blocks.get(chain) ?? new Set()).add(block));
  };
  for (const { result, fromChain, toChain } of results) {
    if (result.case !== "quote" || result.value.details === undefined) throw new Error("no quote with details");
    add(fromChain, result.value.details.sourceBlock);
    add(toChain, result.value.details.destinationBlock);
  }
  expect(Object.fromEntries([...blocks].map(([chain, { size }]) => [chain, size]))).toMatchObject({ polygon: 1 });
  expect([...blocks.values()].every(({ size }) => size === 1)).toBe(true);
});

test("each result is what a single call gets, also an error", async () => {
  const client = createClient(BridgeService, createGrpcTransport({ baseUrl: gateway.url }));
  const text = (...values: readonly string[]) => fc.constantFrom(...values);
  const requests = fc.record({
    amount: fc.oneof(
      { weight: 5, arbitrary: text("1000000", "25000000", "1") },
      text("", "0", "x", `1${"0".repeat(76)}`),
    ),
    receiveAmount: fc.oneof({ weight: 5, arbitrary: text("") }, text("1000000", "0")),
    token: fc.oneof({ weight: 8, arbitrary: text("USDT", "ETH", "usdc", "USDC.e", "HOP", "DAI") }, text("", "FOO")),
    fromChain: fc.oneof({ weight: 8, arbitrary: text("polygon", "ethereum", "optimism") }, text("", "mars")),
    toChain: fc.oneof({ weight: 8, arbitrary: text("arbitrum", "gnosis", "ethereum") }, text("", "mars")),
    slippage: fc.oneof({ weight: 8, arbitrary: fc.constantFrom(0.5, 0) }, fc.constantFrom(100, undefined)),
    network: fc.oneof({ weight: 9, arbitrary: text("") }, text("nowhere")),
    view: fc.oneof({ weight: 9, arbitrary: text("") }, text("full")),
  });
  const withoutTimes = (quote: GetQuoteResponse) => ({ ...quote, deadline: 0n, destinationDeadline: 0n });
  await fc.assert(
    fc.asyncProperty(fc.array(requests, { minLength: 1, maxLength: 20 }), async (drawn) => {
      const list = drawn.map(({ slippage, ...rest }) => ({ ...rest, ...(slippage !== undefined && { slippage }) }));
      const { results } = await client.batchGetQuotes({ requests: list });
      expect(results).toHaveLength(list.length);
      for (const [index, request] of list.entries()) {
        const result = results[index]?.result;
        const query = Object.entries(request).filter(([, value]) => value !== "");
        const { body } = await gateway.get(`/v1/quote?${new URLSearchParams(toPairs(Object.fromEntries(query)))}`);
        if (result?.case === "error") {
          const { code, message, reason, field } = body as Record<string, string>;
          expect(result.value).toMatchObject({ code, message, reason, field: field ?? "" });
        } else {
          const single = await client.getQuote(request);
          expect(withoutTimes(result?.value as GetQuoteResponse)).toEqual(withoutTimes(single));
        }
      }
    }),
    { numRuns: 15 },
  );
});
