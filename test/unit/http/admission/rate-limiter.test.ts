import { once } from "node:events";
import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test, vi } from "vitest";
import { Health } from "../../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  BridgeService,
  GetQuoteRequestSchema,
  GetQuoteResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { RateLimiter } from "../../../../src/http/admission/rate-limiter.js";
import type { RequestContext } from "../../../../src/http/request/request-context.js";
import { callUnaryGrpc, createGrpcClient } from "../support/grpc-client.js";
import { type RawResponse, sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const MINUTE = { windowMs: 60_000 };
const GET = "/v1/quote?amount=1";
const JSON_POST = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
const grpcWeb = { method: "POST", headers: { "content-type": "application/grpc-web+proto" }, body: Buffer.alloc(5) };

const rateOf = ({ headers }: Pick<RawResponse, "headers">) => [
  headers["ratelimit-limit"],
  headers["ratelimit-remaining"],
  headers["ratelimit-reset"],
];

describeOnBothPaths(() => {
  describe("the rate limit over HTTP", () => {
    test.each([
      ["GET", sendHttp1, GET, {}],
      ["GET over h2c", sendHttp2, GET, {}],
      ["HEAD", sendHttp1, GET, { method: "HEAD" }],
      ["Connect by POST", sendHttp1, QUOTE_PATH, JSON_POST],
      ["Connect by POST over h2c", sendHttp2, QUOTE_PATH, JSON_POST],
      ["Connect on the general path", sendHttp1, QUOTE_PATH, { ...JSON_POST, body: '{"amount":null}' }],
      ["Connect by GET", sendHttp1, `${QUOTE_PATH}?encoding=json&message=%7B%7D`, {}],
      ["gRPC-Web", sendHttp1, QUOTE_PATH, grpcWeb],
      ["gRPC-Web over h2c", sendHttp2, QUOTE_PATH, grpcWeb],
    ] as const)("is in the headers of every response of %s, admitted or rejected", async (_, send, path, request) => {
      const { port, accessLines, waitForAccessLines } = await startTestServer({
        rateLimit: { requests: 2, ...MINUTE },
      });
      const [first, second, refused] = [
        await send(port, path, request),
        await send(port, path, request),
        await send(port, path, request),
      ];
      expect([first.status, ...rateOf(first)]).toEqual([200, "2", "1", "60"]);
      expect([second.status, ...rateOf(second)]).toEqual([200, "2", "0", "60"]);
      expect([...rateOf(refused), refused.headers["retry-after"]]).toEqual(["2", "0", "60", "60"]);
      if (path === QUOTE_PATH && request === grpcWeb) expect(refused.headers["grpc-status"]).toBe("8");
      else expect([refused.status, refused.headers["cache-control"]]).toEqual([429, "no-store"]);
      const exposed = refused.headers["access-control-expose-headers"]?.split(", ");
      expect(exposed).toEqual(
        expect.arrayContaining(["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"]),
      );
      await waitForAccessLines(3);
      expect(accessLines.map(({ operation, code }) => [operation, code])).toEqual([
        [QUOTE, "ok"],
        [QUOTE, "ok"],
        [QUOTE, "resource_exhausted"],
      ]);
      expect(new Set(accessLines.map(({ protocol }) => protocol)).size).toBe(1);
    });

    test("is not in responses that shared caches may keep, although it counts them", async () => {
      const answer = Object.freeze(create(GetQuoteResponseSchema, { amountIn: "1" }));
      const { port } = await startTestServer({
        rateLimit: { requests: 9, ...MINUTE },
        getQuote: (_, context) => {
          context.setCachePolicy({ ageSeconds: 0, maxAgeSeconds: 5 });
          return answer;
        },
      });
      const { headers } = await sendHttp1(port, GET);
      const kept = await sendHttp1(port, GET, { headers: { "if-none-match": headers.etag ?? "" } });
      expect([kept.status, ...rateOf(kept)]).toEqual([304, undefined, undefined, undefined]);
      expect(rateOf(await sendHttp1(port, QUOTE_PATH, JSON_POST))).toEqual(["9", "6", "60"]);
    });

    test("is in the headers of every error", async () => {
      const { port } = await startTestServer({
        rateLimit: { requests: 99, ...MINUTE },
        getQuote: () => {
          throw new ServiceError("TRANSFER_NOT_FOUND", "no");
        },
      });
      for (const [path, request, status] of [
        [GET, {}, 404],
        [QUOTE_PATH, JSON_POST, 404],
        ["/v1/quote?unknown=1", {}, 400],
        [GET, { method: "DELETE" }, 405],
        [QUOTE_PATH, { ...JSON_POST, body: "{" }, 400],
        [QUOTE_PATH, { ...JSON_POST, headers: { "content-type": "text/plain" } }, 415],
      ] as const) {
        const answer = await sendHttp1(port, path, request);
        expect([answer.status, rateOf(answer)[0]]).toEqual([status, "99"]);
      }
      // All of them were counted.
      expect(rateOf(await sendHttp1(port, GET))[1]).toBe("92");
    });

    test("does not apply to paths without an operation, even when it is exceeded", async () => {
      const { port, url } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE } });
      await sendHttp1(port, GET);
      expect((await sendHttp1(port, GET)).status).toBe(429);
      const health = { ...JSON_POST, body: "{}" };
      for (const [path, request, status] of [
        ["/grpc.health.v1.Health/Check", health, 200],
        ["/nowhere", {}, 404],
        [GET, { method: "OPTIONS" }, 204],
        [QUOTE_PATH, { method: "OPTIONS" }, 204],
      ] as const) {
        const answer = await sendHttp1(port, path, request);
        expect([answer.status, rateOf(answer)[0]]).toEqual([status, undefined]);
      }
      const transport = createGrpcTransport({ baseUrl: url });
      expect((await createClient(Health, transport).check({})).status).toBe(1);
      async function* listServices() {
        yield { messageRequest: { case: "listServices" as const, value: "" } };
      }
      for await (const answer of createClient(ServerReflection, transport).serverReflectionInfo(listServices())) {
        expect(answer.messageResponse.case).toBe("listServicesResponse");
      }
    });

    test("is shared by all protocols", async () => {
      const { port } = await startTestServer({ rateLimit: { requests: 3, ...MINUTE } });
      const client = createGrpcClient(port);
      const message = create(GetQuoteRequestSchema, {});
      expect((await sendHttp1(port, "/v1/available-routes")).status).toBe(200);
      expect((await sendHttp2(port, GET)).status).toBe(200);
      const last = await callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, message);
      expect(last.headers.getMap()).toMatchObject({ "ratelimit-remaining": "0" });
      expect((await sendHttp1(port, "/v1/transfer-status")).status).toBe(429);
      client.close();
    });

    test("adds no headers if it is not configured", async () => {
      const { port } = await startTestServer();
      const { headers } = await sendHttp1(port, GET);
      expect(Object.keys(headers).filter((name) => name.startsWith("ratelimit"))).toEqual([]);
      expect(headers["access-control-expose-headers"]).not.toContain("RateLimit");
    });
  });

  describe("the rate limit over gRPC", () => {
    test.each([
      ["the fast path", {}, {}],
      ["the general path", { rpcUrl: { optimism: "http://x" } }, {}],
      ["the general path, with a compressed message", {}, { "grpc-encoding": "gzip" }],
    ])("is in the leading metadata of %s, and a rejection states when to retry", async (_, more, headers) => {
      const { port } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE } });
      const client = createGrpcClient(port);
      const message = create(GetQuoteRequestSchema, more);
      const ask = () =>
        callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, message, { headers });
      const answered = await ask();
      expect(answered.error).toBeUndefined();
      const rate = { "ratelimit-limit": "1", "ratelimit-remaining": "0", "ratelimit-reset": "60" };
      expect(answered.headers.getMap()).toMatchObject(rate);
      const { error, headers: refused } = await ask();
      expect(error).toMatchObject({ code: Code.ResourceExhausted, details: "too many requests from this address" });
      const told = { ...refused.getMap(), ...error?.metadata.getMap() };
      expect(told).toMatchObject({ ...rate, "retry-after": "60" });
      client.close();
    });

    test("counts a call that falls back only once", async () => {
      const { port } = await startTestServer({ rateLimit: { requests: 9, ...MINUTE } });
      const client = createGrpcClient(port);
      const broken = Buffer.from([0xff, 0xff]);
      const { error } = await callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, broken);
      expect(error?.code).toBe(Code.InvalidArgument);
      expect(rateOf(await sendHttp1(port, GET))[1]).toBe("7");
      client.close();
    });

    test("ends the stream of a rejected caller that continues to send", async () => {
      const { port, url } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE } });
      await sendHttp1(port, GET);
      const session = connectHttp2(url);
      const stream = session.request({ ":path": QUOTE_PATH, ":method": "POST", "content-type": "application/grpc" });
      stream.on("error", () => {}).resume();
      stream.write(Buffer.alloc(10));
      // The general path sends the status in the headers: a Trailers-Only response.
      const fields: IncomingHttpHeaders = {};
      stream.on("response", (headers) => Object.assign(fields, headers));
      stream.on("trailers", (trailers) => Object.assign(fields, trailers));
      await once(stream, "close");
      expect(fields).toMatchObject({ "grpc-status": "8" });
      session.destroy();
    });
  });

  test.each([
    ["gRPC", createGrpcTransport],
    ["gRPC-Web", createGrpcWebTransport],
    ["Connect", createConnectTransport],
  ])("a client of %s receives RATE_LIMITED with its details", async (_, open) => {
    const { url } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE } });
    const client = createClient(BridgeService, open({ baseUrl: url, httpVersion: "2" }));
    await client.getQuote({});
    const error = await client.getQuote({}).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.ResourceExhausted, rawMessage: "too many requests from this address" });
    const { metadata, details } = error as ConnectError;
    expect([metadata.get("retry-after"), metadata.get("ratelimit-limit")]).toEqual(["60", "1"]);
    expect(details).toMatchObject([{ type: "google.rpc.ErrorInfo" }]);
  });
});

describe("callers are identified", () => {
  const forwarded = (address: string) => ({ headers: { "x-forwarded-for": address } });

  test("by the last forwarded address behind a trusted proxy, an IPv6 address by its /64", async () => {
    const { port } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE }, trustProxy: true });
    const statuses: number[] = [];
    for (const address of ["192.0.2.1", "192.0.2.2", "192.0.2.9, 192.0.2.1", "2001:db8::1", "[2001:db8::2]:99"]) {
      statuses.push((await sendHttp1(port, GET, forwarded(address))).status);
    }
    expect(statuses).toEqual([200, 200, 429, 200, 429]);
  });

  test("by their connections alone without a trusted proxy", async () => {
    const { port } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE } });
    expect((await sendHttp1(port, GET, forwarded("192.0.2.1"))).status).toBe(200);
    expect((await sendHttp1(port, GET, forwarded("192.0.2.2"))).status).toBe(429);
  });
});

describe("a call that counts as several requests", () => {
  const setup = (requests: number) => {
    const onFailure = (error: unknown): never => {
      throw error;
    };
    return new RateLimiter({ requests, ...MINUTE, onFailure });
  };
  const contextOf = (caller: string) => ({ caller, rateLimitHeaders: [] as readonly string[] }) as RequestContext;

  test("takes as many of the window, and is rejected if there are not as many", async () => {
    const limiter = setup(10);
    const context = contextOf("a");
    await limiter.count(context);
    await limiter.countMore(context, 6);
    expect(context.rateLimitHeaders).toEqual(expect.arrayContaining(["ratelimit-remaining", "4"]));
    const next = contextOf("a");
    expect(await limiter.count(next)).toBeUndefined();
    await expect(limiter.countMore(next, 5)).rejects.toMatchObject({ reason: "RATE_LIMITED", retryAfterSeconds: 60 });
    expect(await limiter.count(contextOf("b"))).toBeUndefined();
  });

  test("counts as one if it is rejected", async () => {
    const limiter = setup(10);
    const rejected = contextOf("a");
    await limiter.count(rejected);
    await limiter.count(rejected);
    await expect(limiter.countMore(rejected, 10)).rejects.toMatchObject({ reason: "RATE_LIMITED" });
    expect(rejected.rateLimitHeaders).toEqual(expect.arrayContaining(["ratelimit-remaining", "8"]));
    const smaller = contextOf("a");
    expect(await limiter.count(smaller)).toBeUndefined();
    await limiter.countMore(smaller, 8);
    expect(smaller.rateLimitHeaders).toEqual(expect.arrayContaining(["ratelimit-remaining", "0"]));
    expect(await limiter.count(contextOf("a"))).toMatchObject({ reason: "RATE_LIMITED" });
  });

  test("takes the whole window at most", async () => {
    const limiter = setup(10);
    const context = contextOf("a");
    await limiter.count(context);
    await limiter.countMore(context, 100);
    expect(context.rateLimitHeaders).toEqual(expect.arrayContaining(["ratelimit-remaining", "0"]));
    expect(await limiter.count(contextOf("a"))).toMatchObject({ reason: "RATE_LIMITED" });
  });

  test("is not counted again if it counts as one", async () => {
    const limiter = setup(1);
    const context = contextOf("a");
    await limiter.count(context);
    await limiter.countMore(context, 1);
    await limiter.countMore(context, 0);
  });
});

describe("the tracked windows", () => {
  const call = (caller: string) => ({ caller, rateLimitHeaders: [] as readonly string[] }) as RequestContext;
  const onFailure = (error: unknown): never => {
    throw error;
  };

  test("are dropped when they end", async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
    const limiter = new RateLimiter({ requests: 1, windowMs: 50, onFailure });
    expect(await limiter.count(call("a"))).toBeUndefined();
    expect(await limiter.count(call("a"))).toMatchObject({ reason: "RATE_LIMITED", retryAfterSeconds: 1 });
    vi.advanceTimersByTime(70);
    expect(await limiter.count(call("a"))).toBeUndefined();
  });

  test("are bounded: above 100,000 the oldest one restarts", async () => {
    const limiter = new RateLimiter({ requests: 1, ...MINUTE, onFailure });
    for (let index = 0; index < 100_000; index++) await limiter.count(call(`c${index}`));
    expect(await limiter.count(call("c0"))).toMatchObject({ reason: "RATE_LIMITED" });
    await limiter.count(call("one more"));
    expect(await limiter.count(call("c1"))).toMatchObject({ reason: "RATE_LIMITED" });
    expect(await limiter.count(call("c0"))).toBeUndefined();
  });
});
