import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { PRICES_USD } from "../../../devnet/assets-server.js";
import { getTokenDecimals } from "../../../src/hop/tokens.js";
import { closeAfterTest } from "../../support/close-after-test.js";
import { startGatewayForTest, type TestGateway, useGateway } from "../../support/service/in-process-gateway.js";
import { startHttpStub } from "../../support/stubs/http-stub.js";

// Quotes where Hop's hosts are gone for ever: settings built into the SDK, prices from the feeds on the chains.

const { assetsUrl } = inject("network");
const NO_HOP_HOSTS = { ASSETS_URL: "off", EXPLORER_API_URL: "off" };
const HOP_PRICE = { HOP: PRICES_USD.HOP };

interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly destinationChainSlug: string;
}

interface Prices {
  readonly tokenUsd: number;
  readonly nativeUsd: number;
  readonly tokenSource: string;
  readonly tokenUpdatedAt: number;
  readonly nativeSource: string;
}

interface Quote {
  readonly deadline?: number;
  readonly destinationDeadline?: number;
  readonly details?: { readonly prices: Prices };
}

// The second is in the deliveries' deadlines, and a zero byte there costs less gas: one second for all quotes.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }));
afterAll(() => void vi.useRealTimers());
/** The service without Hop's hosts, and one that quotes with the SDK and the same prices, as constants. */
const gateway = useGateway({ ...NO_HOP_HOSTS, TOKEN_PRICES: JSON.stringify(HOP_PRICE) });
const fixedPrices = { TOKEN_PRICES: JSON.stringify(PRICES_USD) };
const reference = useGateway({ ...NO_HOP_HOSTS, ...fixedPrices, QUOTE_ENGINE: "sdk" });

async function listRoutes(): Promise<readonly Route[]> {
  return (await gateway.get("/v1/available-routes")).body as readonly Route[];
}

async function quote(from: TestGateway, route: Route, rest = ""): Promise<Quote> {
  const { token, sourceChainSlug, destinationChainSlug } = route;
  const amount = 100n * 10n ** BigInt(getTokenDecimals(token));
  const path = `/v1/quote?amount=${amount}&token=${token}&fromChain=${sourceChainSlug}&toChain=${destinationChainSlug}&slippage=0.5`;
  const { status, body } = await from.get(`${path}${rest}`);
  expect({ path, status, body }).toMatchObject({ status: 200 });
  const { deadline, destinationDeadline, ...values } = body as Quote;
  return values;
}

test("quotes every route of mainnet, like the SDK with the same prices", async () => {
  const routes = await listRoutes();
  expect(routes).toHaveLength(240);
  for (const route of routes) {
    const expected = quote(reference, route);
    expect(await quote(gateway, route), JSON.stringify(route)).toEqual(await expected);
  }
});

test("says of every price where it comes from", async () => {
  const sources = new Map<string, Set<string>>();
  for (const route of await listRoutes()) {
    const { details } = await quote(gateway, route, "&view=FULL");
    if (details === undefined) throw new Error("no details");
    const { tokenUsd, tokenSource, tokenUpdatedAt, nativeSource } = details.prices;
    if (tokenSource === "") expect(details.prices).toMatchObject({ tokenUsd: 0, nativeUsd: 0, nativeSource: "" });
    else {
      expect(tokenUsd).toBeCloseTo(PRICES_USD[route.token] ?? Number.NaN, 8);
      expect(nativeSource).toBe("CHAINLINK");
      const isFixed = tokenSource === "FIXED";
      expect(tokenUpdatedAt > Date.now() / 1000 - 3600 || (isFixed && tokenUpdatedAt === 0)).toBe(true);
    }
    sources.set(route.token, (sources.get(route.token) ?? new Set()).add(tokenSource));
  }
  const listed = Object.fromEntries([...sources].map(([token, names]) => [token, [...names].sort().join()]));
  expect(listed).toMatchObject({ HOP: ",FIXED", ETH: ",CHAINLINK", MAGIC: ",CHAINLINK", rETH: ",CHAINLINK" });
  expect(Object.keys(listed).filter((token) => listed[token]?.includes("ASSETS"))).toEqual([]);
});

test("without a fixed price of HOP only its routes are refused", async () => {
  const unpriced = await startGatewayForTest(NO_HOP_HOSTS);
  const hop = await unpriced.get(
    "/v1/quote?amount=1000000000000000000000&token=HOP&fromChain=optimism&toChain=arbitrum&slippage=0.5",
  );
  expect(hop).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE", message: "no price for HOP" } });
  const eth = { token: "ETH", sourceChainSlug: "optimism", destinationChainSlug: "arbitrum" };
  expect(await quote(unpriced, eth)).toEqual(await quote(gateway, eth));
});

test.each([500, 404])("prices come from the feeds while the host of the prices answers %d", async (code) => {
  const stub = await startHttpStub(async (request, response) => {
    const path = request.url ?? "/";
    if (path === "/token-prices.json") return void response.writeHead(code).end();
    const upstream = await fetch(`${assetsUrl}${path}`);
    response.writeHead(upstream.status, { "content-type": "application/json" }).end(await upstream.text());
  });
  const degraded = await startGatewayForTest({ ASSETS_URL: closeAfterTest(stub).url });
  const magic = { token: "MAGIC", sourceChainSlug: "arbitrum", destinationChainSlug: "nova" };
  const { details } = await quote(degraded, magic, "&view=FULL");
  expect(details?.prices).toMatchObject({ tokenSource: "CHAINLINK", nativeSource: "CHAINLINK", tokenUsd: 0.5 });
});
