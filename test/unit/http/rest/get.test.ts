import { expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors.js";
import {
  HTTP_VERSIONS,
  openHttp2,
  openRawSocket,
  type RawResponse,
  sendHttp1,
  sendHttp2,
  sendHttp2On,
  sendRawBytes,
} from "../support/raw-client.js";
import { echoQuote, QUOTE, startTestServer } from "../support/test-server.js";

const QUERY = "amount=5&slippage=0.5&rpcUrl[optimism]=http%3A%2F%2Fx";
const BODY =
  '{"amountIn":"5","slippage":0.5,"amountOutMin":"[[\\"optimism\\",\\"http://x\\"]]","destinationAmountOutMin":"",' +
  '"bonderFee":"","estimatedReceived":"","estimatedRecieved":"","deadline":1700000000,"destinationDeadline":0}';

function expectCommon({ headers, body }: RawResponse): void {
  expect(headers).toMatchObject({
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "access-control-allow-origin": "*",
    "x-content-type-options": "nosniff",
  });
  expect(headers["access-control-expose-headers"]).toContain("X-Request-Id");
  expect(headers["x-request-id"]).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
}

test.each(HTTP_VERSIONS)("GET over %s returns the quote and is logged once", async (_, send) => {
  const { port, logged } = await startTestServer();
  const answer = await send(port, `/v1/quote?${QUERY}`, { headers: { "x-request-id": "my-id_1.2" } });
  expect(answer).toMatchObject({ status: 200, body: BODY, headers: { "x-request-id": "my-id_1.2" } });
  expectCommon(answer);
  const line = { requestId: "my-id_1.2", protocol: "rest", operation: QUOTE, code: "ok", token: "USDC" };
  expect(await logged(1)).toEqual([{ ...line, durationMs: expect.any(Number) }]);
});

test.each(HTTP_VERSIONS)("HEAD over %s returns the headers of GET without the body", async (_, send) => {
  const { port } = await startTestServer();
  const answer = await send(port, `/v1/quote?${QUERY}`, { method: "HEAD" });
  expect(answer).toMatchObject({ status: 200, body: "" });
  expect(answer.headers["content-length"]).toBe(String(BODY.length));
  const failed = await send(port, "/v1/quote?nope=1", { method: "HEAD" });
  expect(failed).toMatchObject({ status: 400, body: "" });
  expect(Number(failed.headers["content-length"])).toBeGreaterThan(0);
});

test.each(HTTP_VERSIONS)("OPTIONS over %s answers a CORS preflight", async (_, send) => {
  const { port } = await startTestServer();
  const { status, headers, body } = await send(port, "/v1/quote?any=thing", { method: "OPTIONS" });
  expect([status, body]).toEqual([204, ""]);
  expect(headers).toMatchObject({
    allow: "GET, HEAD, OPTIONS",
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-max-age": "7200",
  });
  expect(headers["access-control-allow-headers"]).toMatch(/X-Request-Id/i);
});

test.each(HTTP_VERSIONS)("OPTIONS * over %s answers for the server as a whole", async (_, send) => {
  const { port, logged } = await startTestServer();
  const { status, headers, body } = await send(port, "*", { method: "OPTIONS" });
  expect([status, body]).toEqual([204, ""]);
  expect(headers).toMatchObject({
    allow: "GET, HEAD, POST, OPTIONS",
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
  });
  expect(await logged(1)).toMatchObject([{ protocol: "rest", operation: "", code: "ok" }]);
  // nghttp2 resets such a request by itself.
  expect((await sendHttp1(port, "*")).status).toBe(404);
});

/** Returns each item with each version of HTTP. */
const overAll = (items: readonly string[]) =>
  HTTP_VERSIONS.flatMap(([name, send]) => items.map((item) => [item, name, send] as const));

test.each(overAll(["POST", "PUT", "DELETE", "PATCH", "PROPFIND"]))(
  "%s over %s returns 405",
  async (method, _, send) => {
    const { port, logged } = await startTestServer();
    const answer = await send(port, "/v1/quote", { method });
    expect(answer).toMatchObject({
      status: 405,
      headers: { allow: "GET, HEAD, OPTIONS", "cache-control": "no-store" },
    });
    expect(JSON.parse(answer.body)).toMatchObject({ code: "unimplemented", reason: "METHOD_NOT_ALLOWED" });
    expectCommon(answer);
    expect(await logged(1)).toMatchObject([{ operation: QUOTE, code: "unimplemented" }]);
  },
);

test.each(
  overAll([
    ...["/", "/v1/quote/", "//v1/quote", "/v1//quote", "/v1/Quote", "/v1/%71uote", "/v1", "/v1/quote;x", "/__proto__"],
  ]),
)("GET %s over %s returns 404", async (path, _, send) => {
  const { port, logged } = await startTestServer();
  const answer = await send(port, path);
  expect(answer).toMatchObject({ status: 404, headers: { "cache-control": "no-store" } });
  const message = "path not found";
  expect(JSON.parse(answer.body)).toEqual({ code: "not_found", message, error: message, reason: "PATH_NOT_FOUND" });
  expectCommon(answer);
  expect(await logged(1)).toMatchObject([{ protocol: "rest", operation: "", code: "not_found" }]);
});

test.each(HTTP_VERSIONS)("a URL over %s may have up to 8192 bytes", async (_, send) => {
  const { port, logged } = await startTestServer();
  const longest = "/v1/quote?amount=".padEnd(8192, "1");
  expect((await send(port, longest)).status).toBe(200);
  const answer = await send(port, `${longest}1`);
  expect(answer.status).toBe(414);
  expect(JSON.parse(answer.body)).toMatchObject({ code: "invalid_argument", reason: "INVALID_PARAMETER" });
  expectCommon(answer);
  expect((await logged(2)).map(({ code }) => code)).toEqual(["ok", "invalid_argument"]);
});

test("an error names the invalid parameter", async () => {
  const { port } = await startTestServer();
  const answer = await sendHttp1(port, "/v1/quote?slippage=abc");
  expect(answer).toMatchObject({ status: 400, headers: { "cache-control": "no-store" } });
  const message = "slippage must be a plain decimal number";
  const reason = { code: "invalid_argument", reason: "INVALID_PARAMETER", field: "slippage" };
  expect(JSON.parse(answer.body)).toEqual({ ...reason, message, error: message });
  expectCommon(answer);
});

test("returns the whole message, or the single field that the contract names", async () => {
  const { port } = await startTestServer();
  const echo = await sendHttp1(port, "/v1/echo?boolValue=true&repeatedUint32Value=1&repeatedUint32Value=2");
  expect(JSON.parse(echo.body)).toMatchObject({ boolValue: true, repeatedUint32Value: [1, 2] });
  const routes = await sendHttp1(port, "/v1/available-routes");
  expect(JSON.parse(routes.body)).toMatchObject([{ token: "ETH", sourceChainId: 1 }, { token: "DAI" }]);
});

test.each([
  [new ServiceError("UNSUPPORTED_TOKEN", "no", { field: "token" }), 400, "invalid_argument"],
  [new ServiceError("TRANSFER_NOT_FOUND", "no"), 404, "not_found"],
  [new ServiceError("RATE_LIMITED", "no", { retryAfterSeconds: 3 }), 429, "resource_exhausted"],
  [new ServiceError("OVERLOADED", "no", { retryAfterSeconds: 3 }), 503, "resource_exhausted"],
  [new ServiceError("UPSTREAM_UNAVAILABLE", "no"), 503, "unavailable"],
  [new ServiceError("DEADLINE_EXCEEDED", "no"), 504, "deadline_exceeded"],
])("%s", async (error, status, code) => {
  const { port, internalErrors, logged } = await startTestServer({ getQuote: () => Promise.reject(error) });
  const answer = await sendHttp1(port, "/v1/quote");
  expect(answer).toMatchObject({ status, headers: { "cache-control": "no-store" } });
  expect(JSON.parse(answer.body)).toMatchObject({ code, message: "no", error: "no", reason: error.reason });
  expect(answer.headers["retry-after"]).toBe(code === "resource_exhausted" ? "3" : undefined);
  expect(await logged(1)).toMatchObject([{ code, reason: error.reason }]);
  expect(internalErrors).toEqual([]);
});

test("an internal error is reported in full and returned without details", async () => {
  const fault = new TypeError("secret");
  const { port, internalErrors, logged } = await startTestServer({
    getQuote: () => {
      throw fault;
    },
  });
  const answer = await sendHttp1(port, "/v1/quote");
  expect(answer.status).toBe(500);
  expect(answer.body).not.toContain("secret");
  expect([(await logged(1))[0]?.code, internalErrors]).toEqual(["internal", [fault]]);
});

test("replaces an invalid request id", async () => {
  const { port } = await startTestServer();
  const { headers } = await sendHttp1(port, "/v1/quote", { headers: { "x-request-id": "a/b" } });
  expect(headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
});

test("accepts a target with a host, as proxies send it", async () => {
  const { port } = await startTestServer();
  expect((await sendHttp1(port, "http://any.example/v1/quote?amount=1")).status).toBe(200);
  expect((await sendHttp1(port, "http://any.example")).status).toBe(404);
});

test("requires the Host header in HTTP/1.1, not in HTTP/1.0", async () => {
  const { port } = await startTestServer();
  expect(await sendRawBytes(port, "GET /v1/quote HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatch(
    /^HTTP\/1\.1 400 .*Host/s,
  );
  expect(await sendRawBytes(port, "GET /v1/quote HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
});

test.each([
  [false, "9.9.9.9", "127.0.0.1"],
  [true, "9.9.9.9, 8.8.8.8", "8.8.8.8"],
  [true, "", "127.0.0.1"],
])("with trustProxy %s, X-Forwarded-For %j identifies the caller %s", async (trustProxy, forwarded, expected) => {
  const callers: string[] = [];
  const { port } = await startTestServer({
    trustProxy,
    getQuote: (request, context) => {
      callers.push(context.caller);
      return echoQuote(request, context);
    },
  });
  const headers = { "x-forwarded-for": forwarded };
  await sendHttp1(port, "/v1/quote", { headers });
  await sendHttp2(port, "/v1/quote", { headers });
  expect(callers).toEqual([expected, expected]);
});

/** Starts a server whose quotes wait until their caller leaves. */
async function startAbandonedServer() {
  const signals: AbortSignal[] = [];
  const server = await startTestServer({
    getQuote: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signals.push(signal);
        signal.addEventListener("abort", () => reject(new Error("the caller left")));
      }),
  });
  return { ...server, signals };
}

test("a request whose caller leaves is logged as canceled, without an internal error", async () => {
  const { port, url, signals, internalErrors, logged } = await startAbandonedServer();
  const leaving = new AbortController();
  const session = openHttp2(port);
  const requests = [fetch(`${url}/v1/quote`, { signal: leaving.signal }), sendHttp2On(session, "/v1/quote")];
  const rejected = requests.map((request) => expect(request).rejects.toThrow());
  await expect.poll(() => signals.length).toBe(2);
  leaving.abort();
  session.destroy();
  await Promise.all(rejected);
  expect(await logged(2)).toMatchObject([{ code: "canceled" }, { code: "canceled" }]);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(internalErrors).toEqual([]);
  expect((await sendHttp1(port, "/v1/available-routes")).status).toBe(200);
});

test("pipelined requests whose caller leaves are logged as canceled too", async () => {
  const { port, signals, logged } = await startAbandonedServer();
  const socket = await openRawSocket(port);
  socket.write("GET /v1/quote HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3));
  await expect.poll(() => signals.length).toBe(3);
  socket.resetAndDestroy();
  expect((await logged(3)).map(({ code }) => code)).toEqual(["canceled", "canceled", "canceled"]);
});
