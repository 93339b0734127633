import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { countSequentialRounds, type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// How quotes reach the chains: what is asked, how often, and what happens when no answer comes. In front of each chain
// stands a proxy that counts.

const { chains } = inject("network");
const slugs = Object.keys(chains);
let proxies: Record<string, RpcProxy> = {};
let gateway: TestGateway;

const ETH = 10n ** 18n;
const quotePath = (from: string, to: string, amount: bigint, token = "ETH", rest = ""): string =>
  `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5${rest}`;
const proxy = (slug: string): RpcProxy => {
  const found = proxies[slug];
  if (found === undefined) throw new Error(`no proxy of ${slug}`);
  return found;
};
const requestsTo = (...names: string[]): number[] => names.map((slug) => proxy(slug).requests.length);
const allRequests = (): number => requestsTo(...slugs).reduce((sum, count) => sum + count, 0);
const QUOTE_EXACT_INPUT = "0xcdca1753";
const callsOfQuoter = (): number =>
  proxy("polygon")
    .requests.flatMap(({ calls }) => calls)
    .filter(({ params: [call] }) => (call as { data?: string } | undefined)?.data?.startsWith(QUOTE_EXACT_INPUT))
    .length;
const resetAll = (): void => {
  for (const each of Object.values(proxies)) each.reset();
};

async function start(environment: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const urls = Object.fromEntries(
    Object.entries(proxies).map(([slug, { url }]) => [`RPC_URL_${slug.toUpperCase()}`, url]),
  );
  return startGateway({ ...urls, ...environment });
}

async function quote(path: string): Promise<Record<string, unknown>> {
  const { status, body } = await gateway.get(path);
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return body as Record<string, unknown>;
}

beforeAll(async () => {
  const started = slugs.map(async (slug) => [slug, await startRpcProxy(chains[slug]?.url ?? "")] as const);
  proxies = Object.fromEntries(await Promise.all(started));
});
afterAll(() => Promise.all(Object.values(proxies).map((each) => each.close())));

beforeEach(() => {
  for (const { behaviour } of Object.values(proxies)) {
    Object.assign(behaviour, {
      latencyMs: 0,
      override: undefined,
      batchErrorStatus: undefined,
      isHanging: false,
      errorStatus: undefined,
    });
  }
});
afterEach(() => gateway.stop());

describe("a cold quote", () => {
  beforeEach(async () => {
    for (const { behaviour } of Object.values(proxies)) behaviour.latencyMs = 40;
    gateway = await start();
    resetAll();
  });

  test.each([
    ["between L2s", "arbitrum", "polygon", "ETH", { arbitrum: 1, polygon: 1 }],
    ["towards L1", "arbitrum", "ethereum", "ETH", { arbitrum: 1, ethereum: 1 }],
    ["from L1", "ethereum", "polygon", "ETH", { polygon: 1 }],
    ["without a pool", "arbitrum", "nova", "HOP", { nova: 1 }],
    ["by CCTP", "arbitrum", "polygon", "USDC", { arbitrum: 1, polygon: 1 }],
    ["of USDC.e", "polygon", "arbitrum", "USDC.e", { arbitrum: 1, polygon: 1 }],
    ["towards a chain with L1 fees", "arbitrum", "optimism", "ETH", { arbitrum: 1, optimism: 2 }],
    ["towards another with L1 fees", "polygon", "base", "ETH", { polygon: 1, base: 2 }],
  ])("%s asks each chain once, and those with L1 fees twice", async (_, from, to, token, expected) => {
    await quote(quotePath(from, to, token.startsWith("USDC") ? 10n ** 9n : ETH, token));
    const seen = Object.fromEntries(
      slugs.flatMap((slug) => (requestsTo(slug)[0] ? [[slug, requestsTo(slug)[0]]] : [])),
    );
    expect(seen).toEqual(expected);
    const rounds = countSequentialRounds(Object.values(proxies).flatMap(({ requests }) => requests));
    expect(rounds).toBe(Math.max(...Object.values(expected)));
  });

  test("of USDC.e asks the quoter only beyond what is known of the pool", async () => {
    const usdc = (amount: bigint): string => quotePath("polygon", "arbitrum", amount * 10n ** 6n, "USDC.e");
    await Promise.all([1n, 2n, 30n, 5_000n, 60_000n].map((amount) => quote(usdc(amount))));
    expect(callsOfQuoter()).toBe(0);
    // Ticks are known from the second reading on, about a block later.
    const fiveMillion = 5_000_000n;
    await quote(usdc(fiveMillion));
    expect(callsOfQuoter()).toBe(1);
    await expect.poll(() => requestsTo("polygon")[0]).toBeGreaterThanOrEqual(3);
    await sleep(200);
    await Promise.all([1n, 2n, 3n].map((more) => quote(usdc(fiveMillion + more))));
    expect(callsOfQuoter()).toBe(1);
    // What is larger than all that is known takes a call, once for all who ask at once.
    const [one, other, same] = await Promise.all([10n, 11n, 10n].map((times) => quote(usdc(times ** 9n))));
    expect(one?.estimatedReceived).not.toBe(other?.estimatedReceived);
    expect(one?.estimatedReceived).toBe(same?.estimatedReceived);
    expect(callsOfQuoter()).toBe(3);
  });

  test("that 32 callers ask for at once costs what one costs", async () => {
    const bodies = await Promise.all(Array.from({ length: 32 }, () => quote(quotePath("arbitrum", "polygon", ETH))));
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBeLessThanOrEqual(2);
    expect(requestsTo("arbitrum", "polygon")).toEqual([1, 1]);
  });

  test("of another token takes the second request of its chains, and of another amount none", async () => {
    await quote(quotePath("arbitrum", "polygon", ETH));
    resetAll();
    await Promise.all([1n, 7n, ETH, 30n * ETH].map((amount) => quote(quotePath("arbitrum", "polygon", amount))));
    expect(allRequests()).toBe(0);
    await quote(quotePath("arbitrum", "polygon", 5_000_000n, "USDT"));
    expect(requestsTo("arbitrum", "polygon")).toEqual([1, 1]);
  });
});

describe("an answer tells its age", () => {
  test("in headers that let it be kept as long as it would be given here", async () => {
    gateway = await start();
    const first = await gateway.get(quotePath("arbitrum", "polygon", ETH));
    expect(first.headers.get("age")).toBe("0");
    expect(first.headers.get("cache-control")).toBe("public, max-age=4, stale-while-revalidate=2");
    const towardsL1 = await gateway.get(quotePath("arbitrum", "ethereum", ETH));
    expect(towardsL1.headers.get("cache-control")).toBe("public, max-age=24, stale-while-revalidate=12");
  });

  test("as QUOTE_MAX_AGE_MS wants it", async () => {
    gateway = await start({ QUOTE_MAX_AGE_MS: "9000" });
    const { headers } = await gateway.get(quotePath("arbitrum", "ethereum", ETH));
    expect(headers.get("cache-control")).toBe("public, max-age=9, stale-while-revalidate=5");
  });
});

describe("facts", () => {
  test("are read again about once a block while somebody asks, and say what is new", async () => {
    gateway = await start();
    const before = await quote(quotePath("arbitrum", "polygon", ETH));
    resetAll();
    const gasPrice = { result: "0x2540be4000" };
    proxy("polygon").behaviour.override = ({ method }) => (method === "eth_gasPrice" ? gasPrice : undefined);
    const startedAt = Date.now();
    let last = before;
    while (Math.min(...requestsTo("arbitrum", "polygon")) < 3 && Date.now() < startedAt + 60_000) {
      last = await quote(quotePath("arbitrum", "polygon", ETH));
      await sleep(10);
    }
    expect(BigInt(last.bonderFee as string)).toBeGreaterThan(BigInt(before.bonderFee as string));
    // Blocks of two seconds: one read in each, and one before the first is over.
    const blocks = (Date.now() - startedAt) / 2_000;
    for (const count of requestsTo("arbitrum", "polygon")) {
      expect(count).toBeGreaterThanOrEqual(3);
      expect(count).toBeLessThanOrEqual(blocks + 2);
    }
  });

  test("outlive a chain that fails, with their age, until they are too old", async () => {
    gateway = await start({ QUOTE_MAX_STALE_MS: "9000" });
    const before = await quote(quotePath("arbitrum", "polygon", ETH));
    proxy("polygon").behaviour.errorStatus = 500;
    const ages: number[] = [];
    let refused: { status: number; body: unknown } | undefined;
    const failing = Date.now();
    while (refused === undefined && Date.now() < failing + 60_000) {
      const { status, headers, body } = await gateway.get(quotePath("arbitrum", "polygon", ETH));
      if (status !== 200) refused = { status, body };
      else {
        ages.push(Number(headers.get("age")));
        expect((body as { bonderFee: string }).bonderFee).toBe(before.bonderFee);
      }
      await sleep(100);
    }
    expect(Date.now() - failing).toBeGreaterThan(8_000);
    // The last of the answers may be some time before the limit on a busy machine.
    expect(ages.at(-1)).toBeGreaterThanOrEqual(5);
    expect(ages.at(-1)).toBeLessThanOrEqual(9);
    expect(refused).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
    // Another route is none the worse for it.
    await quote(quotePath("arbitrum", "gnosis", ETH));

    proxy("polygon").behaviour.errorStatus = undefined;
    const healed = Date.now();
    while ((await gateway.get(quotePath("arbitrum", "polygon", ETH))).status !== 200) {
      expect(Date.now() - healed).toBeLessThan(60_000);
      await sleep(100);
    }
  });

  test("that are wanted for the first time from a chain that fails are an honest 503", async () => {
    gateway = await start();
    proxy("polygon").behaviour.errorStatus = 500;
    const { status, headers, body } = await gateway.get(quotePath("arbitrum", "polygon", ETH));
    expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("age")).toBeNull();
  });
});

/** One second for all quotes around: it is in the deliveries' deadlines, and a zero byte there costs less gas. */
function inOneSecond(): void {
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  });
  afterAll(() => {
    vi.useRealTimers();
  });
}

describe("an endpoint that a caller names", () => {
  inOneSecond();

  test("serves that caller alone, and is asked each time", async () => {
    gateway = await start({ CUSTOM_RPC_URLS: "any" });
    const shared = await quote(quotePath("arbitrum", "polygon", ETH));
    const own = await startRpcProxy(chains.polygon?.url ?? "", {
      override: ({ method }) => (method === "eth_gasPrice" ? { result: "0xe8d4a51000" } : undefined),
    });
    try {
      const path = quotePath("arbitrum", "polygon", ETH, "ETH", `&rpcUrl[polygon]=${encodeURIComponent(own.url)}`);
      proxy("polygon").reset();
      const answers = await Promise.all([gateway.get(path), gateway.get(path)]);
      for (const { status, headers, body } of answers) {
        expect(status).toBe(200);
        expect(headers.get("cache-control")).toBe("no-store");
        expect(headers.get("age")).toBeNull();
        expect((body as { bonderFee: string }).bonderFee).not.toBe(shared.bonderFee);
      }
      expect(own.requests).toHaveLength(2);
      expect(requestsTo("polygon")).toEqual([0]);
      expect((await quote(quotePath("arbitrum", "polygon", ETH))).bonderFee).toBe(shared.bonderFee);
    } finally {
      await own.close();
    }
  });
});

describe("a chain", () => {
  inOneSecond();

  test("whose endpoint takes no batches is quoted the same", async () => {
    gateway = await start();
    const usual = await quote(quotePath("arbitrum", "polygon", ETH));
    await gateway.stop();
    for (const slug of ["arbitrum", "polygon"]) proxy(slug).behaviour.batchErrorStatus = 400;
    gateway = await start();
    expect(amountsOf(await quote(quotePath("arbitrum", "polygon", ETH)))).toEqual(amountsOf(usual));
  });

  test("without Multicall3 is quoted the same, from one block", async () => {
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
    expect(amountsOf(await quote(quotePath("arbitrum", "polygon", ETH)))).toEqual(amountsOf(usual));
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

/** What of a quote does not change with the second in which it is asked for. */
function amountsOf({ deadline, destinationDeadline, ...amounts }: Record<string, unknown>): unknown {
  return amounts;
}
