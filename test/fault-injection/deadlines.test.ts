import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { GetQuoteRequestSchema, GetTransferStatusRequestSchema } from "../../gen/hop/bridge/v1/bridge_pb.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";
import { type FaultName, faults } from "./faults.js";
import { isUpdatingDocument, readTable, stripTimes, type Table, writeTable } from "./faults-document.js";

// Whatever upstreams do: a call ends in its time, and what nobody waits for ends too.

const LIMIT_MS = 2_000;
const SHORT_MS = 400;
const LONG_MS = 60_000;
/** A shared machine may be late by so much. */
const LEEWAY_MS = 1_000;

const { chains, transfers } = inject("network");
const transfer = transfers.find(({ name }) => name === "usdt-polygon-arbitrum");
const quote = {
  amount: "1000000000000000000",
  token: "ETH",
  fromChain: "polygon",
  toChain: "arbitrum",
  slippage: 0.5,
};
const byHash = { transferHash: transfer?.transactionHash ?? "" };
const byId = { transferId: transfer?.transferId ?? "" };
const quotePath = `/v1/quote?${new URLSearchParams({ ...quote, slippage: "0.5" })}`;
const statusPath = `/v1/transfer-status?${new URLSearchParams(byHash)}`;

const queries = {
  quote: {
    path: quotePath,
    rpc: "GetQuote",
    json: quote,
    binary: toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, quote)),
  },
  "status by hash": {
    path: statusPath,
    rpc: "GetTransferStatus",
    json: byHash,
    binary: toBinary(GetTransferStatusRequestSchema, create(GetTransferStatusRequestSchema, byHash)),
  },
  "status by id": {
    path: `/v1/transfer-status?${new URLSearchParams(byId)}`,
    rpc: "GetTransferStatus",
    json: byId,
    binary: toBinary(GetTransferStatusRequestSchema, create(GetTransferStatusRequestSchema, byId)),
  },
} as const;
type Query = (typeof queries)[keyof typeof queries];

const open: { close(): Promise<void> }[] = [];
const closeAll = () => Promise.all(open.splice(0).map((each) => each.close()));

async function gatewayOn(environment: Readonly<Record<string, string>>): Promise<TestGateway> {
  const gateway = await startGateway({ REQUEST_TIMEOUT_MS: String(LIMIT_MS), ...environment });
  open.push({ close: () => gateway.stop() });
  return gateway;
}

async function proxyOf(slug: string, fault?: FaultName): Promise<FaultProxy> {
  const proxy = await startFaultProxy(chains[slug]?.url ?? "");
  if (fault !== undefined) await proxy.setFault(faults[fault]);
  open.push(proxy);
  return proxy;
}

/** A call by one of the ways in, with the caller's deadline; gives how it ended, as that way says it. */
type Transport = (gateway: TestGateway, question: Query, timeoutMs: number) => Promise<unknown>;

const overRest: Transport = async (gateway, { path }) => {
  const { body } = await gateway.get(path);
  return (body as { code?: string }).code;
};

const overConnect: Transport = async ({ url }, { rpc, json }, timeoutMs) => {
  const response = await fetch(`${url}/hop.bridge.v1.BridgeService/${rpc}`, {
    method: "POST",
    headers: { "content-type": "application/json", "connect-timeout-ms": String(timeoutMs) },
    body: JSON.stringify(json),
  });
  return ((await response.json()) as { code?: string }).code;
};

/** By hand: a gRPC client would end the call by itself. */
const overGrpc: Transport = async ({ url }, { rpc, binary }, timeoutMs) => {
  const session: ClientHttp2Session = connect(url);
  try {
    const stream = session.request({
      ":method": "POST",
      ":path": `/hop.bridge.v1.BridgeService/${rpc}`,
      "content-type": "application/grpc",
      te: "trailers",
      "grpc-timeout": `${timeoutMs}m`,
    });
    const frame = Buffer.alloc(5);
    frame.writeUInt32BE(binary.length, 1);
    stream.end(Buffer.concat([frame, binary]));
    let status: unknown;
    const note = (headers: Record<string, unknown>): void => {
      status ??= headers["grpc-status"];
    };
    stream.on("response", note).on("trailers", note).resume();
    await once(stream, "close");
    return status;
  } finally {
    session.close();
  }
};

const late = { rest: "deadline_exceeded", grpc: "4" };
const calls: readonly { name: string; way: Transport; timeoutMs: number; dueMs: number; code: string }[] = [
  { name: "GET", way: overRest, timeoutMs: LONG_MS, dueMs: LIMIT_MS, code: late.rest },
  { name: "Connect, caller allows 0.4 s", way: overConnect, timeoutMs: SHORT_MS, dueMs: SHORT_MS, code: late.rest },
  { name: "Connect, caller allows 60 s", way: overConnect, timeoutMs: LONG_MS, dueMs: LIMIT_MS, code: late.rest },
  { name: "gRPC, caller allows 0.4 s", way: overGrpc, timeoutMs: SHORT_MS, dueMs: SHORT_MS, code: late.grpc },
  { name: "gRPC, caller allows 60 s", way: overGrpc, timeoutMs: LONG_MS, dueMs: LIMIT_MS, code: late.grpc },
];
/** Faults that make an upstream take long. */
const slow = ["hang", "slow drip", "endless body"] as const satisfies readonly FaultName[];

describe("a call ends in its time", () => {
  const overMs = new Map<string, number>();
  afterAll(closeAll);

  describe.each(slow)("with all upstreams at once: %s", (fault) => {
    let environment: Record<string, string>;
    beforeAll(async () => {
      const { assetsUrl } = inject("network");
      const proxies = await Promise.all(
        Object.keys(chains).map(async (slug) => [slug, await proxyOf(slug, fault)] as const),
      );
      environment = Object.fromEntries(proxies.map(([slug, { url }]) => [`RPC_URL_${slug.toUpperCase()}`, url]));
      const assets = await startFaultProxy(assetsUrl);
      open.push(assets);
      await assets.setFault(faults[fault]);
      Object.assign(environment, {
        ASSETS_URL: assets.url,
        ATTESTATION_API_URL: assets.url,
        EXPLORER_API_URL: assets.url,
      });
    });
    afterAll(closeAll);

    test.each(calls)("$name", async ({ name, way, timeoutMs, dueMs, code }) => {
      // A gateway of its own: none knows already that an upstream is down.
      const gateway = await gatewayOn(environment);
      const ends = Object.values(queries).map(async (question) => {
        const from = performance.now();
        const said = await way(gateway, question, timeoutMs);
        return { said, ms: performance.now() - from };
      });
      for (const { said, ms } of await Promise.all(ends)) {
        // What has answered too much is known to be of no use before that.
        if (dueMs === SHORT_MS && fault !== "endless body") expect(said).toBe(code);
        else expect([code, "unavailable", "14"]).toContain(said);
        expect(ms).toBeLessThan(dueMs + LEEWAY_MS);
        const key = `${name} ${fault}`;
        overMs.set(key, Math.max(overMs.get(key) ?? 0, ms - dueMs));
      }
    });
  });

  test("docs/faults.md shows it", () => {
    const cell = (name: string, fault: FaultName): string => {
      const ms = overMs.get(`${name} ${fault}`);
      return ms === undefined ? "" : `${Math.max(0, Math.ceil(ms))} ms`;
    };
    const rows = calls.map(({ name }) => [name, ...slow.map((fault) => cell(name, fault))]);
    const table: Table = [["call", ...slow], ...rows];
    if (isUpdatingDocument) writeTable("deadlines", table);
    const names = (each: Table): Table =>
      stripTimes(each).map(([first = ""], place) => (place === 0 ? each[0] : undefined) ?? [first]);
    expect(names(readTable("deadlines"))).toEqual(names(table));
  });
});

describe("a caller that leaves", () => {
  afterEach(closeAll);

  /** Asks and leaves after a while. */
  async function askAndLeave(gateway: TestGateway, path: string, afterMs: number): Promise<void> {
    const leaving = new AbortController();
    const asked = fetch(`${gateway.url}${path}`, { signal: leaving.signal }).catch(() => {});
    await sleep(afterMs);
    leaving.abort();
    await asked;
  }

  test("ends the look-up that nobody else waits for", async () => {
    const proxy = await proxyOf("polygon", "hang");
    const gateway = await gatewayOn({ RPC_URL_POLYGON: proxy.url, REQUEST_TIMEOUT_MS: "60000" });
    const left = askAndLeave(gateway, statusPath, 300);
    await expect.poll(() => proxy.requests).toBeGreaterThan(0);
    expect(proxy.aborted).toBe(0);
    await left;
    // Much sooner than an attempt would be over.
    await expect.poll(() => proxy.aborted, { timeout: 1_000, interval: 10 }).toBe(proxy.requests);
  });

  test("does not end the look-up that another waits for", async () => {
    const proxy = await proxyOf("polygon", "latency");
    const gateway = await gatewayOn({ RPC_URL_POLYGON: proxy.url });
    const stays = gateway.get(statusPath);
    await askAndLeave(gateway, statusPath, 50);
    expect(await stays).toMatchObject({ status: 200, body: { state: "BONDED" } });
  });

  test("ends what was asked of an endpoint that it named", async () => {
    const proxy = await proxyOf("polygon", "hang");
    const gateway = await gatewayOn({ CUSTOM_RPC_URLS: "any", REQUEST_TIMEOUT_MS: "60000" });
    const own = `&rpcUrl[polygon]=${encodeURIComponent(proxy.url)}`;
    await Promise.all([
      askAndLeave(gateway, `${quotePath}${own}`, 300),
      askAndLeave(gateway, `${statusPath}${own}`, 300),
    ]);
    expect(proxy.requests).toBeGreaterThanOrEqual(2);
    await expect.poll(() => proxy.aborted, { timeout: 1_000, interval: 10 }).toBe(proxy.requests);
  });

  test("leaves what was read for its quote to whoever asks next", async () => {
    const proxy = await proxyOf("polygon", "latency");
    const gateway = await gatewayOn({ RPC_URL_POLYGON: proxy.url });
    await askAndLeave(gateway, quotePath, 100);
    expect((await gateway.get(quotePath)).status).toBe(200);
    expect({ requests: proxy.requests, aborted: proxy.aborted }).toEqual({ requests: 1, aborted: 0 });
  });
});

describe("a start with everything down", () => {
  afterEach(closeAll);

  test("is a start: routes are listed, and all else is refused with a name", async () => {
    const nowhere = "http://127.0.0.1:1";
    const down = Object.fromEntries(Object.keys(chains).map((slug) => [`RPC_URL_${slug.toUpperCase()}`, nowhere]));
    const gateway = await gatewayOn({ ...down, EXPLORER_API_URL: nowhere, ATTESTATION_API_URL: nowhere });
    const routes = await gateway.get("/v1/available-routes");
    expect(routes.status).toBe(200);
    expect((routes.body as unknown[]).length).toBeGreaterThan(200);
    for (const { path } of Object.values(queries)) {
      const { status, body } = await gateway.get(path);
      expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
      expect((body as { message: string }).message).toMatch(/of [a-z]+ gives/);
    }
  });
});
