import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import {
  BridgeService,
  GetQuoteRequestSchema,
  GetQuoteResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import type { CachePolicy } from "../../../../src/operations/operation.js";
import { callUnaryGrpc, createGrpcClient } from "../support/grpc-client.js";
import { sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { echoQuote, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const POLICY = { ageSeconds: 1.9, maxAgeSeconds: 4, staleWhileRevalidateSeconds: 30 };
const EXPECTED_HEADERS = {
  age: "1",
  "cache-control": "public, max-age=4, stale-while-revalidate=30",
  vary: "Accept-Encoding",
};

/** Headers that shared caches must not send to others. */
const CALLER_HEADERS = ["x-request-id", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];

const startServerWith = (policy: CachePolicy | undefined, error?: ServiceError) =>
  startTestServer({
    rateLimit: { requests: 9, windowMs: 60_000 },
    getQuote: (request, context) => {
      if (policy !== undefined) context.setCachePolicy(policy);
      if (error !== undefined) throw error;
      return echoQuote(request, context);
    },
  });

describe("the cache policy of a response", () => {
  test.each([
    ["GET over HTTP/1.1", sendHttp1, "GET", "/v1/quote?amount=1"],
    ["HEAD over HTTP/1.1", sendHttp1, "HEAD", "/v1/quote?amount=1"],
    ["GET over h2c", sendHttp2, "GET", "/v1/quote?amount=1"],
    ["HEAD over h2c", sendHttp2, "HEAD", "/v1/quote?amount=1"],
    ["Connect by POST", sendHttp1, "POST", QUOTE_PATH],
    ["Connect by GET", sendHttp1, "GET", `${QUOTE_PATH}?encoding=json&message=%7B%7D`],
    [
      "Connect by GET on the general path",
      sendHttp1,
      "GET",
      `${QUOTE_PATH}?encoding=json&message=%7B%22amount%22%3Anull%7D`,
    ],
  ] as const)("is in the headers of %s", async (_, send, method, path) => {
    const options = method === "POST" ? { headers: { "content-type": "application/json" }, body: "{}" } : {};
    const open = await startServerWith(POLICY);
    const shared = await send(open.port, path, { method, ...options });
    expect(shared).toMatchObject({ status: 200, headers: EXPECTED_HEADERS });
    expect(shared.headers["access-control-expose-headers"]).toContain("Age");
    // Shared caches keep no responses to POST.
    expect([...CALLER_HEADERS].map((name) => name in shared.headers)).toEqual(
      CALLER_HEADERS.map(() => method === "POST"),
    );

    const closed = await startServerWith("private");
    const { headers } = await send(closed.port, path, { method, ...options });
    expect(headers["cache-control"]).toBe("no-store");
    expect(Object.keys(headers)).toEqual(expect.arrayContaining(CALLER_HEADERS));
    expect(headers).not.toHaveProperty("age");

    const silent = await startServerWith(undefined);
    expect((await send(silent.port, path, { method, ...options })).headers).not.toHaveProperty("cache-control");

    const failing = await startServerWith(POLICY, new ServiceError("UPSTREAM_UNAVAILABLE", "no"));
    const failed = await send(failing.port, path, { method, ...options });
    expect(failed).toMatchObject({ status: 503, headers: { "cache-control": "no-store" } });
    expect(failed.headers).not.toHaveProperty("age");
    expect(Object.keys(failed.headers)).toEqual(expect.arrayContaining(CALLER_HEADERS));
  });

  test.each([
    ["the fast path", {}],
    ["the general path", { rpcUrl: { optimism: "http://x" } }],
  ])("is in the metadata of gRPC on %s", async (_, extraFields) => {
    const { port } = await startServerWith(POLICY);
    const client = createGrpcClient(port);
    const request = { $typeName: GetQuoteRequestSchema.typeName, rpcUrl: {}, ...extraFields } as never;
    const { headers } = await callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, request);
    client.close();
    expect(headers.getMap()).toMatchObject(EXPECTED_HEADERS);
  });

  test("reaches a Connect client", async () => {
    const { url } = await startServerWith(POLICY);
    const client = createClient(BridgeService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
    let age: string | null = null;
    await client.getQuote({ amount: "1" }, { onHeader: (headers) => (age = headers.get("age")) });
    expect(age).toBe("1");
  });
});
