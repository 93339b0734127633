import { Agent, request as http1Request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  BatchGetQuotesResponseSchema,
  BridgeService,
  type GetQuoteRequest,
  GetQuoteRequestSchema,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
  GetTransferStatusResponseSchema,
  GetWithdrawalResponseSchema,
  ListAvailableRoutesResponseSchema,
  ListTransfersResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import { type ErrorReason, ServiceError } from "../../src/errors.js";
import { DEFAULT_HTTP_LIMITS } from "../../src/http/connection/http-limits.js";
import { STATUS_BY_REASON } from "../../src/http/request/error-mapping.js";
import { type MountedService, mountService } from "../../src/http/request/mounted-service.js";
import type { AccessLogEntry } from "../../src/http/request/request-context.js";
import { HttpServer } from "../../src/http/server.js";
import type { CallContext } from "../../src/operations/operation.js";
import { isFullEffort } from "../support/effort.js";
import { type AccessLine, flattenEntry, LONGEST_TIMER_MS } from "../unit/http/support/test-server.js";

// Two servers with the same operations, one with fast paths and one without. Both must send equal responses to any
// request (status, headers, trailers, every byte of the body) and log equal entries.

const limits = { ...DEFAULT_HTTP_LIMITS, requestBytes: 4000, responseBytes: 20_000 };

const reasons = Object.keys(STATUS_BY_REASON) as ErrorReason[];
const behaviours = [
  "",
  "async",
  "cached",
  "brief",
  "private",
  "odd",
  "long",
  "huge",
  "wrong",
  "fast",
  "connect",
  ...reasons,
];

/** Responds as the field `network` says. */
function quote(request: GetQuoteRequest, context: CallContext): GetQuoteResponse | Promise<GetQuoteResponse> {
  const { network, amount, slippage, rpcUrl, token } = request;
  context.addLogFields({ amount });
  const answer = create(GetQuoteResponseSchema, {
    amountIn: amount,
    slippage: slippage ?? 0,
    amountOutMin: JSON.stringify(rpcUrl),
    bonderFee: token,
    deadline: 1_700_000_000n,
  });
  if (network !== "") context.setCachePolicy({ ageSeconds: 1.5, maxAgeSeconds: 4, staleWhileRevalidateSeconds: 30 });
  if (slippage !== undefined)
    context.setResponseMetadata({ source: "chain", "observed-at": "2026-07-01T12:00:00.000Z" });
  if (token !== "") context.addWarning(token);
  switch (network) {
    case "async":
      return Promise.resolve(answer);
    case "brief":
      context.setCachePolicy({ ageSeconds: 0, maxAgeSeconds: 4 });
      return Object.freeze(answer);
    case "private":
      context.setCachePolicy("private");
      return Object.freeze(answer);
    case "odd":
      return create(GetQuoteResponseSchema, { ...answer, bonderFee: 'é"\\\n\ud800', deadline: -5n });
    case "long":
      return create(GetQuoteResponseSchema, { ...answer, estimatedReceived: "9é".repeat(2000) });
    case "huge":
      return create(GetQuoteResponseSchema, { ...answer, estimatedReceived: "9".repeat(30_000) });
    case "wrong":
      return create(GetQuoteResponseSchema, { ...answer, destinationDeadline: 2n ** 70n });
    case "fast":
      throw new TypeError("secret");
    case "connect":
      throw new ConnectError("in Connect's own words", 5);
  }
  const reason = reasons.find((each) => each === network);
  if (reason === undefined) return answer;
  const options = reason === "RATE_LIMITED" ? { retryAfterSeconds: 3 } : { field: "amount" };
  const error = new ServiceError(reason, `100 % wrong, é and ${amount}`, options);
  if (amount.length % 2 === 0) return Promise.reject(error);
  throw error;
}

const services: readonly MountedService[] = [
  mountService(BridgeService, {
    getQuote: quote,
    batchGetQuotes: () => create(BatchGetQuotesResponseSchema, {}),
    getTransferStatus: ({ transferId }) =>
      create(GetTransferStatusResponseSchema, { transferId, state: 2, bonded: true, amountUsd: -0, sourceChainId: 10 }),
    listTransfers: ({ account, pageSize, pageToken }) =>
      create(ListTransfersResponseSchema, {
        transfers: [{ accountAddress: account, amountUsd: 0.5 }, { state: 1, otherTransferIds: [pageToken, ""] }, {}],
        nextPageToken: pageToken,
        coveredFrom: BigInt(pageSize ?? -1),
        coveredUntil: 1_800_000_000n,
      }),
    getWithdrawal: ({ transferId }) =>
      create(GetWithdrawalResponseSchema, {
        transferId,
        state: 4,
        availableAt: transferId === "" ? undefined : 0n,
        proof: { case: "merkleProof", value: { siblings: [transferId, ""], transferIdTreeIndex: 2 ** 32 - 1 } },
      }),
    watchTransfers(_request, stream) {
      stream.end();
      return { onReady() {}, onDrain() {}, onEnd() {} };
    },
    listAvailableRoutes: ({ token }) =>
      create(ListAvailableRoutesResponseSchema, { routes: [{ token, sourceChainId: 2 ** 32 - 1 }, {}] }),
  }),
];

/** Opens a server with connections of both versions of HTTP. */
async function open(fastPaths: boolean) {
  const lines: AccessLine[] = [];
  const log = (line: AccessLogEntry) => void lines.push(flattenEntry(line));
  const address = { host: "127.0.0.1", port: 0 };
  const server = new HttpServer({
    ...address,
    maxTimeoutMs: LONGEST_TIMER_MS,
    services,
    limits,
    log,
    onInternalError() {},
    fastPaths,
  });
  const { port } = await server.listen();
  const session = connectHttp2(`http://127.0.0.1:${port}`).setMaxListeners(0);
  const agent = new Agent({ keepAlive: true });
  const close = (): Promise<void> => {
    session.destroy();
    agent.destroy();
    return server.close(0);
  };
  return { port, lines, session, agent, close };
}

type Server = Awaited<ReturnType<typeof open>>;
let fastPathServer: Server;
let generalServer: Server;

beforeAll(async () => {
  [fastPathServer, generalServer] = [await open(true), await open(false)];
});
afterAll(() => Promise.all([fastPathServer.close(), generalServer.close()]));

interface TestRequest {
  readonly isHttp2: boolean;
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}
interface TestResponse {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
  readonly body: string;
}

/** The date, which may differ, and what a field of its own holds. */
const VOLATILE_HEADERS = new Set(["date", ":status"]);
const withoutVolatile = (headers: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !VOLATILE_HEADERS.has(name)));

function sendHttp1({ port, agent }: Server, { method, path, headers, body }: TestRequest): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const length = method === "POST" ? { "content-length": body.length } : {};
    const options = { host: "127.0.0.1", port, agent, method, path, headers: { ...headers, ...length } };
    const req = http1Request(options, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("error", reject);
      res.on("end", () =>
        resolve({
          status: res.statusCode ?? 0,
          headers: withoutVolatile(res.headers),
          trailers: withoutVolatile(res.trailers),
          body: Buffer.concat(chunks).toString("latin1"),
        }),
      );
    });
    req.on("error", reject);
    req.end(method === "POST" ? body : undefined);
  });
}

function sendHttp2({ session }: Server, { method, path, headers, body }: TestRequest): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ...headers, ":method": method, ":path": path });
    const chunks: Buffer[] = [];
    let head: Record<string, unknown> = {};
    let trailers = {};
    stream.on("response", (given) => {
      head = given;
    });
    stream.on("trailers", (given) => {
      trailers = withoutVolatile(given);
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () =>
      resolve({
        status: Number(head[":status"]),
        headers: withoutVolatile(head),
        trailers,
        body: Buffer.concat(chunks).toString("latin1"),
      }),
    );
    if (method === "POST") {
      // In two chunks, as bodies often arrive.
      const half = Math.floor(body.length / 2);
      if (body.length % 3 === 0) stream.write(body.subarray(0, half));
      stream.end(body.length % 3 === 0 ? body.subarray(half) : body);
    } else stream.end();
  });
}

let requestCount = 0;
async function expectEqualResponses(one: TestRequest): Promise<void> {
  requestCount += 1;
  const request = { ...one, headers: { ...one.headers, "x-request-id": `r${requestCount}` } };
  const ask = one.isHttp2 ? sendHttp2 : sendHttp1;
  const [fast, general] = await Promise.all([ask(fastPathServer, request), ask(generalServer, request)]);
  expect(fast).toEqual(general);
}

const toWellFormed = (value: string): string => value.replace(/\p{Surrogate}/gu, "?");
const text = fc.oneof(
  fc.constantFrom("1000000", "USDC", "polygon", "", "0", "é", "a\\b", 'q"q', "x".repeat(130)),
  fc.string({ maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 20 }),
);
const number = fc.oneof(fc.constantFrom(0.5, 0, -0, Number.NaN, Number.POSITIVE_INFINITY, 1e300), fc.double());
const messages = fc
  .record(
    {
      amount: text,
      token: text,
      fromChain: text,
      toChain: text,
      slippage: number,
      network: fc.constantFrom(...behaviours, "long", "wrong", "odd"),
      rpcUrl: fc.dictionary(fc.string({ maxLength: 5 }), text, { maxKeys: 2 }),
    },
    { requiredKeys: ["network"] },
  )
  .map(({ rpcUrl, ...fields }) =>
    // Most requests name no endpoints.
    create(GetQuoteRequestSchema, Object.keys(rpcUrl ?? {}).length > 1 ? { ...fields, rpcUrl: rpcUrl ?? {} } : fields),
  );

const binaries = fc.oneof(
  { weight: 5, arbitrary: messages.map((message) => Buffer.from(toBinary(GetQuoteRequestSchema, message))) },
  fc.tuple(messages, fc.nat(), fc.uint8Array({ maxLength: 6 })).map(([message, cut, more]) => {
    const bytes = toBinary(GetQuoteRequestSchema, message);
    return Buffer.concat([bytes.subarray(0, cut % (bytes.length + 1)), more]);
  }),
  fc
    .tuple(messages, fc.integer({ min: 1, max: 3 }))
    .map(([message, cut]) => Buffer.from(toBinary(GetQuoteRequestSchema, message)).subarray(0, -cut)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(
    Buffer.alloc(3999, "\n"),
    Buffer.alloc(4001),
    Buffer.alloc(9000, 0x0b),
    Buffer.from([0x0a, 0x81, 0, 65]),
  ),
);

const jsons = fc.oneof(
  { weight: 4, arbitrary: messages.map((message) => toJsonString(GetQuoteRequestSchema, message)) },
  fc.json(),
  fc.constantFrom(
    "",
    "{",
    "{}",
    "{} x",
    '{"amount":"1"',
    '{"amount":"1",}',
    '{"amount":"1"}}',
    '{"amount":"1","amount":"2"}',
    '{"from_chain":"1","fromChain":"1"}',
    '{"\\u0061mount":"\\ud800","slippage":1e999}',
    '{"amount":null,"slippage":"0x10","nope":[1]}',
    '\ufeff{"amount":"1"}',
    "null",
    "[]",
    '"a"',
    "é",
  ),
  fc.constantFrom(
    `{"amount":"${"1".repeat(3985)}"}`,
    `{"amount":"${"1".repeat(3990)}"}`,
    `{"amount":${"[".repeat(999)}`,
  ),
);

const accepted = fc.constantFrom(
  "",
  "gzip",
  "identity",
  "br, gzip",
  "gzip;q=1",
  "gzip;q=0",
  "deflate,gzip,identity",
  "GZIP",
  "*",
  "*;q=0",
);
const some = <T>(arbitrary: fc.Arbitrary<T>) => ({ weight: 1, arbitrary });
const mostly = (text: string, ...others: string[]) =>
  fc.oneof({ weight: 8, arbitrary: fc.constant(text) }, some(fc.constantFrom(...others)));

const connectTypes = (usual: string) =>
  mostly(
    usual,
    "Application/JSON",
    "application/json;charset=utf-8",
    "application/json; charset=utf-8",
    "application/json; charset=latin1",
    "application/connect+json",
    "application/grpc-web+proto",
    "text/plain",
    "application/proto; a=b",
  );
const commonHeaders = {
  "connect-timeout-ms": fc.constantFrom("20000", "0", "9999999999", "99999999999", "-1", "soon", ""),
  "connect-protocol-version": fc.constantFrom("1", "2"),
  "accept-encoding": accepted,
  "content-encoding": mostly("identity", "gzip", "br", ""),
  "user-agent": fc.constant("x"),
};
const headersWith = (type: fc.Arbitrary<string>, others: Record<string, fc.Arbitrary<string>>) =>
  fc.tuple(type, fc.option(fc.record(others, { requiredKeys: [] }), { nil: {} })).map(
    ([contentType, more]) =>
      // Absent headers are not sent.
      Object.fromEntries(
        Object.entries({ "content-type": contentType, ...more }).filter(([, value]) => value !== undefined),
      ) as Record<string, string>,
  );

const methods = mostly("POST", "PUT", "HEAD", "OPTIONS", "DELETE");
const QUOTE_PATH = "/hop.bridge.v1.BridgeService/GetQuote";
const paths = mostly(
  QUOTE_PATH,
  "/hop.bridge.v1.BridgeService/GetTransferStatus",
  "/hop.bridge.v1.BridgeService/ListAvailableRoutes",
  "/grpc.health.v1.Health/Check",
  `${QUOTE_PATH}?x=1`,
  "/hop.bridge.v1.BridgeService/Nope",
);
const packed = fc.boolean();
const pack = (isPacked: boolean, body: Buffer) => (isPacked && body.length % 4 === 0 ? gzipSync(body) : body);

const connectPosts = fc
  .record({
    isHttp2: fc.boolean(),
    method: methods,
    path: paths,
    content: fc.oneof(
      fc.tuple(
        headersWith(connectTypes("application/json"), commonHeaders),
        jsons.map((json) => Buffer.from(json)),
      ),
      fc.tuple(headersWith(connectTypes("application/proto"), commonHeaders), binaries),
    ),
    isPacked: packed,
  })
  .map(({ content: [headers, body], isPacked, ...rest }) => ({ ...rest, headers, body: pack(isPacked, body) }));

const encoded = fc.oneof(
  jsons.map((json) => ["json", "", encodeURIComponent(toWellFormed(json))] as const),
  jsons.map((json) => ["json", "&base64=1", Buffer.from(json).toString("base64url")] as const),
  binaries.map((bytes) => ["proto", "&base64=1", bytes.toString("base64url")] as const),
  binaries.map((bytes) => ["proto", "&base64=1", encodeURIComponent(bytes.toString("base64"))] as const),
  fc.constantFrom(["json", "", '{"amount":"1"}'] as const, ["proto", "", "a+b"] as const, ["xml", "", ""] as const),
  fc.constantFrom(["json", "&base64=0", "e30"] as const, ["json", "&compression=gzip", "{}"] as const),
  fc.constantFrom(["json", "&compression=identity", "{}#x"] as const, ["json", "&message=1", "{}"] as const),
);
const connectGets = fc
  .record({
    isHttp2: fc.boolean(),
    method: mostly("GET", "HEAD"),
    path: fc
      .tuple(paths, encoded, fc.constantFrom("", "&connect=v1", "&connect=v2"))
      .map(
        ([path, [encoding, more, message], version]) =>
          `${path}?encoding=${encoding}&message=${message}${more}${version}`,
      ),
    headers: headersWith(fc.constant("application/json"), {
      "connect-timeout-ms": commonHeaders["connect-timeout-ms"],
      "accept-encoding": accepted,
    }),
  })
  .filter(({ path }) => /^[\x21-\x7e]*$/.test(path))
  .map((request) => ({ ...request, body: Buffer.alloc(0) }));

const envelopes = fc
  .tuple(binaries, mostly("0", "1", "2", "128"), mostly("true", "short", "long", "twice", "none"))
  .map(([message, flags, length]) => {
    const isPacked = flags === "1" && message.length % 2 === 0;
    const data = isPacked ? gzipSync(message) : message;
    const head = Buffer.alloc(5);
    head.writeUInt8(Number(flags));
    head.writeUInt32BE(Math.max(0, data.length + (length === "short" ? -1 : length === "long" ? 1 : 0)), 1);
    const enveloped = Buffer.concat([head, data]);
    if (length === "none") return Buffer.alloc(0);
    return length === "twice" ? Buffer.concat([enveloped, enveloped]) : enveloped;
  });
const grpcs = fc.record({
  isHttp2: mostly("2", "1").map((version) => version === "2"),
  method: methods,
  path: paths,
  headers: headersWith(
    mostly(
      "application/grpc",
      "application/grpc+proto",
      "application/grpc+json",
      "application/GRPC",
      "application/grpc-web+proto",
      "application/grpc; charset=utf-8",
    ),
    {
      te: fc.constant("trailers"),
      "grpc-timeout": fc.constantFrom(
        "20S",
        "0S",
        "1n",
        "1u",
        "99999999H",
        "9999999M",
        "1",
        "soon",
        "-1S",
        "123456789m",
      ),
      "grpc-accept-encoding": accepted,
      "grpc-encoding": mostly("identity", "gzip", "br"),
      "user-agent": fc.constant("x"),
    },
  ),
  body: envelopes,
});

const plainTexts = fc.constantFrom("1000000", "USDC", "polygon", "0", "0.5");
const gets = fc
  .record({
    isHttp2: mostly("1", "2").map((version) => version === "2"),
    method: mostly("GET", "HEAD", "OPTIONS", "DELETE"),
    path: fc
      .record({
        path: mostly("/v1/quote", "/v1/available-routes", "/v1/transfer-status", "/v1/nope"),
        fields: fc.array(
          fc.tuple(
            mostly("amount", "token", "slippage", "toChain", "to_chain", "rpcUrl[polygon]", "transferId", "x"),
            fc.oneof(
              { weight: 3, arbitrary: plainTexts },
              text.map((value) => encodeURIComponent(toWellFormed(value))),
            ),
          ),
          { maxLength: 4 },
        ),
        network: fc.constantFrom(...behaviours, "cached", "brief", "private", "odd", "long"),
      })
      .map(
        ({ path, fields, network }) =>
          `${path}?${[...fields, ["network", network]].map((pair) => pair.join("=")).join("&")}`,
      ),
    headers: headersWith(fc.constant("text/plain"), {
      "if-none-match": fc.constantFrom("*", '"x"'),
      connection: mostly("keep-alive", "close"),
    }),
  })
  .map(({ headers: { connection, ...headers }, ...request }) => ({
    ...request,
    // HTTP/2 has no such header.
    headers: request.isHttp2 || connection === undefined ? headers : { ...headers, connection },
    body: Buffer.alloc(0),
  }));

const runs = { numRuns: isFullEffort ? 2000 : 250 };
test.each<[string, fc.Arbitrary<TestRequest>]>([
  ["GET", gets],
  ["Connect by POST", connectPosts],
  ["Connect by GET", connectGets],
  ["gRPC", grpcs],
])("%s: the fast path and the general path send equal responses", async (_, requests) => {
  await fc.assert(fc.asyncProperty(requests, expectEqualResponses), runs);
});

test("both paths log equal entries", async () => {
  expect(requestCount).toBeGreaterThanOrEqual(4 * runs.numRuns);
  const about = ({ lines }: Server) => new Map(lines.map(({ durationMs: _, ...line }) => [line.requestId, line]));
  while (fastPathServer.lines.length < requestCount || generalServer.lines.length < requestCount)
    await new Promise((done) => setTimeout(done, 5));
  expect(about(fastPathServer)).toEqual(about(generalServer));
});
