import { Agent, get } from "node:http";
import { expect, inject, test, vi } from "vitest";
import { closeAfterTest } from "../../support/close-after-test.js";
import { startGatewayForTest as start, type TestGateway } from "../../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../../support/service/metrics-scrape.js";
import { startRpcProxy, toRpcEnvironment } from "../../support/stubs/rpc-proxy.js";

const { chains } = inject("network");
const QUOTE_PATH = "/v1/quote?amount=1000000000000000000&token=ETH&fromChain=arbitrum&toChain=polygon&slippage=0.5";

const startProxyFor = async (slug: string) => closeAfterTest(await startRpcProxy(chains[slug]?.url ?? ""));

interface Readiness {
  readonly status: string;
  readonly reason?: string;
  readonly chains: readonly {
    readonly network: string;
    readonly chain: string;
    readonly state: string;
    readonly head?: { readonly number: number; readonly ageSeconds: number; readonly seenSecondsAgo: number };
    readonly endpoints: readonly { readonly endpoint: string; readonly state: string }[];
  }[];
  readonly sources: readonly { readonly source: string; readonly state: string; readonly ageSeconds?: number }[];
}

async function readReadiness(gateway: TestGateway): Promise<Readiness & { code: number }> {
  const { status: code, body } = await gateway.get("/readyz");
  return { code, ...(body as Readiness) };
}

/** Polls /readyz until the service has the expected readiness. */
function waitForReadiness(gateway: TestGateway, wanted: Partial<Readiness> & { code: number }) {
  return vi.waitFor(async () => expect(await readReadiness(gateway)).toMatchObject(wanted), {
    timeout: 60_000,
    interval: 200,
  });
}

test("refreshes all mainnet chains but no Goerli chain through probes alone", async () => {
  const gateway = await start();
  expect((await gateway.get("/livez")).body).toEqual({ status: "OK" });
  expect((await gateway.get("/health")).body).toEqual({ status: "OK" });
  const first = await readReadiness(gateway);
  expect(first).toMatchObject({ code: 503, reason: "the first check of the chains has not ended" });
  expect(new Set(first.chains.map(({ network }) => network))).toEqual(new Set(["mainnet"]));
  await vi.waitFor(
    async () => {
      const { code, chains: known } = await readReadiness(gateway);
      expect(code).toBe(200);
      expect(known.map(({ state }) => state)).toEqual(Array(9).fill("ok"));
      expect(known.every(({ head }) => head !== undefined && head.number > 0 && head.ageSeconds >= 0)).toBe(true);
    },
    { timeout: 60_000 },
  );
  const { sources } = await readReadiness(gateway);
  expect(sources.map(({ source }) => source)).toEqual([
    ...["settings_mainnet", "settings_goerli", "prices", "chainlink_ethereum", "chainlink_arbitrum"],
    ...["explorer", "attestations"],
  ]);
  await vi.waitFor(
    async () => {
      const states = (await readReadiness(gateway)).sources.map(({ source, state }) => `${source} ${state}`);
      // No request has needed a feed or an attestation.
      expect(states).toEqual([
        ...["settings_mainnet ok", "settings_goerli ok", "prices ok", "chainlink_ethereum unknown"],
        ...["chainlink_arbitrum unknown", "explorer off", "attestations unknown"],
      ]);
    },
    { timeout: 60_000 },
  );
});

test("is never ready after a start with nothing reachable", async () => {
  const unreachable = { url: "http://127.0.0.1:1" };
  const gateway = await start(toRpcEnvironment(Object.keys(chains).map((slug) => [slug, unreachable])));
  const seen = new Set<string>();
  await vi.waitFor(
    async () => {
      const { code, reason } = await readReadiness(gateway);
      seen.add(`${code} ${reason}`);
      expect(reason).toBe("no chain responds");
    },
    { timeout: 60_000, interval: 10 },
  );
  expect([...seen].sort()).toEqual(["503 no chain responds", "503 the first check of the chains has not ended"]);
});

test.each([
  ["polygon", ["eth_chainId eth_call", "eth_chainId eth_getBlockByNumber"]],
  // There is no CCTP.
  ["gnosis", ["eth_chainId eth_getBlockByNumber"]],
])(
  "sends one request for the head and one for the burn limit of %s for a hundred concurrent probes",
  async (slug, sent) => {
    const proxy = await startProxyFor(slug);
    const gateway = await start(toRpcEnvironment([[slug, proxy]]));
    await Promise.all(Array.from({ length: 100 }, () => gateway.get("/readyz")));
    await vi.waitFor(() => expect(proxy.requests).toHaveLength(sent.length), { timeout: 60_000 });
    const methods = proxy.requests.map(({ calls }) => calls.map(({ method }) => method).join(" "));
    expect(methods.sort()).toEqual(sent);
    // A scrape sends none either.
    await scrapeMetrics(gateway.metricsUrl);
    expect(proxy.requests).toHaveLength(sent.length);
  },
);

test("reports an unreachable endpoint as failing and as ok again when it is back", async () => {
  const proxy = await startProxyFor("polygon");
  const gateway = await start({ RPC_URL_POLYGON: proxy.url, QUOTE_MAX_AGE_MS: "1", QUOTE_MAX_STALE_MS: "1" });
  expect((await gateway.get(QUOTE_PATH)).status).toBe(200);
  await waitForReadiness(gateway, { code: 200, status: "ready" });
  const stateOf = async (state: string) => {
    const found = await scrapeMetrics(gateway.metricsUrl);
    return found.sum("hop_gateway_endpoint_state", { network: "mainnet", chain: "polygon", state });
  };
  expect([await stateOf("ok"), await stateOf("failing")]).toEqual([1, 0]);

  proxy.behaviour.errorStatus = 502;
  expect((await gateway.get(QUOTE_PATH)).status).toBe(503);
  await waitForReadiness(gateway, { code: 200, status: "degraded", reason: "no response from polygon" });
  expect([await stateOf("ok"), await stateOf("failing")]).toEqual([0, 1]);

  proxy.behaviour.errorStatus = undefined;
  await waitForReadiness(gateway, { code: 200, status: "ready" });
  expect([await stateOf("ok"), await stateOf("failing")]).toEqual([1, 0]);
  expect((await gateway.get(QUOTE_PATH)).status).toBe(200);
});

test("reports the shutdown on open connections", async () => {
  const proxy = await startProxyFor("polygon");
  const gateway = await start({ RPC_URL_POLYGON: proxy.url });
  await gateway.get("/readyz");
  await vi.waitFor(() => expect(proxy.requests.some(({ answeredAt }) => answeredAt !== undefined)).toBe(true), {
    timeout: 60_000,
  });
  proxy.behaviour.latencyMs = 700;
  const agents = [
    new Agent({ keepAlive: true, maxSockets: 1 }),
    new Agent({ keepAlive: true, maxSockets: 1 }),
  ] as const;
  const ask = (path: string, agent: Agent): Promise<number> =>
    new Promise((resolve, reject) => {
      get(`${gateway.url}${path}`, { agent }, (response) => {
        response.resume().once("end", () => resolve(response.statusCode ?? 0));
      }).once("error", reject);
    });
  for (const agent of agents) expect(await ask("/livez", agent)).toBe(200);
  // The pending request delays the shutdown, so other connections stay open for a moment.
  const waiting = gateway.get(QUOTE_PATH);
  await vi.waitFor(() => expect(proxy.requests.length).toBeGreaterThan(1), { timeout: 60_000 });
  const stopped = gateway.stop();
  expect(await Promise.all([ask("/livez", agents[0]), ask("/readyz", agents[1])])).toEqual([503, 503]);
  expect((await waiting).status).toBe(200);
  await stopped;
  for (const agent of agents) agent.destroy();
});
