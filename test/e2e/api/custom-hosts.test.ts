import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { TRANSFERS_COMMITTED_TOPIC } from "../../../src/hop/settlement.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../../support/service/metrics-scrape.js";
import { readBody, sendJson } from "../../support/stubs/http-stub.js";
import { startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// A caller may name RPC endpoints for all chains at one host that is not its own: one call must not become many requests.
// What a caller's endpoints say is the answer to that caller alone.

interface RpcRequest {
  readonly calls: readonly { readonly id: number; readonly method: string }[];
  readonly isBatch: boolean;
  readonly response: ServerResponse;
}

const slugs = Object.keys(inject("network").chains);
const traffic = { requests: 0, open: 0, maxOpen: 0 };
let behave: (request: RpcRequest) => void = () => {};
const gateway = useGateway({ CUSTOM_RPC_URLS: "any" });

const server = createServer(async (request, response) => {
  traffic.requests += 1;
  const body = JSON.parse(await readBody(request));
  behave({ calls: Array.isArray(body) ? body : [body], isBatch: Array.isArray(body), response });
});
server.on("connection", (socket) => {
  traffic.open += 1;
  traffic.maxOpen = Math.max(traffic.maxOpen, traffic.open);
  socket.on("close", () => {
    traffic.open -= 1;
  });
});

beforeAll(() => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve)));
beforeEach(() => {
  server.closeAllConnections();
  Object.assign(traffic, { requests: 0, maxOpen: 0 });
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const respond = ({ calls, isBatch, response }: RpcRequest, member: (method: string) => object): void => {
  const results = calls.map(({ id, method }) => ({ jsonrpc: "2.0", id, ...member(method) }));
  sendJson(response, isBatch ? results : results[0]);
};
const rejection = { error: { code: -32600, message: "no" } };

/** How an endpoint fails, and how many requests a chain may cost: with a second one after a rejected batch. */
const failures: readonly [string, (request: RpcRequest) => void, number][] = [
  ["a server error", ({ response }) => response.writeHead(500).end(), 1],
  ["too many requests", ({ response }) => response.writeHead(429).end(), 1],
  ["no JSON", ({ response }) => response.end("<html>"), 1],
  ["a broken connection", ({ response }) => response.destroy(), 1],
  ["no response", () => {}, 1],
  ["another chain id", (request) => respond(request, () => ({ result: "0x539" })), 1],
  ["a client error", ({ response }) => response.writeHead(400).end(), 2],
  ["RPC errors", (request) => respond(request, () => rejection), 2],
  [
    "a rejected batch",
    (request) => {
      if (request.isBatch) sendJson(request.response, { jsonrpc: "2.0", id: null, ...rejection });
      else respond(request, () => ({ result: "0x539" }));
    },
    2,
  ],
];

const unknown = `0x${"ab".repeat(32)}`;
describe.each([
  ["a quote", "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5", 2],
  ["a status by id", `/v1/transfer-status?transferId=${unknown}`, 9],
  ["a status by hash", `/v1/transfer-status?transferHash=${unknown}`, 9],
  ["a withdrawal by id", `/v1/withdrawal?transferId=${unknown}`, 9],
  ["a withdrawal by hash", `/v1/withdrawal?transferHash=${unknown}`, 9],
] as const)("%s over one host for all chains", (_, path, chainCount) => {
  test.each(failures)("is one attempt per chain for an endpoint with %s", async (_failure, behaviour, perChain) => {
    behave = behaviour;
    const { port } = server.address() as AddressInfo;
    const urls = slugs.map((slug) => `&rpcUrl[${slug}]=${encodeURIComponent(`http://127.0.0.1:${port}/${slug}`)}`);
    const { status } = await gateway.get(`${path}${urls.join("")}`);
    expect([503, 504]).toContain(status);
    expect(traffic.requests).toBeGreaterThan(0);
    expect(traffic.requests).toBeLessThanOrEqual(chainCount * perChain);
    expect(traffic.maxOpen).toBeLessThanOrEqual(4);
  });
});

test("a withdrawal is read from the endpoints of its caller, and their lies are told to nobody else", async () => {
  const { chains, transfers } = inject("network");
  const seeded = transfers.find(({ name }) => name === "hop-polygon-arbitrum-withdrawable");
  const [source, destination] = await Promise.all(
    ["polygon", "arbitrum"].map((slug) => startRpcProxy(chains[slug]?.url ?? "")),
  );
  if (source === undefined || destination === undefined) throw new Error("no proxies");
  const path = `/v1/withdrawal?transferHash=${seeded?.transactionHash}`;
  const urls = Object.entries({ polygon: source, arbitrum: destination }).map(
    ([slug, { url }]) => `&rpcUrl[${slug}]=${encodeURIComponent(url)}`,
  );
  const ask = () => gateway.get(`${path}${urls.join("")}`);
  try {
    const expected = await gateway.get(path);
    expect(expected).toMatchObject({ status: 200, body: { state: "WITHDRAWABLE" } });
    const { status, headers, body } = await ask();
    expect({ status, body }).toEqual({ status: 200, body: expected.body });
    expect(headers.get("cache-control")).toBe("no-store");
    // The proof was tried through them as well.
    for (const proxy of [source, destination]) expect(proxy.requests).not.toHaveLength(0);

    // Without the commit, the transfer would wait for one.
    source.behaviour.override = ({ method }, result) => {
      if (method !== "eth_getLogs" || !Array.isArray(result)) return undefined;
      return { result: result.filter(({ topics }) => topics[0] !== TRANSFERS_COMMITTED_TOPIC) };
    };
    expect(await ask()).toMatchObject({
      status: 503,
      body: { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("(check pending)") },
    });
    const metrics = await scrapeMetrics(gateway.metricsUrl);
    expect(metrics.sum("hop_gateway_withdrawal_checks_failed_total")).toBe(0);
    expect((await gateway.get(path)).body).toEqual(expected.body);
  } finally {
    await Promise.all([source.close(), destination.close()]);
  }
});
