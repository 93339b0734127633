import { create } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test, vi } from "vitest";
import { Health } from "../../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../../gen/grpc/reflection/v1/reflection_pb.js";
import { GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { RateLimiter } from "../../../../src/http/admission/rate-limiter.js";
import type { RequestContext } from "../../../../src/http/request/request-context.js";
import { callQuote, createGrpcClient } from "../support/grpc-client.js";
import {
  openHttp2,
  post,
  postJson,
  type RawResponse,
  readStream,
  sendHttp1,
  sendHttp2,
} from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const MINUTE = { windowMs: 60_000 };
const GET = "/v1/quote?amount=1";
const JSON_POST = postJson("{}");
const grpcWeb = post("application/grpc-web+proto", Buffer.alloc(5));

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
      const { port, logged } = await startTestServer({ rateLimit: { requests: 2, ...MINUTE } });
      const first = await send(port, path, request);
      const second = await send(port, path, request);
      const refused = await send(port, path, request);
      expect([first.status, ...rateOf(first)]).toEqual([200, "2", "1", "60"]);
      expect([second.status, ...rateOf(second)]).toEqual([200, "2", "0", "60"]);
      expect([...rateOf(refused), refused.headers["retry-after"]]).toEqual(["2", "0", "60", "60"]);
      if (path === QUOTE_PATH && request === grpcWeb) expect(refused.headers["grpc-status"]).toBe("8");
      else expect([refused.status, refused.headers["cache-control"]]).toEqual([429, "no-store"]);
      const exposed = refused.headers["access-control-expose-headers"]?.split(", ");
      expect(exposed).toEqual(
        expect.arrayContaining(["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"]),
      );
      const lines = await logged(3);
      expect(lines.map(({ operation, code }) => [operation, code])).toEqual([
        [QUOTE, "ok"],
        [QUOTE, "ok"],
        [QUOTE, "resource_exhausted"],
      ]);
      expect(new Set(lines.map(({ protocol }) => protocol)).size).toBe(1);
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
        [QUOTE_PATH, postJson("{"), 400],
        [QUOTE_PATH, post("text/plain", "{}"), 415],
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
      for (const [path, request, status] of [
        ["/grpc.health.v1.Health/Check", JSON_POST, 200],
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
      expect((await sendHttp1(port, "/v1/available-routes")).status).toBe(200);
      expect((await sendHttp2(port, GET)).status).toBe(200);
      const last = await callQuote(createGrpcClient(port), Buffer.alloc(0));
      expect(last.headers.getMap()).toMatchObject({ "ratelimit-remaining": "0" });
      expect((await sendHttp1(port, "/v1/transfer-status")).status).toBe(429);
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
      const ask = () => callQuote(client, message, { headers });
      const answered = await ask();
      expect(answered.error).toBeUndefined();
      const rate = { "ratelimit-limit": "1", "ratelimit-remaining": "0", "ratelimit-reset": "60" };
      expect(answered.headers.getMap()).toMatchObject(rate);
      const { error, headers: refused } = await ask();
      expect(error).toMatchObject({ code: Code.ResourceExhausted, details: "too many requests from this address" });
      const told = { ...refused.getMap(), ...error?.metadata.getMap() };
      expect(told).toMatchObject({ ...rate, "retry-after": "60" });
    });

    test("counts a call that falls back only once", async () => {
      const { port } = await startTestServer({ rateLimit: { requests: 9, ...MINUTE } });
      const { error } = await callQuote(createGrpcClient(port), Buffer.from([0xff, 0xff]));
      expect(error?.code).toBe(Code.InvalidArgument);
      expect(rateOf(await sendHttp1(port, GET))[1]).toBe("7");
    });

    test("ends the stream of a rejected caller that continues to send", async () => {
      const { port } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE } });
      await sendHttp1(port, GET);
      const headers = { ":path": QUOTE_PATH, ":method": "POST", "content-type": "application/grpc" };
      const stream = openHttp2(port).request(headers);
      stream.write(Buffer.alloc(10));
      expect((await readStream(stream)).fields).toMatchObject({ "grpc-status": "8" });
      await expect.poll(() => stream.closed).toBe(true);
    });
  });
});

test("the last forwarded address behind a trusted proxy is limited, an IPv6 address by its /64", async () => {
  const { port } = await startTestServer({ rateLimit: { requests: 1, ...MINUTE }, trustProxy: true });
  const statuses: number[] = [];
  for (const address of ["192.0.2.1", "192.0.2.2", "192.0.2.9, 192.0.2.1", "2001:db8::1", "[2001:db8::2]:99"])
    statuses.push((await sendHttp1(port, GET, { headers: { "x-forwarded-for": address } })).status);
  expect(statuses).toEqual([200, 200, 429, 200, 429]);
});

/** Creates a limiter that fails a test whose Redis fails. */
const createLimiter = (requests: number, windowMs = MINUTE.windowMs) =>
  new RateLimiter({
    ...{ requests, windowMs },
    onFailure(error) {
      throw error;
    },
  });
const callOf = (caller: string) => ({ caller, rateLimitHeaders: [] as readonly string[] }) as RequestContext;
const LIMITED = { reason: "RATE_LIMITED" };

describe("a call that counts as several requests", () => {
  const expectRemaining = ({ rateLimitHeaders }: RequestContext, count: string) =>
    expect(rateLimitHeaders).toEqual(expect.arrayContaining(["ratelimit-remaining", count]));

  test("takes as many of the window, and is rejected if there are not as many", async () => {
    const limiter = createLimiter(10);
    const call = callOf("a");
    await limiter.count(call);
    await limiter.countMore(call, 6);
    expectRemaining(call, "4");
    const next = callOf("a");
    expect(await limiter.count(next)).toBeUndefined();
    await expect(limiter.countMore(next, 5)).rejects.toMatchObject({ ...LIMITED, retryAfterSeconds: 60 });
    expect(await limiter.count(callOf("b"))).toBeUndefined();
  });

  test("counts as one if it is rejected", async () => {
    const limiter = createLimiter(10);
    const rejected = callOf("a");
    await limiter.count(rejected);
    await limiter.count(rejected);
    await expect(limiter.countMore(rejected, 10)).rejects.toMatchObject(LIMITED);
    expectRemaining(rejected, "8");
    const smaller = callOf("a");
    expect(await limiter.count(smaller)).toBeUndefined();
    await limiter.countMore(smaller, 8);
    expectRemaining(smaller, "0");
    expect(await limiter.count(callOf("a"))).toMatchObject(LIMITED);
  });

  test("takes the whole window at most", async () => {
    const limiter = createLimiter(10);
    const call = callOf("a");
    await limiter.count(call);
    await limiter.countMore(call, 100);
    expectRemaining(call, "0");
    expect(await limiter.count(callOf("a"))).toMatchObject(LIMITED);
  });

  test("is not counted again if it counts as one", async () => {
    const limiter = createLimiter(1);
    const call = callOf("a");
    await limiter.count(call);
    await limiter.countMore(call, 1);
    await limiter.countMore(call, 0);
  });
});

describe("the tracked windows", () => {
  test("are dropped when they end", async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
    const limiter = createLimiter(1, 50);
    expect(await limiter.count(callOf("a"))).toBeUndefined();
    expect(await limiter.count(callOf("a"))).toMatchObject({ ...LIMITED, retryAfterSeconds: 1 });
    vi.advanceTimersByTime(70);
    expect(await limiter.count(callOf("a"))).toBeUndefined();
  });

  test("are bounded: above 100,000 the oldest one restarts", async () => {
    const limiter = createLimiter(1);
    for (let index = 0; index < 100_000; index++) await limiter.count(callOf(`c${index}`));
    expect(await limiter.count(callOf("c0"))).toMatchObject(LIMITED);
    await limiter.count(callOf("one more"));
    expect(await limiter.count(callOf("c1"))).toMatchObject(LIMITED);
    expect(await limiter.count(callOf("c0"))).toBeUndefined();
  });
});
