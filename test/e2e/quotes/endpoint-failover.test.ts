import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { type ProxiedCall, type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// A chain with two endpoints, of which the first is not well. Behind both stands the same node, so that the quote tells
// that it is right, and a counting proxy in front of each tells who was asked.

const { chains } = inject("network");
const PATH = "/v1/quote?amount=1000000000000000000&token=ETH&fromChain=arbitrum&toChain=polygon&slippage=0.5";

let first: RpcProxy;
let second: RpcProxy;
let gateway: TestGateway;
let expected: unknown;

// The second is in the deliveries' deadlines, and a zero byte there costs less gas: one second for all quotes.
beforeAll(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
});
afterAll(() => {
  vi.useRealTimers();
});

beforeEach(async () => {
  const node = chains.polygon?.url ?? "";
  [first, second] = await Promise.all([startRpcProxy(node), startRpcProxy(node)]);
  const plain = await startGateway();
  expected = amountsOf((await plain.get(PATH)).body);
  await plain.stop();
  gateway = await startGateway({ RPC_URL_POLYGON: `${first.url},${second.url}`, QUOTE_MAX_AGE_MS: "1" });
});
afterEach(async () => {
  await gateway.stop();
  await Promise.all([first.close(), second.close()]);
});

/** What of a quote does not change with the second in which it is asked for. */
function amountsOf(body: unknown): unknown {
  const { deadline, destinationDeadline, ...amounts } = body as Record<string, unknown>;
  return amounts;
}

async function quote(): Promise<void> {
  const { status, body } = await gateway.get(PATH);
  expect({ status, body: amountsOf(body) }).toEqual({ status: 200, body: expected });
}

const quotesAskedOf = (proxy: RpcProxy): number =>
  proxy.requests.filter(({ calls }) => calls.some(({ method }) => method === "eth_gasPrice")).length;

test("a well first endpoint answers alone", async () => {
  await quote();
  await quote();
  expect(quotesAskedOf(first)).toBe(2);
  expect(quotesAskedOf(second)).toBe(0);
});

describe("the second endpoint answers", () => {
  test.each([
    ["gives errors", () => Object.assign(first.behaviour, { errorStatus: 500 })],
    ["is overloaded", () => Object.assign(first.behaviour, { errorStatus: 429 })],
    [
      "serves another chain",
      () => answering(({ method }) => (method === "eth_chainId" ? { result: "0x1" } : undefined)),
    ],
    ["refuses one of the calls", () => answering(({ method }) => (method === "eth_gasPrice" ? busy : undefined))],
    [
      "says what no node says",
      () => answering(({ method }) => (method === "eth_call" ? { result: undefined } : undefined)),
    ],
  ])("where the first %s", async (_, spoil) => {
    spoil();
    await quote();
    expect(quotesAskedOf(second)).toBe(1);
  });

  test("where the first is gone", async () => {
    await first.close();
    await quote();
    expect(quotesAskedOf(second)).toBe(1);
  });

  test("before the first has run out of its time, and alone once it is known to hang", async () => {
    first.behaviour.isHanging = true;
    await quote();
    const [firstArrival, secondArrival] = [first, second].map((proxy) => proxy.requests[0]?.arrivedAt ?? Number.NaN);
    // The hedge follows after half a second; an attempt may take 1.5 s.
    expect((secondArrival ?? 0) - (firstArrival ?? 0)).toBeLessThan(1_500);
    for (let count = 1; count < 8; count++) await quote();
    expect(quotesAskedOf(first)).toBeLessThan(8);
    expect(quotesAskedOf(second)).toBe(8);
  });

  test("in time where the first is slow", async () => {
    for (let count = 0; count < 5; count++) await quote();
    first.behaviour.latencyMs = 1_400;
    // It answers within the time of an attempt: only a hedge asks the other.
    await quote();
    expect(quotesAskedOf(second)).toBe(1);
  });

  test("where the first lags behind it", async () => {
    const head = (number: bigint, time: bigint) => ({
      result: { number: `0x${number.toString(16)}`, timestamp: `0x${time.toString(16)}` },
    });
    const now = BigInt(Math.floor(Date.now() / 1000));
    answering(({ method }) => (method === "eth_getBlockByNumber" ? head(1_000n, now) : undefined));
    second.behaviour.override = ({ method }) => (method === "eth_getBlockByNumber" ? head(1_017n, now) : undefined);
    // Heads are read in the background.
    const quoteAndCount = async (proxy: RpcProxy) => {
      await quote();
      return quotesAskedOf(proxy);
    };
    await expect.poll(() => quoteAndCount(second), { interval: 200 }).toBeGreaterThan(0);
    // It has caught up.
    answering(({ method }) => (method === "eth_getBlockByNumber" ? head(1_017n, now) : undefined));
    const before = quotesAskedOf(first);
    await expect.poll(() => quoteAndCount(first), { interval: 200 }).toBeGreaterThan(before);
  });
});

test("where no endpoint answers, the caller hears of it within its time, and of no address", async () => {
  for (const { behaviour } of [first, second]) behaviour.isHanging = true;
  const started = performance.now();
  const { status, body } = await gateway.get(PATH);
  expect(performance.now() - started).toBeLessThan(60_000);
  expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
  expect(JSON.stringify(body)).toContain("polygon");
  expect(JSON.stringify(body)).not.toContain("127.0.0.1");
});

const busy = { error: { code: -32005, message: "limit exceeded" } };

function answering(answer: (call: ProxiedCall) => { result: unknown } | { error: unknown } | undefined): void {
  first.behaviour.override = answer;
}
