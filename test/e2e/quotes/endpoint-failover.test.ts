import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import type { ProxiedCall } from "../../support/stubs/rpc-messages.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// A chain with two endpoints, of which the first one fails. Both proxy the same node, so that quotes must be equal, and each
// proxy counts its requests.

const { chains } = inject("network");
const PATH = "/v1/quote?amount=1000000000000000000&token=ETH&fromChain=arbitrum&toChain=polygon&slippage=0.5";

let first: RpcProxy;
let second: RpcProxy;
let gateway: TestGateway;
let expected: unknown;

// One second for all quotes: deadlines are part of the delivery calldata, where a zero byte costs less gas.
beforeAll(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
});
afterAll(() => {
  vi.useRealTimers();
});

beforeEach(async () => {
  const node = chains.polygon?.url ?? "";
  [first, second] = await Promise.all([startRpcProxy(node), startRpcProxy(node)]);
  const reference = await startGateway();
  expected = getAmounts((await reference.get(PATH)).body);
  await reference.stop();
  gateway = await startGateway({ RPC_URL_POLYGON: `${first.url},${second.url}`, QUOTE_MAX_AGE_MS: "1" });
});
afterEach(async () => {
  await gateway.stop();
  await Promise.all([first.close(), second.close()]);
});

/** Returns the fields of a quote that do not depend on the time. */
function getAmounts(body: unknown): unknown {
  const { deadline, destinationDeadline, ...amounts } = body as Record<string, unknown>;
  return amounts;
}

async function quote(): Promise<void> {
  const { status, body } = await gateway.get(PATH);
  expect({ status, body: getAmounts(body) }).toEqual({ status: 200, body: expected });
}

const countQuoteReads = (proxy: RpcProxy): number =>
  proxy.requests.filter(({ calls }) => calls.some(({ method }) => method === "eth_gasPrice")).length;

describe("uses the second endpoint", () => {
  test.each([
    ["returns errors", () => Object.assign(first.behaviour, { errorStatus: 500 })],
    ["is overloaded", () => Object.assign(first.behaviour, { errorStatus: 429 })],
    [
      "serves another chain",
      () => overrideFirst(({ method }) => (method === "eth_chainId" ? { result: "0x1" } : undefined)),
    ],
    [
      "rejects one of the calls",
      () => overrideFirst(({ method }) => (method === "eth_gasPrice" ? rateLimited : undefined)),
    ],
    [
      "returns an invalid response",
      () => overrideFirst(({ method }) => (method === "eth_call" ? { result: undefined } : undefined)),
    ],
  ])("when the first one %s", async (_, breakFirst) => {
    breakFirst();
    await quote();
    expect(countQuoteReads(second)).toBe(1);
  });

  test("when the first one is unreachable", async () => {
    await first.close();
    await quote();
    expect(countQuoteReads(second)).toBe(1);
  });

  test("when the first one hangs, which is no longer asked once that is known", async () => {
    first.behaviour.isHanging = true;
    for (let count = 0; count < 8; count++) await quote();
    expect(countQuoteReads(first)).toBeLessThan(8);
    expect(countQuoteReads(second)).toBe(8);
  });

  test("in time when the first one is slow", async () => {
    for (let count = 0; count < 5; count++) await quote();
    first.behaviour.latencyMs = 1_400;
    const before = countQuoteReads(second);
    // It responds within the timeout of an attempt, so only a hedged request reaches the second one.
    await quote();
    expect(countQuoteReads(second)).toBe(before + 1);
  });

  test("when the first one lags behind", async () => {
    const head = (number: bigint, time: bigint) => ({
      result: { number: `0x${number.toString(16)}`, timestamp: `0x${time.toString(16)}` },
    });
    const now = BigInt(Math.floor(Date.now() / 1000));
    overrideFirst(({ method }) => (method === "eth_getBlockByNumber" ? head(1_000n, now) : undefined));
    second.behaviour.override = ({ method }) => (method === "eth_getBlockByNumber" ? head(1_017n, now) : undefined);
    // Heads are read in the background.
    const quoteAndCount = async (proxy: RpcProxy) => {
      await quote();
      return countQuoteReads(proxy);
    };
    await expect.poll(() => quoteAndCount(second), { interval: 200 }).toBeGreaterThan(0);
    // It has caught up.
    overrideFirst(({ method }) => (method === "eth_getBlockByNumber" ? head(1_017n, now) : undefined));
    const before = countQuoteReads(first);
    await expect.poll(() => quoteAndCount(first), { interval: 200 }).toBeGreaterThan(before);
  });
});

test("returns 503 in time, without an address, when no endpoint responds", async () => {
  for (const { behaviour } of [first, second]) behaviour.isHanging = true;
  const started = performance.now();
  const { status, body } = await gateway.get(PATH);
  expect(performance.now() - started).toBeLessThan(60_000);
  expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
  expect(JSON.stringify(body)).toContain("polygon");
  expect(JSON.stringify(body)).not.toContain("127.0.0.1");
});

const rateLimited = { error: { code: -32005, message: "limit exceeded" } };

function overrideFirst(override: (call: ProxiedCall) => { result: unknown } | { error: unknown } | undefined): void {
  first.behaviour.override = override;
}
