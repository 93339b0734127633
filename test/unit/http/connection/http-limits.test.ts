import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { callUnaryGrpc, createGrpcClient } from "../support/grpc-client.js";
import { sendHttp1, sendHttp2, sendHttp2On } from "../support/raw-client.js";
import { createLatch, echoQuote, QUOTE_PATH, startTestServer } from "../support/test-server.js";

// A request at the limit succeeds; one above it is rejected with the reason.

const json = { method: "POST", headers: { "content-type": "application/json" } };

describe.each([
  ["HTTP/1.1", sendHttp1],
  ["HTTP/2", sendHttp2],
] as const)("over %s", (_, send) => {
  test("accepts headers below 16 KiB", async () => {
    const { port } = await startTestServer();
    const withHeader = (bytes: number) => send(port, "/v1/quote?amount=1", { headers: { x: "x".repeat(bytes) } });
    expect((await withHeader(15 * 1024)).status).toBe(200);
    const { status, body } = await withHeader(16 * 1024);
    expect([status, JSON.parse(body)]).toMatchObject([431, { reason: "INVALID_PARAMETER" }]);
  });

  test("accepts 128 headers and no more", async () => {
    const { port } = await startTestServer();
    const withHeaders = (count: number) => {
      // Host and Connection, or the four pseudo-headers of HTTP/2.
      const implicit = send === sendHttp1 ? 2 : 4;
      const headers = Object.fromEntries(Array.from({ length: count - implicit }, (_, index) => [`x-${index}`, "y"]));
      return send(port, "/v1/quote?amount=1", { headers });
    };
    expect((await withHeaders(128)).status).toBe(200);
    const { status, body } = await withHeaders(129);
    expect([status, JSON.parse(body)]).toMatchObject([431, { reason: "INVALID_PARAMETER" }]);
  });

  test("accepts a body of 64 KiB and no more", async () => {
    const { port } = await startTestServer();
    const empty = JSON.stringify({ amount: "" }).length;
    const withBody = (bytes: number) =>
      send(port, QUOTE_PATH, { ...json, body: JSON.stringify({ amount: "1".repeat(bytes - empty) }) });
    expect((await withBody(65_536)).status).toBe(200);
    const { status, body } = await withBody(65_537);
    expect([status, JSON.parse(body).code]).toEqual([413, "resource_exhausted"]);
  });

  test("accepts a gRPC-Web message of 64 KiB and no more", async () => {
    const { port } = await startTestServer();
    const withMessage = async (bytes: number) => {
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(bytes, 1);
      const body = Buffer.concat([prefix, encodeMessage(bytes)]);
      const headers = { "content-type": "application/grpc-web+proto" };
      const response = await send(port, QUOTE_PATH, { method: "POST", headers, body });
      return /grpc-status: ?(\d+)/.exec(response.body)?.[1] ?? response.headers["grpc-status"];
    };
    expect(await withMessage(65_536)).toBe("0");
    expect(await withMessage(65_537)).toBe(String(Code.ResourceExhausted));
  });
});

/** Encodes a request of exactly `bytes` bytes. */
function encodeMessage(bytes: number): Buffer {
  const overhead = toBinary(
    GetQuoteRequestSchema,
    create(GetQuoteRequestSchema, { amount: "1".repeat(60_000) }),
  ).length;
  const amount = "1".repeat(60_000 + bytes - overhead);
  return Buffer.from(toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, { amount })));
}

test("accepts a gRPC message of 64 KiB and no more", async () => {
  const { port } = await startTestServer();
  const client = createGrpcClient(port);
  const call = (bytes: number) =>
    callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, encodeMessage(bytes));
  expect((await call(65_536)).error).toBeUndefined();
  expect((await call(65_537)).error?.code).toBe(Code.ResourceExhausted);
  client.close();
});

test("allows 250 open requests on an HTTP/2 connection and refuses one more, which can be retried", async () => {
  const { opened, open } = createLatch();
  let pending = 0;
  const { url } = await startTestServer({
    getQuote: async (request, context) => {
      pending += 1;
      await opened;
      return echoQuote(request, context);
    },
  });
  // Until SETTINGS arrive, the client assumes this limit.
  const session = connectHttp2(url, { peerMaxConcurrentStreams: 1000 });
  const announced = once(session, "remoteSettings");
  const streams = Array.from({ length: 251 }, () => session.request({ ":path": "/v1/quote?amount=1" }));
  const ends = streams.map(
    (stream) =>
      new Promise<number | undefined>((resolve) => {
        stream.on("error", () => {}).resume();
        stream.on("close", () => resolve(stream.rstCode));
      }),
  );
  expect((await announced)[0]).toMatchObject({ maxConcurrentStreams: 250, maxHeaderListSize: 16 * 1024 });
  const refused = await ends[250];
  // REFUSED_STREAM
  expect(refused).toBe(7);
  await expect.poll(() => pending).toBe(250);
  open();
  expect(new Set(await Promise.all(ends.slice(0, 250)))).toEqual(new Set([0]));
  expect((await sendHttp2On(session, "/v1/quote?amount=1")).status).toBe(200);
  session.destroy();
});
