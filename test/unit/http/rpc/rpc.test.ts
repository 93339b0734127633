import { once } from "node:events";
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { AnySchema, anyUnpack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { compressionGzip, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { status as GrpcStatus } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { type ErrorInfo, ErrorInfoSchema } from "../../../../gen/google/rpc/error_details_pb.js";
import {
  BridgeService,
  type GetQuoteRequest,
  GetQuoteRequestSchema,
  GetQuoteResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { callQuote, callUnaryGrpc, connectOver, createGrpcClient } from "../support/grpc-client.js";
import {
  createKeepAliveAgent,
  envelope,
  HTTP_VERSIONS,
  openHttp2,
  post,
  postJson,
  readStream,
  sendHttp1,
} from "../support/raw-client.js";
import {
  createLargeQuote,
  describeOnBothPaths,
  echoQuote,
  QUOTE,
  QUOTE_PATH,
  startTestServer,
} from "../support/test-server.js";

const WEB = "application/grpc-web+proto";
const REQUEST = create(GetQuoteRequestSchema, { amount: "5", slippage: 0.5, rpcUrl: { optimism: "http://x" } });
const EXPECTED = {
  amountIn: "5",
  slippage: 0.5,
  amountOutMin: '[["optimism","http://x"]]',
  deadline: 1_700_000_000n,
};

interface Outcome {
  readonly answer?: unknown;
  readonly code?: string;
  readonly message?: string;
  readonly info?: ErrorInfo | undefined;
  readonly requestId: string | null | undefined;
  readonly retryAfter?: string | null | undefined;
}

type Way = readonly [
  name: string,
  protocol: string,
  call: (
    url: string,
    request: GetQuoteRequest,
    options: { headers: Record<string, string>; timeoutMs?: number },
  ) => Promise<Outcome>,
];

type TransportOptions = { readonly baseUrl: string; readonly interceptors: Interceptor[] };

function overConnect(name: string, protocol: string, createTransport: (options: TransportOptions) => Transport): Way {
  return [
    name,
    protocol,
    async (baseUrl, request, options) => {
      let head: Headers | undefined;
      const look: Interceptor = (next) => async (req) => {
        const answer = await next(req);
        head = answer.header;
        return answer;
      };
      const client = createClient(BridgeService, createTransport({ baseUrl, interceptors: [look] }));
      try {
        const answer = await client.getQuote(request, options);
        return { answer, requestId: head?.get("x-request-id") };
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        return {
          code: Code[error.code] ?? "",
          message: error.rawMessage,
          info: error.findDetails(ErrorInfoSchema)[0],
          requestId: error.metadata.get("x-request-id"),
          retryAfter: error.metadata.get("retry-after"),
        };
      }
    },
  ];
}

const overGrpcJs: Way = [
  "gRPC by grpc-js",
  "grpc",
  async (url, request, { headers, timeoutMs }) => {
    const deadline = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
    const client = createGrpcClient(Number(new URL(url).port));
    const outcome = await callQuote(client, request, { headers, ...deadline });
    const requestId = String(outcome.headers.get("x-request-id")[0]);
    const { message, error } = outcome;
    if (error === undefined) return { answer: message, requestId };
    const [details] = error.metadata.get("grpc-status-details-bin");
    return {
      code: Code[error.code] ?? "",
      message: error.details,
      info: details === undefined ? undefined : errorInfoOf(details as Buffer),
      requestId,
      retryAfter: error.metadata.get("retry-after")[0] as string | undefined,
    };
  },
];

/** Returns the ErrorInfo of a serialised google.rpc.Status, whose third field is its details. */
function errorInfoOf(bytes: Uint8Array): ErrorInfo | undefined {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 3) return anyUnpack(fromBinary(AnySchema, reader.bytes()), ErrorInfoSchema);
    reader.skip(wireType);
  }
  return undefined;
}

const gzipped = { sendCompression: compressionGzip, compressMinBytes: 0 };

const ways: readonly Way[] = [
  overGrpcJs,
  overConnect("gRPC by Connect", "grpc", createGrpcTransport),
  overConnect("gRPC-Web over HTTP/1.1", "grpc-web", (options) =>
    createGrpcWebTransport({ ...options, httpVersion: "1.1" }),
  ),
  overConnect("gRPC-Web over h2c", "grpc-web", (options) =>
    createGrpcWebTransport({ ...options, httpVersion: "2", ...gzipped }),
  ),
  overConnect("Connect JSON over HTTP/1.1", "connect", connectOver("1.1")),
  overConnect("Connect JSON over h2c", "connect", connectOver("2")),
  overConnect("Connect binary", "connect", connectOver("1.1", { useBinaryFormat: true })),
  overConnect("Connect binary, gzip", "connect", connectOver("2", { useBinaryFormat: true, ...gzipped })),
  overConnect("Connect GET, JSON", "connect-get", connectOver("1.1", { useHttpGet: true })),
  overConnect("Connect GET, binary", "connect-get", connectOver("2", { useHttpGet: true, useBinaryFormat: true })),
];

describeOnBothPaths(() => {
  describe.each(ways)("%s", (_, protocol, call) => {
    test("returns the response and is logged once", async () => {
      const { url, logged } = await startTestServer();
      const { answer, requestId } = await call(url, REQUEST, { headers: { "x-request-id": "id-1" } });
      expect(answer).toMatchObject(EXPECTED);
      expect(requestId).toBe("id-1");
      const line = { requestId: "id-1", protocol, operation: QUOTE, code: "ok", token: "USDC" };
      expect(await logged(1)).toEqual([{ ...line, durationMs: expect.any(Number) }]);
    });

    test("returns a ServiceError with its ErrorInfo", async () => {
      const error = new ServiceError("INVALID_PARAMETER", "slippage: 100 % wrong, and é?", { field: "slippage" });
      const { url, logged } = await startTestServer({ getQuote: () => Promise.reject(error) });
      const outcome = await call(url, REQUEST, { headers: {} });
      expect(outcome).toMatchObject({
        code: "InvalidArgument",
        message: "slippage: 100 % wrong, and é?",
        info: { reason: "INVALID_PARAMETER", domain: "hop.bridge.v1", metadata: { field: "slippage" } },
      });
      expect(await logged(1)).toMatchObject([{ protocol, code: "invalid_argument", reason: "INVALID_PARAMETER" }]);
    });

    test("states when to retry", async () => {
      const error = new ServiceError("RATE_LIMITED", "too many", { retryAfterSeconds: 3 });
      const { url } = await startTestServer({ getQuote: () => Promise.reject(error) });
      expect(await call(url, REQUEST, { headers: {} })).toMatchObject({ code: "ResourceExhausted", retryAfter: "3" });
    });

    test("hides the details of an internal error", async () => {
      const fault = new Error("secret");
      const { url, internalErrors, logged } = await startTestServer({
        getQuote: () => Promise.reject(fault),
      });
      const outcome = await call(url, REQUEST, { headers: {} });
      expect(outcome).toMatchObject({ code: "Internal", message: "internal error" });
      expect([(await logged(1))[0]?.code, internalErrors]).toEqual(["internal", [fault]]);
    });

    test("passes the deadline of the caller to the operation", async () => {
      const seen: number[] = [];
      const { url } = await startTestServer({
        maxTimeoutMs: 60_000,
        getQuote: (request, context) => {
          seen.push(context.remainingMs());
          return echoQuote(request, context);
        },
      });
      await call(url, REQUEST, { headers: {}, timeoutMs: 20_000 });
      await call(url, REQUEST, { headers: {} });
      const [given, none] = seen;
      expect(given).toBeGreaterThan(15_000);
      expect(given).toBeLessThanOrEqual(20_000);
      expect(none).toBeGreaterThan(50_000);
    });
  });

  test("accepts deadlines beyond the longest timer", async () => {
    const seen: number[] = [];
    const warnings: unknown[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    const { port } = await startTestServer({
      getQuote: async (request, context) => {
        await sleep(10);
        seen.push(context.remainingMs());
        return echoQuote(request, context);
      },
    });
    const connect = await sendHttp1(port, QUOTE_PATH, postJson("{}", { "connect-timeout-ms": "9999999999" }));
    expect(connect.status).toBe(200);
    for (const timeout of ["99999999H", "99999999M", "2147484S"]) {
      const web = await sendHttp1(port, QUOTE_PATH, post(WEB, envelope(bytes), { "grpc-timeout": timeout }));
      expect(web.body).toContain("grpc-status: 0");
    }
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
    expect(seen).toHaveLength(4);
    for (const remainingMs of seen) expect(remainingMs).toBeGreaterThan(2 ** 31 - 60_000);
  });

  const bytes = Buffer.from(toBinary(GetQuoteRequestSchema, REQUEST));
  const garbage = Buffer.from([0xff, 0xff, 0xff, 0x01]);
  const bomb = gzipSync(Buffer.alloc(10_000_000));
  const GZIP_QUERY = "encoding=json&base64=1&compression=gzip&message=";
  /** Fits into a URL. */
  const urlBomb = gzipSync(Buffer.alloc(4_000_000), { level: 9 });
  /** Each gzip member is within the limit, their sum is not. */
  const bombOfMembers = Buffer.concat(Array<Buffer>(50).fill(gzipSync(Buffer.alloc(60_000, 0x20))));
  const wrongChecksum = Buffer.concat([gzipSync(bytes).subarray(0, -8), Buffer.alloc(8)]);
  const big = Buffer.alloc(65 * 1024 + 1, "a");

  describe("a malformed Connect request", () => {
    const proto = { "content-type": "application/proto" };
    const json = { "content-type": "application/json" };
    const gzip = { "content-encoding": "gzip" };
    const longError = `{"slippage":"${"x".repeat(9999)}"}`;
    test.each<[string, Record<string, string>, Buffer | string, number, string]>([
      ["malformed binary", proto, garbage, 400, "invalid_argument"],
      ["binary with invalid UTF-8", proto, Buffer.from([10, 1, 255]), 400, "invalid_argument"],
      ["malformed JSON", json, "{", 400, "invalid_argument"],
      ["JSON of the wrong type", json, '{"amount":{}}', 400, "invalid_argument"],
      ["JSON with a lone surrogate", json, '{"slippage":"\\ud800"}', 400, "invalid_argument"],
      ["JSON nested without end", json, `{"rpcUrl":${"[".repeat(60_000)}`, 400, "invalid_argument"],
      ["JSON nested deeply", json, `{"amount":${"[".repeat(30_000)}${"]".repeat(30_000)}}`, 400, "invalid_argument"],
      ["groups nested without end", proto, Buffer.alloc(60_000, 0x0b), 400, "invalid_argument"],
      ["an empty body", json, "", 400, "invalid_argument"],
      ["a long error, compressed", { ...json, "accept-encoding": "gzip" }, longError, 400, "invalid_argument"],
      ["invalid gzip", { ...proto, ...gzip }, bytes, 400, "invalid_argument"],
      ["truncated gzip", { ...proto, ...gzip }, gzipSync(bytes).subarray(0, 20), 400, "invalid_argument"],
      ["gzip with a wrong checksum", { ...proto, ...gzip }, wrongChecksum, 400, "invalid_argument"],
      ["a bomb in a bomb", { ...proto, ...gzip }, gzipSync(bomb), 400, "invalid_argument"],
      ["an unknown compression", { ...proto, "content-encoding": "br" }, bytes, 415, "unimplemented"],
      ["two compressions", { ...proto, "content-encoding": "gzip, gzip" }, bytes, 415, "unimplemented"],
      ["an invalid deadline", { ...proto, "connect-timeout-ms": "soon" }, bytes, 400, "invalid_argument"],
      ["too large", proto, big, 413, "resource_exhausted"],
      ["too large, in chunks", { ...proto, "transfer-encoding": "chunked" }, big, 413, "resource_exhausted"],
      ["too large once decompressed", { ...proto, ...gzip }, bomb, 413, "resource_exhausted"],
      ["too large by several gzip members", { ...proto, ...gzip }, bombOfMembers, 413, "resource_exhausted"],
      ["an unknown type", { "content-type": "text/plain" }, bytes, 415, "invalid_argument"],
      ["no type", {}, bytes, 415, "invalid_argument"],
      ["gRPC-Web as text", { "content-type": "application/grpc-web-text" }, bytes, 415, "invalid_argument"],
    ])("%s", async (_, headers, body, status, code) => {
      const { port, internalErrors, logged } = await startTestServer();
      for (const [version, send] of HTTP_VERSIONS) {
        if (version === "HTTP/2" && "transfer-encoding" in headers) continue;
        const answer = await send(port, QUOTE_PATH, { method: "POST", headers, body });
        expect(answer).toMatchObject({
          status,
          headers: { "cache-control": "no-store", "access-control-allow-origin": "*" },
        });
        expect(JSON.parse(answer.body)).toMatchObject({ code });
      }
      expect((await logged(1))[0]).toMatchObject({ operation: QUOTE, code });
      expect(internalErrors).toEqual([]);
    });

    test.each([
      ["malformed JSON", "encoding=json&message=%7B", 400],
      ["malformed base64", "encoding=proto&base64=1&message=%21", 400],
      ["malformed binary", "encoding=proto&base64=1&message=_____w", 400],
      ["an unknown compression", "encoding=proto&compression=br&message=", 415],
      ["too large once decompressed", `${GZIP_QUERY}${urlBomb.toString("base64url")}`, 413],
      ["truncated gzip", `${GZIP_QUERY}${gzipSync("{}").subarray(0, -6).toString("base64url")}`, 400],
      ["an unknown type", "encoding=xml&message=", 415],
      ["nothing", "", 415],
    ])("by GET: %s", async (_, query, status) => {
      const { port, internalErrors } = await startTestServer();
      const answer = await sendHttp1(port, `${QUOTE_PATH}?${query}`);
      expect(answer).toMatchObject({ status, headers: { "cache-control": "no-store" } });
      expect(JSON.parse(answer.body)).toHaveProperty("code");
      expect(internalErrors).toEqual([]);
    });

    test("returns the cause with an ErrorInfo", async () => {
      const { port } = await startTestServer();
      const { body } = await sendHttp1(port, QUOTE_PATH, postJson('{"amount":5}'));
      const { message, details } = JSON.parse(body);
      expect(message).toContain("hop.bridge.v1.GetQuoteRequest.amount");
      expect(details).toMatchObject([
        { type: "google.rpc.ErrorInfo", debug: { reason: "INVALID_PARAMETER", domain: "hop.bridge.v1" } },
      ]);
    });

    test("leaves the connection usable", async () => {
      const { port } = await startTestServer();
      const agent = createKeepAliveAgent();
      const ports: (number | undefined)[] = [];
      for (const body of [big, bytes]) {
        const status = await new Promise((resolve, reject) => {
          const headers = { ...proto, "transfer-encoding": "chunked" };
          const options = { port, path: QUOTE_PATH, method: "POST", agent, headers };
          const req = request(options, (res) => {
            ports.push(res.socket.localPort);
            res.resume().on("end", () => resolve(res.statusCode));
          });
          req.on("error", reject);
          req.end(body);
        });
        expect(status).toBe(body === big ? 413 : 200);
      }
      expect(ports[0]).toBe(ports[1]);
    });
  });

  describe("a malformed gRPC request", () => {
    const gzip = { "grpc-encoding": "gzip" };
    test.each<[string, Record<string, string>, Buffer, Code]>([
      ["a malformed message", {}, envelope(garbage), Code.InvalidArgument],
      ["half an envelope", {}, envelope(bytes).subarray(0, 9), Code.InvalidArgument],
      ["a compressed message without grpc-encoding", {}, envelope(gzipSync(bytes), 1), Code.InvalidArgument],
      ["invalid gzip", gzip, envelope(bytes, 1), Code.InvalidArgument],
      ["truncated gzip", gzip, envelope(gzipSync(bytes).subarray(0, 20), 1), Code.InvalidArgument],
      ["an unknown compression", { "grpc-encoding": "br" }, envelope(bytes, 1), Code.Unimplemented],
      ["two compressions", { "grpc-encoding": "gzip, gzip" }, envelope(bytes, 1), Code.Unimplemented],
      ["no message", {}, Buffer.alloc(0), Code.Unimplemented],
      ["two messages", {}, Buffer.concat([envelope(bytes), envelope(bytes)]), Code.Unimplemented],
      ["too large", {}, envelope(big), Code.ResourceExhausted],
      ["too large once decompressed", gzip, envelope(bomb, 1), Code.ResourceExhausted],
      ["too large by members", gzip, envelope(bombOfMembers, 1), Code.ResourceExhausted],
      ["an invalid deadline", { "grpc-timeout": "soon" }, envelope(bytes), Code.InvalidArgument],
    ])("%s", async (_, headers, body, code) => {
      const { port, internalErrors, logged } = await startTestServer();
      const web = await sendHttp1(port, QUOTE_PATH, post(WEB, body, headers));
      expect(web.status).toBe(200);
      expect(web.body).toContain(`grpc-status: ${code}\r\n`);
      const type = { "content-type": "application/grpc", te: "trailers" };
      const stream = openHttp2(port).request({ ":method": "POST", ":path": QUOTE_PATH, ...type, ...headers });
      stream.end(body);
      expect((await readStream(stream)).fields).toMatchObject({ ":status": 200, "grpc-status": String(code) });
      expect(await logged(2)).toMatchObject([
        { protocol: "grpc-web", code: codeToString(code) },
        { protocol: "grpc", code: codeToString(code) },
      ]);
      expect(internalErrors).toEqual([]);
    });
  });

  describe("the path of a method", () => {
    test("answers a CORS preflight", async () => {
      const { port } = await startTestServer();
      const { status, headers } = await sendHttp1(port, QUOTE_PATH, { method: "OPTIONS" });
      expect(status).toBe(204);
      expect(headers["access-control-allow-methods"]).toBe("POST, GET, OPTIONS");
      const names =
        "content-type, connect-protocol-version, connect-timeout-ms, x-grpc-web, x-user-agent, grpc-timeout";
      const allowed = headers["access-control-allow-headers"]?.toLowerCase().split(", ");
      expect(allowed).toEqual(expect.arrayContaining(names.split(", ")));
    });

    test("exposes the gRPC-Web status to browsers", async () => {
      const { port } = await startTestServer();
      const { headers } = await sendHttp1(port, QUOTE_PATH, post(WEB, envelope(bytes)));
      expect(headers["access-control-allow-origin"]).toBe("*");
      const exposed = headers["access-control-expose-headers"]?.toLowerCase().split(", ");
      const names = ["grpc-status", "grpc-message", "grpc-status-details-bin", "x-request-id"];
      expect(exposed).toEqual(expect.arrayContaining(names));
    });

    test.each(["PUT", "HEAD", "DELETE"])("returns 405 for %s", async (method) => {
      const { port } = await startTestServer();
      const { status, headers } = await sendHttp1(port, QUOTE_PATH, { method });
      expect([status, headers.allow]).toEqual([405, "POST, GET, OPTIONS"]);
    });

    test("returns the not-found error of each protocol for an unknown method", async () => {
      const { port, logged } = await startTestServer();
      const path = "/hop.bridge.v1.BridgeService/Nope";
      const json = await sendHttp1(port, path, postJson("{}"));
      expect([json.status, JSON.parse(json.body).reason]).toEqual([404, "PATH_NOT_FOUND"]);
      const web = await sendHttp1(port, path, post(WEB));
      expect(web).toMatchObject({ status: 200, headers: { "grpc-status": "12" } });
      const client = createGrpcClient(port);
      const { error } = await callUnaryGrpc(client, path, GetQuoteRequestSchema, GetQuoteResponseSchema, REQUEST);
      expect(error?.code).toBe(GrpcStatus.UNIMPLEMENTED);
      expect((await logged(3)).map(({ code, protocol }) => [protocol, code])).toEqual([
        ["rest", "not_found"],
        ["grpc-web", "unimplemented"],
        ["grpc", "unimplemented"],
      ]);
    });
  });

  test("a response that does not serialise is an internal error", async () => {
    const { url, internalErrors } = await startTestServer({
      getQuote: async () => create(GetQuoteResponseSchema, { deadline: 2n ** 70n }),
    });
    for (const [name, , call] of ways) {
      if (name.startsWith("gRPC-Web")) continue;
      expect(await call(url, REQUEST, { headers: {} }), name).toMatchObject({
        code: "Internal",
        message: "internal error",
      });
    }
    expect(internalErrors).toHaveLength(ways.length - 2);
  });

  test("a large response arrives complete while the caller still sends", async () => {
    const { port } = await startTestServer({ getQuote: () => createLargeQuote(2_000_000) });
    const stream = openHttp2(port).request({ ":method": "GET", ":path": "/v1/quote" }, { endStream: false });
    let size = 0;
    stream.on("data", (chunk: Buffer) => {
      size += chunk.length;
    });
    await once(stream, "end");
    expect(size).toBeGreaterThan(2_000_000);
  });
});
