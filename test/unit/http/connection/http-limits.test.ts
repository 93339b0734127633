import { once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GetQuoteRequestSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { callQuote, createGrpcClient } from "../support/grpc-client.js";
import { envelope, HTTP_VERSIONS, openHttp2, post, postJson, sendHttp1, sendHttp2On } from "../support/raw-client.js";
import { QUOTE_PATH, startHoldingServer, startTestServer } from "../support/test-server.js";

// A request at the limit succeeds; one above it is rejected with the reason.

describe.each(HTTP_VERSIONS)("over %s", (_, send) => {
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
      send(port, QUOTE_PATH, postJson(JSON.stringify({ amount: "1".repeat(bytes - empty) })));
    expect((await withBody(65_536)).status).toBe(200);
    const { status, body } = await withBody(65_537);
    expect([status, JSON.parse(body).code]).toEqual([413, "resource_exhausted"]);
  });

  test("accepts a gRPC-Web message of 64 KiB and no more", async () => {
    const { port } = await startTestServer();
    const withMessage = async (bytes: number) => {
      const request = post("application/grpc-web+proto", envelope(encodeMessage(bytes)));
      const response = await send(port, QUOTE_PATH, request);
      return /grpc-status: ?(\d+)/.exec(response.body)?.[1] ?? response.headers["grpc-status"];
    };
    expect(await withMessage(65_536)).toBe("0");
    expect(await withMessage(65_537)).toBe(String(Code.ResourceExhausted));
  });
});

/** Encodes a request of exactly `bytes` bytes. */
function encodeMessage(bytes: number): Buffer {
  const encode = (digits: number) =>
    Buffer.from(toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, { amount: "1".repeat(digits) })));
  return encode(60_000 + bytes - encode(60_000).length);
}

test("accepts a gRPC message of 64 KiB and no more", async () => {
  const { port } = await startTestServer();
  const client = createGrpcClient(port);
  expect((await callQuote(client, encodeMessage(65_536))).error).toBeUndefined();
  expect((await callQuote(client, encodeMessage(65_537))).error?.code).toBe(Code.ResourceExhausted);
});

test("allows 250 open requests on an HTTP/2 connection and refuses one more, which can be retried", async () => {
  const { port, started, release } = await startHoldingServer();
  // Until SETTINGS arrive, the client assumes this limit.
  const session = openHttp2(port, { peerMaxConcurrentStreams: 1000 });
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
  await expect.poll(started).toBe(250);
  release();
  expect(new Set(await Promise.all(ends.slice(0, 250)))).toEqual(new Set([0]));
  expect((await sendHttp2On(session, "/v1/quote?amount=1")).status).toBe(200);
});
