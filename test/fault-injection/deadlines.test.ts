import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import {
  BatchGetQuotesRequestSchema,
  GetQuoteRequestSchema,
  GetTransferStatusRequestSchema,
  GetWithdrawalRequestSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { toRpcEnvironment } from "../support/stubs/rpc-proxy.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";
import { type FaultName, faults } from "./faults.js";
import { isUpdatingDocument, readTable, stripTimes, type Table, writeTable } from "./matrix/faults-document.js";

// Whatever upstreams do, a call ends by its deadline, and work that no caller waits for ends too.

const LIMIT_MS = 2_000;
const SHORT_MS = 400;
const LONG_MS = 600_000;
/** A call that ignores the gateway's limit takes longer, a busy machine does not. */
const HANG_MS = 60_000;

const { chains, transfers } = inject("network");
const transfer = transfers.find(({ name }) => name === "usdt-polygon-arbitrum");
const quote = {
  amount: "1000000000000000000",
  token: "ETH",
  fromChain: "polygon",
  toChain: "arbitrum",
  slippage: 0.5,
};
const { amount, toChain, ...shared } = quote;
const batch = { ...shared, amount: [amount], toChain: [toChain] };
const byHash = { transferHash: transfer?.transactionHash ?? "" };
const byId = { transferId: transfer?.transferId ?? "" };
const withdrawable = transfers.find(({ name }) => name === "hop-polygon-arbitrum-withdrawable");
const byWithdrawable = { transferHash: withdrawable?.transactionHash ?? "" };
const quoteParameters = new URLSearchParams({ ...quote, slippage: "0.5" });
const quotePath = `/v1/quote?${quoteParameters}`;
const batchPath = `/v1/quotes?${quoteParameters}`;
const statusPath = `/v1/transfer-status?${new URLSearchParams(byHash)}`;

const describeQuery = <Desc extends DescMessage>(
  path: string,
  rpc: string,
  schema: Desc,
  json: MessageInitShape<Desc>,
) => ({ path, rpc, json, binary: toBinary(schema, create(schema, json)) });

const byIdPath = `/v1/transfer-status?${new URLSearchParams(byId)}`;
const withdrawalPath = `/v1/withdrawal?${new URLSearchParams(byWithdrawable)}`;
const queries = {
  quote: describeQuery(quotePath, "GetQuote", GetQuoteRequestSchema, quote),
  "batch of quotes": describeQuery(batchPath, "BatchGetQuotes", BatchGetQuotesRequestSchema, batch),
  "status by hash": describeQuery(statusPath, "GetTransferStatus", GetTransferStatusRequestSchema, byHash),
  "status by id": describeQuery(byIdPath, "GetTransferStatus", GetTransferStatusRequestSchema, byId),
  withdrawal: describeQuery(withdrawalPath, "GetWithdrawal", GetWithdrawalRequestSchema, byWithdrawable),
};
type Query = (typeof queries)[keyof typeof queries];

const open: { close(): Promise<void> }[] = [];
const closeAll = () => Promise.all(open.splice(0).map((item) => item.close()));

async function startTestGateway(environment: Readonly<Record<string, string>>): Promise<TestGateway> {
  const gateway = await startGateway({ REQUEST_TIMEOUT_MS: String(LIMIT_MS), ...environment });
  open.push({ close: () => gateway.stop() });
  return gateway;
}

async function startChainProxy(slug: string, fault?: FaultName): Promise<FaultProxy> {
  const proxy = await startFaultProxy(chains[slug]?.url ?? "");
  if (fault !== undefined) await proxy.setFault(faults[fault]);
  open.push(proxy);
  return proxy;
}

/** Calls over one protocol with the caller's deadline; returns the code with which the call ended, in that protocol. */
type Transport = (gateway: TestGateway, query: Query, timeoutMs: number) => Promise<unknown>;

interface ErrorBody {
  readonly code?: string;
  readonly message?: string;
  readonly reason?: string;
}

/** Returns the error that a query was answered with; a batch's is its only result. */
function findError(body: unknown): ErrorBody {
  const { results } = body as { results?: readonly { error?: ErrorBody }[] };
  return results?.[0]?.error ?? (body as ErrorBody);
}

const overRest: Transport = async (gateway, { path }) => findError((await gateway.get(path)).body).code;

const overConnect: Transport = async ({ url }, { rpc, json }, timeoutMs) => {
  const response = await fetch(`${url}/hop.bridge.v1.BridgeService/${rpc}`, {
    method: "POST",
    headers: { "content-type": "application/json", "connect-timeout-ms": String(timeoutMs) },
    body: JSON.stringify(json),
  });
  return findError(await response.json()).code;
};

/** Without a gRPC client, which would end the call itself. */
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
    const saveStatus = (headers: Record<string, unknown>): void => {
      status ??= headers["grpc-status"];
    };
    stream.on("response", saveStatus).on("trailers", saveStatus).resume();
    await once(stream, "close");
    return status;
  } finally {
    session.close();
  }
};

const LATE_CODES = { rest: "deadline_exceeded", grpc: "4" };
const calls: readonly (readonly [name: string, transport: Transport, timeoutMs: number, code: string])[] = [
  ["GET", overRest, LONG_MS, LATE_CODES.rest],
  ["Connect, caller allows 0.4 s", overConnect, SHORT_MS, LATE_CODES.rest],
  ["Connect, caller allows 10 min", overConnect, LONG_MS, LATE_CODES.rest],
  ["gRPC, caller allows 0.4 s", overGrpc, SHORT_MS, LATE_CODES.grpc],
  ["gRPC, caller allows 10 min", overGrpc, LONG_MS, LATE_CODES.grpc],
];
/** Faults that make an upstream slow. */
const SLOW_FAULTS = ["hang", "slow drip", "endless body"] as const satisfies readonly FaultName[];

describe("a call ends by its deadline", () => {
  const delaysMs = new Map<string, number>();
  afterAll(closeAll);

  describe.each(SLOW_FAULTS)("while every upstream has the fault: %s", (fault) => {
    let environment: Record<string, string>;
    beforeAll(async () => {
      const { assetsUrl } = inject("network");
      const proxies = await Promise.all(
        Object.keys(chains).map(async (slug) => [slug, await startChainProxy(slug, fault)] as const),
      );
      environment = toRpcEnvironment(proxies);
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

    test.each(calls)("%s", async (name, transport, timeoutMs, code) => {
      const dueMs = Math.min(timeoutMs, LIMIT_MS);
      // A new gateway, which does not know yet that an upstream is down.
      const gateway = await startTestGateway(environment);
      const results = Object.values(queries).map(async (query) => {
        const startedAt = performance.now();
        const endCode = await transport(gateway, query, timeoutMs);
        return { query, endCode, elapsedMs: performance.now() - startedAt };
      });
      for (const { query, endCode, elapsedMs } of await Promise.all(results)) {
        // A batch succeeds just before its deadline, with an error as its result, which is not read from gRPC here.
        if (endCode === "0") expect(query).toBe(queries["batch of quotes"]);
        // An upstream that sends too much is known to have failed before the deadline.
        else if (dueMs === SHORT_MS && fault !== "endless body") expect(endCode).toBe(code);
        else expect([code, "unavailable", "14"]).toContain(endCode);
        expect(elapsedMs).toBeLessThan(HANG_MS);
        const key = `${name} ${fault}`;
        delaysMs.set(key, Math.max(delaysMs.get(key) ?? 0, elapsedMs - dueMs));
      }
    });
  });

  test("docs/internals/faults.md shows the measured delays", () => {
    const cell = (name: string, fault: FaultName): string => {
      const delayMs = delaysMs.get(`${name} ${fault}`);
      return delayMs === undefined ? "" : `${Math.max(0, Math.ceil(delayMs))} ms`;
    };
    const rows = calls.map(([name]) => [name, ...SLOW_FAULTS.map((fault) => cell(name, fault))]);
    const table: Table = [["call", ...SLOW_FAULTS], ...rows];
    if (isUpdatingDocument) writeTable("deadlines", table);
    const names = (rowsOrHead: Table): Table =>
      stripTimes(rowsOrHead).map(([first = ""], index) => (index === 0 ? rowsOrHead[0] : undefined) ?? [first]);
    expect(names(readTable("deadlines"))).toEqual(names(table));
  });
});

test("a withdrawal names a source of attestations that hangs, before the deadline of its caller", async () => {
  const proxy = await startFaultProxy(inject("network").attestationUrl);
  await proxy.setFault(faults.hang);
  open.push(proxy);
  const redeemable = transfers.find(({ name }) => name === "usdc-optimism-ethereum");
  // With a new gateway each time, which has not seen the source fail.
  const ask = async () => {
    const { url } = await startTestGateway({ ATTESTATION_API_URL: proxy.url, REQUEST_TIMEOUT_MS: String(LONG_MS) });
    const response = await fetch(`${url}/hop.bridge.v1.BridgeService/GetWithdrawal`, {
      method: "POST",
      headers: { "content-type": "application/json", "connect-timeout-ms": "1800" },
      body: JSON.stringify({ transferHash: redeemable?.transactionHash }),
    });
    return (await response.json()) as ErrorBody;
  };
  // A busy machine may be late, but not each time.
  await expect.poll(ask).toMatchObject({
    code: "unavailable",
    message: "the CCTP attestation source does not respond",
  });
  await closeAll();
});

describe("a caller that leaves", () => {
  afterEach(closeAll);

  /** Sends a query whose caller can leave. */
  function sendAbortable(gateway: TestGateway, path: string): { leave(): Promise<void> } {
    const caller = new AbortController();
    const response = fetch(`${gateway.url}${path}`, { signal: caller.signal }).catch(() => {});
    return {
      async leave() {
        caller.abort();
        await response;
      },
    };
  }

  test("ends the lookup that nobody waits for, and the next caller begins anew", async () => {
    const proxy = await startChainProxy("polygon", "latency");
    const gateway = await startTestGateway({ RPC_URL_POLYGON: proxy.url, REQUEST_TIMEOUT_MS: "60000" });
    const query = sendAbortable(gateway, statusPath);
    await expect.poll(() => proxy.requests).toBeGreaterThan(0);
    await query.leave();
    await expect.poll(() => proxy.aborted).toBeGreaterThan(0);
    expect(await gateway.get(statusPath)).toMatchObject({ status: 200, body: { state: "BONDED" } });
  });

  test("leaves no request behind after the deadline of its lookup", async () => {
    const proxy = await startChainProxy("polygon", "hang");
    const gateway = await startTestGateway({ RPC_URL_POLYGON: proxy.url });
    const query = sendAbortable(gateway, statusPath);
    await expect.poll(() => proxy.requests).toBeGreaterThan(0);
    await query.leave();
    // Begins a lookup of its own, and is answered at its deadline.
    expect((await gateway.get(statusPath)).status).toBeGreaterThanOrEqual(503);
    const { requests } = proxy;
    await expect.poll(() => proxy.aborted).toBe(requests);
    await gateway.get("/v1/available-routes");
    expect(proxy.requests).toBe(requests);
  });

  test("does not end the lookup that another caller waits for", async () => {
    const proxy = await startChainProxy("polygon", "latency");
    const gateway = await startTestGateway({ RPC_URL_POLYGON: proxy.url, REQUEST_TIMEOUT_MS: "60000" });
    const other = gateway.get(statusPath);
    const query = sendAbortable(gateway, statusPath);
    await expect.poll(() => proxy.requests).toBeGreaterThan(0);
    await query.leave();
    expect(await other).toMatchObject({ status: 200, body: { state: "BONDED" } });
  });

  test("ends the requests to its custom endpoint", async () => {
    const proxy = await startChainProxy("polygon", "hang");
    const gateway = await startTestGateway({ CUSTOM_RPC_URLS: "any", REQUEST_TIMEOUT_MS: "60000" });
    const parameter = `&rpcUrl[polygon]=${encodeURIComponent(proxy.url)}`;
    const queried = [quotePath, statusPath].map((path) => sendAbortable(gateway, `${path}${parameter}`));
    await expect.poll(() => proxy.requests).toBeGreaterThanOrEqual(2);
    await Promise.all(queried.map((query) => query.leave()));
    await expect.poll(() => proxy.aborted).toBe(proxy.requests);
  });

  test("leaves the chain state that was read for its quote to the next caller", async () => {
    const proxy = await startChainProxy("polygon", "latency");
    const gateway = await startTestGateway({
      RPC_URL_POLYGON: proxy.url,
      REQUEST_TIMEOUT_MS: "60000",
      QUOTE_MAX_AGE_MS: "600000",
      QUOTE_MAX_STALE_MS: "600000",
    });
    const query = sendAbortable(gateway, quotePath);
    await expect.poll(() => proxy.requests).toBeGreaterThan(0);
    await query.leave();
    expect((await gateway.get(quotePath)).status).toBe(200);
    expect({ requests: proxy.requests, aborted: proxy.aborted }).toEqual({ requests: 1, aborted: 0 });
  });
});

describe("a start with every upstream down", () => {
  afterEach(closeAll);

  test("succeeds: routes are listed, and other queries are answered with an error that names the chain", async () => {
    const unreachable = "http://127.0.0.1:1";
    const down = toRpcEnvironment(Object.keys(chains).map((slug) => [slug, { url: unreachable }]));
    const sources = { EXPLORER_API_URL: unreachable, ATTESTATION_API_URL: unreachable };
    const gateway = await startTestGateway({ ...down, ...sources, REQUEST_TIMEOUT_MS: "60000" });
    const routes = await gateway.get("/v1/available-routes");
    expect(routes.status).toBe(200);
    expect((routes.body as unknown[]).length).toBeGreaterThan(200);
    for (const { path } of Object.values(queries)) {
      const { status, body } = await gateway.get(path);
      const error = findError(body);
      expect({ status, error }).toMatchObject({
        status: path === queries["batch of quotes"].path ? 200 : 503,
        error: {
          reason: "UPSTREAM_UNAVAILABLE",
          message: expect.stringMatching(/^no RPC endpoint of [a-z]+ responded$/),
        },
      });
    }
  });
});
