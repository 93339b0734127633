import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { closeAfterTest } from "../../support/close-after-test.js";
import { useChainProxies } from "../../support/service/chain-proxies.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import {
  countSequentialRounds,
  type RpcProxy,
  startRpcProxy,
  toRpcEnvironment,
} from "../../support/stubs/rpc-proxy.js";

// Which requests quotes send to the chains, how many, and what happens without a response. A counting proxy is in front of
// each chain.

const { chains } = inject("network");
const slugs = Object.keys(chains);
const proxies = useChainProxies();
let gateway: TestGateway;

const ETH = 10n ** 18n;
const quotePath = (from: string, to: string, amount: bigint, token = "ETH", rest = ""): string =>
  `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5${rest}`;
const proxy = (slug: string): RpcProxy => {
  const slugProxy = proxies.get(slug);
  if (slugProxy === undefined) throw new Error(`no proxy for ${slug}`);
  return slugProxy;
};
const countRequests = (...names: string[]): number[] => names.map((slug) => proxy(slug).requests.length);
const countAllRequests = (): number => countRequests(...slugs).reduce((sum, count) => sum + count, 0);
const QUOTE_EXACT_INPUT = "0xcdca1753";
const countQuoterCalls = (): number =>
  proxy("polygon")
    .requests.flatMap(({ calls }) => calls)
    .filter(({ params: [call] }) => (call as { data?: string } | undefined)?.data?.startsWith(QUOTE_EXACT_INPUT))
    .length;
const resetAll = (): void => {
  for (const each of proxies.values()) each.reset();
};

const start = (environment = {}) => startGateway({ ...toRpcEnvironment(proxies), ...environment });

async function quote(path: string): Promise<Record<string, unknown>> {
  const { status, body } = await gateway.get(path);
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return body as Record<string, unknown>;
}

beforeEach(() => {
  for (const { behaviour } of proxies.values())
    Object.assign(behaviour, { latencyMs: 0, override: undefined, batchErrorStatus: undefined });
});
afterEach(() => gateway.stop());

describe("a cold quote", () => {
  beforeEach(async () => {
    for (const { behaviour } of proxies.values()) behaviour.latencyMs = 40;
    gateway = await start();
    resetAll();
  });

  test.each([
    ["between L2s", "arbitrum", "polygon", "ETH", { arbitrum: 1, polygon: 1 }],
    ["to L1", "arbitrum", "ethereum", "ETH", { arbitrum: 1, ethereum: 1 }],
    ["from L1", "ethereum", "polygon", "ETH", { polygon: 1 }],
    ["without a pool", "arbitrum", "nova", "HOP", { nova: 1 }],
    ["by CCTP", "arbitrum", "polygon", "USDC", { arbitrum: 1, polygon: 1 }],
    ["of USDC.e", "polygon", "arbitrum", "USDC.e", { arbitrum: 1, polygon: 1 }],
    ["to a chain with L1 fees", "arbitrum", "optimism", "ETH", { arbitrum: 1, optimism: 2 }],
    ["to another chain with L1 fees", "polygon", "base", "ETH", { polygon: 1, base: 2 }],
  ])("%s sends one request per chain, and two with L1 fees", async (_, from, to, token, expected) => {
    await quote(quotePath(from, to, token.startsWith("USDC") ? 10n ** 9n : ETH, token));
    const counts = Object.fromEntries(
      slugs.flatMap((slug) => (countRequests(slug)[0] ? [[slug, countRequests(slug)[0]]] : [])),
    );
    expect(counts).toEqual(expected);
    const rounds = countSequentialRounds([...proxies.values()].flatMap(({ requests }) => requests));
    expect(rounds).toBe(Math.max(...Object.values(expected)));
  });

  test("of USDC.e only calls the Quoter contract for amounts beyond the tick window", async () => {
    const usdc = (amount: bigint): string => quotePath("polygon", "arbitrum", amount * 10n ** 6n, "USDC.e");
    await Promise.all([1n, 2n, 30n, 5_000n, 60_000n].map((amount) => quote(usdc(amount))));
    expect(countQuoterCalls()).toBe(0);
    // Ticks are known after the second read, about a block later.
    const fiveMillion = 5_000_000n;
    await quote(usdc(fiveMillion));
    expect(countQuoterCalls()).toBe(1);
    let more = 0n;
    const countForAnother = async (): Promise<number> => {
      const before = countQuoterCalls();
      await quote(usdc(fiveMillion + ++more));
      return countQuoterCalls() - before;
    };
    await expect.poll(countForAnother).toBe(0);
    const known = countQuoterCalls();
    await Promise.all([1_001n, 1_002n, 1_003n].map((another) => quote(usdc(fiveMillion + another))));
    expect(countQuoterCalls()).toBe(known);
    // An amount beyond the tick window takes one call for all concurrent requests.
    const [one, other, same] = await Promise.all([10n, 11n, 10n].map((times) => quote(usdc(times ** 9n))));
    expect(one?.estimatedReceived).not.toBe(other?.estimatedReceived);
    expect(one?.estimatedReceived).toBe(same?.estimatedReceived);
    expect(countQuoterCalls()).toBe(known + 2);
  });

  test("sends the same requests for 32 concurrent callers as for one", async () => {
    const bodies = await Promise.all(Array.from({ length: 32 }, () => quote(quotePath("arbitrum", "polygon", ETH))));
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBeLessThanOrEqual(2);
    expect(countRequests("arbitrum", "polygon")).toEqual([1, 1]);
  });

  test("sends one more request per chain for another token, and none for another amount", async () => {
    await quote(quotePath("arbitrum", "polygon", ETH));
    resetAll();
    await Promise.all([1n, 7n, ETH, 30n * ETH].map((amount) => quote(quotePath("arbitrum", "polygon", amount))));
    expect(countAllRequests()).toBe(0);
    await quote(quotePath("arbitrum", "polygon", 5_000_000n, "USDT"));
    expect(countRequests("arbitrum", "polygon")).toEqual([1, 1]);
  });
});

describe("cache headers", () => {
  test("allow caches to use a quote as long as the service would", async () => {
    gateway = await start();
    const first = await gateway.get(quotePath("arbitrum", "polygon", ETH));
    expect(first.headers.get("age")).toBe("0");
    expect(first.headers.get("cache-control")).toBe("public, max-age=4, stale-while-revalidate=2");
    const toL1 = await gateway.get(quotePath("arbitrum", "ethereum", ETH));
    expect(toL1.headers.get("cache-control")).toBe("public, max-age=24, stale-while-revalidate=12");
  });

  test("follow QUOTE_MAX_AGE_MS", async () => {
    gateway = await start({ QUOTE_MAX_AGE_MS: "9000" });
    const { headers } = await gateway.get(quotePath("arbitrum", "ethereum", ETH));
    expect(headers.get("cache-control")).toBe("public, max-age=9, stale-while-revalidate=5");
  });
});

/** Freezes the clock: deadlines are part of the delivery calldata, where a zero byte costs less gas. */
function freezeClock(): void {
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  });
  afterAll(() => {
    vi.useRealTimers();
  });
}

describe("a custom endpoint", () => {
  freezeClock();

  test("serves only its caller, and is called each time", async () => {
    gateway = await start({ CUSTOM_RPC_URLS: "any" });
    const shared = await quote(quotePath("arbitrum", "polygon", ETH));
    const custom = closeAfterTest(await startRpcProxy(chains.polygon?.url ?? ""));
    custom.behaviour.override = ({ method }) => (method === "eth_gasPrice" ? { result: "0xe8d4a51000" } : undefined);
    const path = quotePath("arbitrum", "polygon", ETH, "ETH", `&rpcUrl[polygon]=${encodeURIComponent(custom.url)}`);
    proxy("polygon").reset();
    const responses = await Promise.all([gateway.get(path), gateway.get(path)]);
    for (const { status, headers, body } of responses) {
      expect(status).toBe(200);
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("age")).toBeNull();
      expect((body as { bonderFee: string }).bonderFee).not.toBe(shared.bonderFee);
    }
    expect(custom.requests).toHaveLength(2);
    expect(countRequests("polygon")).toEqual([0]);
    expect((await quote(quotePath("arbitrum", "polygon", ETH))).bonderFee).toBe(shared.bonderFee);
  });
});

describe("a chain", () => {
  freezeClock();

  test("whose endpoint rejects batches has the same quotes", async () => {
    gateway = await start();
    const usual = await quote(quotePath("arbitrum", "polygon", ETH));
    await gateway.stop();
    for (const slug of ["arbitrum", "polygon"]) proxy(slug).behaviour.batchErrorStatus = 400;
    gateway = await start();
    expect(getAmounts(await quote(quotePath("arbitrum", "polygon", ETH)))).toEqual(getAmounts(usual));
  });

  test("without Multicall3 has the same quotes, read at one block", async () => {
    gateway = await start();
    const usual = await quote(quotePath("arbitrum", "polygon", ETH));
    await gateway.stop();
    const aggregate3 = "0x82ad56cb";
    for (const slug of ["arbitrum", "polygon"]) {
      proxy(slug).behaviour.override = ({ method, params: [call] }) =>
        method === "eth_call" && (call as { data: string }).data.startsWith(aggregate3) ? { result: "0x" } : undefined;
    }
    gateway = await start();
    resetAll();
    expect(getAmounts(await quote(quotePath("arbitrum", "polygon", ETH)))).toEqual(getAmounts(usual));
    const blocks = proxy("polygon").requests.flatMap(({ calls }) =>
      calls.flatMap(({ method, params: [call, block] }) =>
        method === "eth_call" && !(call as { data: string }).data.startsWith(aggregate3) ? [block] : [],
      ),
    );
    expect(blocks).toHaveLength(4);
    expect(new Set(blocks).size).toBe(1);
    expect(blocks[0]).toMatch(/^0x[0-9a-f]+$/);
  });
});

/** Returns the fields of a quote that do not depend on the time. */
function getAmounts({ deadline, destinationDeadline, ...amounts }: Record<string, unknown>): unknown {
  return amounts;
}
