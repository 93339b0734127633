import { gzipSync } from "node:zlib";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { compressionGzip, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ErrorInfoSchema } from "../../../../gen/google/rpc/error_details_pb.js";
import { BridgeService } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { connectOver } from "../support/grpc-client.js";
import { createKeepAliveAgent, envelope, post, postJson, sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const BATCH_PATH = "/hop.bridge.v1.BridgeService/BatchGetQuotes";

// Requests with more messages or members than one may have, in each form that a request can take.

const compression = { sendCompression: compressionGzip, compressMinBytes: 0 };
const transports: readonly (readonly [string, (options: { baseUrl: string }) => Transport])[] = [
  ["Connect", connectOver("1.1")],
  ["Connect JSON", connectOver("1.1", { useBinaryFormat: false })],
  ["gRPC", createGrpcTransport],
  ["gRPC JSON", (options) => createGrpcTransport({ ...options, useBinaryFormat: false })],
  ["gRPC-Web", (options) => createGrpcWebTransport({ ...options, httpVersion: "2" })],
  ["compressed Connect", connectOver("1.1", compression)],
  ["compressed Connect JSON", connectOver("2", { useBinaryFormat: false, ...compression })],
  ["compressed gRPC", (options) => createGrpcTransport({ ...options, ...compression })],
  ["compressed gRPC-Web", (options) => createGrpcWebTransport({ ...options, httpVersion: "1.1", ...compression })],
];

describeOnBothPaths(() => {
  test.each(transports)("over %s, a batch may have 100 requests", async (_, createTransport) => {
    const { url, accessLines, internalErrors } = await startTestServer();
    const client = createClient(BridgeService, createTransport({ baseUrl: url }));
    const batch = (count: number) => client.batchGetQuotes({ requests: Array(count).fill({ rpcUrl: { a: "b" } }) });
    await batch(100);
    for (const count of [101, 2_500]) {
      const error = await batch(count).then(() => undefined, ConnectError.from);
      expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: "requests has more than 100 items" });
      expect(error?.findDetails(ErrorInfoSchema)).toMatchObject([
        { reason: "INVALID_PARAMETER", domain: "hop.bridge.v1", metadata: { field: "requests" } },
      ]);
    }
    expect(accessLines.map(({ code }) => code)).toEqual(["ok", "invalid_argument", "invalid_argument"]);
    expect(internalErrors).toEqual([]);
  });

  test.each(transports)("over %s, a watch may have 2,000 members", async (_, createTransport) => {
    const { url, accessLines, internalErrors } = await startTestServer();
    const client = createClient(BridgeService, createTransport({ baseUrl: url }));
    async function watch(count: number): Promise<void> {
      for await (const _message of client.watchTransfers({ transferId: Array(count).fill("1") }));
    }
    await watch(1_900);
    const error = await watch(2_001).catch(ConnectError.from);
    expect(error).toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: "the request has more than 2000 members",
      details: [expect.anything()],
    });
    expect(accessLines.map(({ code }) => code)).toEqual(["ok", "invalid_argument"]);
    expect(internalErrors).toEqual([]);
  });

  const deepJson = Buffer.from(`{"x":${"[".repeat(16)}${"]".repeat(16)}}`);
  test.each([
    ["uncompressed", "", deepJson],
    ["compressed", "gzip", gzipSync(deepJson)],
  ])("GET over Connect, %s", async (_, encoding, message) => {
    const { port } = await startTestServer();
    const query = `encoding=json&base64=1&compression=${encoding || "identity"}&message=${message.toString("base64url")}`;
    const { status, body } = await sendHttp1(port, `${QUOTE_PATH}?${query}`);
    expect([status, JSON.parse(body)]).toMatchObject([
      400,
      { code: "invalid_argument", message: "the request is nested deeper than 16 levels" },
    ]);
  });

  const manyFields = Buffer.from("a00600".repeat(2_001), "hex");
  test.each([
    ["application/grpc-web+proto", QUOTE_PATH],
    ["application/grpc-web+proto", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"],
  ])("counts in later messages, %s %s", async (type, path) => {
    const { port } = await startTestServer();
    const body = Buffer.concat([envelope(Buffer.alloc(0)), envelope(gzipSync(manyFields), 1)]);
    const response = await sendHttp2(port, path, post(type, body, { "grpc-encoding": "gzip" }));
    expect(`${response.headers["grpc-message"]} ${response.body}`.replaceAll("%20", " ")).toContain(
      "the request has more than 2000 members",
    );
  });
});

test("GET ignores Content-Encoding, GET over Connect reads its compression", async () => {
  const { port } = await startTestServer();
  const headers = { "content-encoding": "gzip" };
  expect((await sendHttp1(port, "/v1/quote?amount=1", { headers })).status).toBe(200);
  const message = gzipSync('{"amount":"1"}').toString("base64url");
  const query = `encoding=json&base64=1&compression=gzip&message=${message}`;
  expect(await sendHttp1(port, `${QUOTE_PATH}?${query}`)).toMatchObject({
    status: 200,
    body: expect.stringContaining('"amountIn":"1"'),
  });
});

test.each([
  ["application/proto", Buffer.from("4200".repeat(32_000), "hex")],
  ["application/json", Buffer.from(`{"requests":[${"{},".repeat(21_000)}{}]}`)],
])(
  "refuses 64 KB of messages in 100 bytes, %s, for five times the CPU time of a quote at most",
  async (type, batch) => {
    const { port, accessLines } = await startTestServer();
    const agent = createKeepAliveAgent();
    const send = (path: string, body: Buffer, headers = {}) =>
      sendHttp1(port, path, { agent, ...post(type, body, headers) });
    const quote = type === "application/json" ? Buffer.from('{"amount":"1"}') : Buffer.alloc(0);
    const bomb = gzipSync(batch);
    const works = {
      ok: () => send(QUOTE_PATH, quote),
      invalid_argument: () => send(BATCH_PATH, bomb, { "content-encoding": "gzip" }),
    };
    const taken: Record<string, number> = { ok: 0, invalid_argument: 0 };
    for (let round = 0; round < 20; round++) {
      for (const [code, work] of Object.entries(works)) {
        const before = process.cpuUsage();
        for (let count = 0; count < 5; count++) await work();
        const { user, system } = process.cpuUsage(before);
        expect(accessLines.splice(0).map((line) => line.code)).toEqual(Array(5).fill(code));
        // The first rounds are those of a compiler.
        if (round >= 10) taken[code] = (taken[code] ?? 0) + user + system;
      }
    }
    expect(taken.invalid_argument).toBeLessThan(5 * (taken.ok ?? 0));
  },
);

test("answers a compressed request by a compressed response where its caller does not say what it accepts", async () => {
  const { port } = await startTestServer();
  const body = gzipSync(JSON.stringify({ amount: "1".repeat(2_000) }));
  const response = await sendHttp1(port, QUOTE_PATH, postJson(body, { "content-encoding": "gzip" }));
  expect([response.status, response.headers["content-encoding"]]).toEqual([200, "gzip"]);
});
