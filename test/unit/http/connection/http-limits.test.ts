import { connect as connectHttp2 } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { callUnaryGrpc, createGrpcClient } from "../support/grpc-client.js";
import { sendHttp1, sendHttp2, sendHttp2On } from "../support/raw-client.js";
import { createLatch, echoQuote, QUOTE_PATH, startTestServer } from "../support/test-server.js";

// At a limit it works, one beyond it is refused, and the refusal says why.

const json = { method: "POST", headers: { "content-type": "application/json" } };

describe.each([
  ["HTTP/1.1", sendHttp1],
  ["HTTP/2", sendHttp2],
] as const)("over %s", (_, send) => {
  test("a URL may have 8 KiB", async () => {
    const { port } = await startTestServer();
    const path = "/v1/quote?amount=";
    const longest = path + "1".repeat(8192 - path.length);
    expect((await send(port, longest)).status).toBe(200);
    const { status, body } = await send(port, `${longest}1`);
    expect([status, JSON.parse(body)]).toMatchObject([414, { message: "the URL is longer than 8192 bytes" }]);
  });

  test("headers may have 16 KiB", async () => {
    const { port } = await startTestServer();
    const withHeader = (bytes: number) => send(port, "/v1/quote?amount=1", { headers: { x: "x".repeat(bytes) } });
    expect((await withHeader(15 * 1024)).status).toBe(200);
    const { status, body } = await withHeader(16 * 1024);
    expect([status, JSON.parse(body)]).toMatchObject([431, { reason: "INVALID_PARAMETER" }]);
  });

  test("there may be 128 headers", async () => {
    const { port } = await startTestServer();
    const withHeaders = (count: number) => {
      // Host and connection, or the four that HTTP/2 begins with.
      const own = send === sendHttp1 ? 2 : 4;
      const headers = Object.fromEntries(Array.from({ length: count - own }, (_, index) => [`x-${index}`, "y"]));
      return send(port, "/v1/quote?amount=1", { headers });
    };
    expect((await withHeaders(128)).status).toBe(200);
    const { status, body } = await withHeaders(129);
    expect([status, JSON.parse(body)]).toMatchObject([431, { reason: "INVALID_PARAMETER" }]);
  });

  test("a body may have 64 KiB", async () => {
    const { port } = await startTestServer();
    const empty = JSON.stringify({ amount: "" }).length;
    const withBody = (bytes: number) =>
      send(port, QUOTE_PATH, { ...json, body: JSON.stringify({ amount: "1".repeat(bytes - empty) }) });
    expect((await withBody(65_536)).status).toBe(200);
    const { status, body } = await withBody(65_537);
    expect([status, JSON.parse(body).code]).toEqual([413, "resource_exhausted"]);
  });

  test("a message of gRPC-Web may have 64 KiB", async () => {
    const { port } = await startTestServer();
    const withMessage = async (bytes: number) => {
      const head = Buffer.alloc(5);
      head.writeUInt32BE(bytes, 1);
      const body = Buffer.concat([head, messageOf(bytes)]);
      const headers = { "content-type": "application/grpc-web+proto" };
      const answer = await send(port, QUOTE_PATH, { method: "POST", headers, body });
      return /grpc-status: ?(\d+)/.exec(answer.body)?.[1] ?? answer.headers["grpc-status"];
    };
    expect(await withMessage(65_536)).toBe("0");
    expect(await withMessage(65_537)).toBe(String(Code.ResourceExhausted));
  });
});

/** A request whose binary form has so many bytes. */
function messageOf(bytes: number): Buffer {
  const overhead = toBinary(
    GetQuoteRequestSchema,
    create(GetQuoteRequestSchema, { amount: "1".repeat(60_000) }),
  ).length;
  const amount = "1".repeat(60_000 + bytes - overhead);
  return Buffer.from(toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, { amount })));
}

test("a message of gRPC may have 64 KiB", async () => {
  const { port } = await startTestServer();
  const client = createGrpcClient(port);
  const ask = (bytes: number) =>
    callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, messageOf(bytes));
  expect((await ask(65_536)).error).toBeUndefined();
  expect((await ask(65_537)).error?.code).toBe(Code.ResourceExhausted);
  client.close();
});

test("a connection of HTTP/2 may have 250 requests open; one more is refused and can be sent again", async () => {
  const { opened, open } = createLatch();
  let waiting = 0;
  const { url } = await startTestServer({
    getQuote: async (request, context) => {
      waiting += 1;
      await opened;
      return echoQuote(request, context);
    },
  });
  // Without a word from the server it would send any number.
  const session = connectHttp2(url, { peerMaxConcurrentStreams: 1000 });
  const streams = Array.from({ length: 251 }, () => session.request({ ":path": "/v1/quote?amount=1" }));
  const ends = streams.map(
    (stream) =>
      new Promise<number | undefined>((resolve) => {
        stream.on("error", () => {}).resume();
        stream.on("close", () => resolve(stream.rstCode));
      }),
  );
  const refused = await ends[250];
  expect(refused).toBe(7);
  await expect.poll(() => waiting).toBe(250);
  open();
  expect(new Set(await Promise.all(ends.slice(0, 250)))).toEqual(new Set([0]));
  expect((await sendHttp2On(session, "/v1/quote?amount=1")).status).toBe(200);
  session.destroy();
});
