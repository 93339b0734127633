import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { BridgeService, GetQuoteRequestSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import type { CachePolicy } from "../../../../src/operations/operation.js";
import { callQuote, createGrpcClient } from "../support/grpc-client.js";
import { postJson, sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { echoQuote, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const POLICY = { ageSeconds: 1.9, maxAgeSeconds: 4, staleWhileRevalidateSeconds: 30 };
const CACHE_HEADERS = {
  age: "1",
  "cache-control": "public, max-age=4, stale-while-revalidate=30",
  vary: "Accept-Encoding",
};
const METADATA = { source: "chain", "observed-at": "2026-07-01T12:00:00.000Z" };
const HEADERS = { ...METADATA, warning: String.raw`299 - "see \"docs\\quotes\"", 299 - "two??lines ?"` };

/** Headers that shared caches must not send to others. */
const CALLER_HEADERS = ["x-request-id", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];

const startServerWith = (policy: CachePolicy | undefined, error?: ServiceError) =>
  startTestServer({
    rateLimit: { requests: 9, windowMs: 60_000 },
    getQuote: (request, context) => {
      if (policy !== undefined) context.setCachePolicy(policy);
      context.setResponseMetadata({ source: "index" });
      context.setResponseMetadata(METADATA);
      context.addWarning('see "docs\\quotes"');
      context.addWarning("two\r\nlines \u00fc");
      if (error !== undefined) throw error;
      return echoQuote(request, context);
    },
  });

const CONNECT_GET = `${QUOTE_PATH}?encoding=json&message=%7B%7D`;
const GENERAL_CONNECT_GET = `${QUOTE_PATH}?encoding=json&message=%7B%22amount%22%3Anull%7D`;

describe("the cache policy and the metadata of a response", () => {
  test.each([
    ["GET over HTTP/1.1", sendHttp1, "GET", "/v1/quote?amount=1"],
    ["HEAD over HTTP/1.1", sendHttp1, "HEAD", "/v1/quote?amount=1"],
    ["GET over h2c", sendHttp2, "GET", "/v1/quote?amount=1"],
    ["HEAD over h2c", sendHttp2, "HEAD", "/v1/quote?amount=1"],
    ["Connect by POST", sendHttp1, "POST", QUOTE_PATH],
    ["Connect by GET", sendHttp1, "GET", CONNECT_GET],
    ["Connect by GET on the general path", sendHttp1, "GET", GENERAL_CONNECT_GET],
    ["Connect by GET on the general path over h2c", sendHttp2, "GET", GENERAL_CONNECT_GET],
  ] as const)("are in the headers of %s", async (_, send, method, path) => {
    const request = method === "POST" ? postJson("{}") : { method };
    const open = await startServerWith(POLICY);
    const shared = await send(open.port, path, request);
    expect(shared).toMatchObject({ status: 200, headers: { ...CACHE_HEADERS, ...HEADERS } });
    const exposed = shared.headers["access-control-expose-headers"]?.split(", ");
    expect(exposed).toEqual(expect.arrayContaining(["Age", "Source", "Observed-At", "Warning", "ETag"]));
    // Shared caches keep no responses to POST.
    expect(CALLER_HEADERS.map((name) => name in shared.headers)).toEqual(CALLER_HEADERS.map(() => method === "POST"));

    const closed = await startServerWith("private");
    const { headers } = await send(closed.port, path, request);
    expect(headers).toMatchObject({ "cache-control": "no-store", ...HEADERS });
    expect(Object.keys(headers)).toEqual(expect.arrayContaining(CALLER_HEADERS));
    expect(headers).not.toHaveProperty("age");

    const silent = await startServerWith(undefined);
    expect((await send(silent.port, path, request)).headers).not.toHaveProperty("cache-control");

    const failing = await startServerWith(POLICY, new ServiceError("UPSTREAM_UNAVAILABLE", "no"));
    const failed = await send(failing.port, path, request);
    expect(failed).toMatchObject({ status: 503, headers: { "cache-control": "no-store" } });
    for (const name of ["age", "source", "observed-at", "warning"]) expect(failed.headers).not.toHaveProperty(name);
    expect(Object.keys(failed.headers)).toEqual(expect.arrayContaining(CALLER_HEADERS));
  });

  test.each([
    ["the fast path", {}],
    ["the general path", { rpcUrl: { optimism: "http://x" } }],
  ])("are in the leading metadata of gRPC on %s", async (_, fields) => {
    const { port } = await startServerWith(POLICY);
    const { headers } = await callQuote(createGrpcClient(port), create(GetQuoteRequestSchema, fields));
    expect(headers.getMap()).toMatchObject({ ...CACHE_HEADERS, ...HEADERS });
  });

  test.each([
    ["Connect over HTTP/1.1", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
    ["Connect over HTTP/2", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2" })],
    ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ])("reach a client of %s", async (_, createTransport) => {
    const { url } = await startServerWith(POLICY);
    let received = new Headers();
    const client = createClient(BridgeService, createTransport(url));
    const onHeader = (headers: Headers): void => {
      received = headers;
    };
    await client.getQuote({ amount: "1" }, { onHeader });
    expect(Object.fromEntries(received)).toMatchObject({ age: "1", ...HEADERS });
  });
});

test.each([
  ["Source", "chain"],
  ["source ", "chain"],
  ["1st", "chain"],
  ["", "chain"],
  ["source", ""],
  ["source", "a b"],
  ["source", "a\r\nset-cookie: b"],
  ["source", "ü"],
])("metadata that is not valid in a header is an internal error: %j with %j", async (name, value) => {
  const { port, internalErrors } = await startTestServer({
    getQuote: (request, context) => {
      context.setResponseMetadata({ [name]: value });
      return echoQuote(request, context);
    },
  });
  expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(500);
  expect(internalErrors).toEqual([expect.any(TypeError)]);
});
