import { brotliCompressSync, gzipSync } from "node:zlib";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GetQuoteRequestSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { QUOTE_PATH, startTestServer } from "../support/test-server.js";

// Requests that are small on the wire, and large or invalid once they are decompressed.

const request = create(GetQuoteRequestSchema, { amount: "1" });
const binary = Buffer.from(toBinary(GetQuoteRequestSchema, request));
const text = toJsonString(GetQuoteRequestSchema, request);
/** 50 MB of one byte, compressed to 50 kB: below the limit before decompression, far above it after. */
const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20), { level: 9 });
const member = gzipSync(Buffer.alloc(60_000, 0x20));
const truncated = gzipSync(text).subarray(0, -6);

describe("Connect", () => {
  const post = (encoding: string, body: Buffer) => ({
    method: "POST",
    headers: { "content-type": "application/json", "content-encoding": encoding },
    body,
  });
  const get = (encoding: string, body: Buffer) =>
    `${QUOTE_PATH}?encoding=json&base64=1&compression=${encoding}&message=${body.toString("base64url")}`;

  test.each([
    ["a small request", "gzip", gzipSync(text), 200],
    ["a bomb", "gzip", bomb, 413],
    // Each gzip member is within the limit, their sum is not.
    ["a bomb of several gzip members", "gzip", Buffer.concat(Array(50).fill(member)), 413],
    ["a bomb in a bomb", "gzip", gzipSync(bomb), 400],
    ["truncated data", "gzip", truncated, 400],
    ["a wrong checksum", "gzip", Buffer.concat([gzipSync(text).subarray(0, -8), Buffer.alloc(8)]), 400],
    ["uncompressed data", "gzip", Buffer.from(text), 400],
    ["brotli", "br", brotliCompressSync(text), 415],
    ["two encodings", "gzip, gzip", gzipSync(gzipSync(text)), 415],
    ["an unknown encoding", "x", Buffer.from(text), 415],
  ])("by POST: %s", async (_, encoding, body, status) => {
    const { port, internalErrors } = await startTestServer();
    for (const send of [sendHttp1, sendHttp2])
      expect((await send(port, QUOTE_PATH, post(encoding, body))).status).toBe(status);
    expect(internalErrors).toEqual([]);
  });

  test.each([
    ["a small request", "gzip", gzipSync(text), 200],
    ["a bomb that fits into a URL", "gzip", gzipSync(Buffer.alloc(4_000_000, 0x20), { level: 9 }), 413],
    ["truncated data", "gzip", truncated, 400],
    ["brotli", "br", brotliCompressSync(text), 415],
  ])("by GET: %s", async (_, encoding, body, status) => {
    const { port, internalErrors } = await startTestServer();
    for (const send of [sendHttp1, sendHttp2]) expect((await send(port, get(encoding, body))).status).toBe(status);
    expect(internalErrors).toEqual([]);
  });
});

describe("gRPC and gRPC-Web", () => {
  test.each([
    ["a small request", "gzip", gzipSync(binary), 0],
    ["a bomb", "gzip", bomb, Code.ResourceExhausted],
    ["a bomb of several gzip members", "gzip", Buffer.concat(Array(50).fill(member)), Code.ResourceExhausted],
    ["truncated data", "gzip", gzipSync(binary).subarray(0, -6), Code.InvalidArgument],
    ["uncompressed data", "gzip", binary, Code.InvalidArgument],
    ["no grpc-encoding", undefined, gzipSync(binary), Code.InvalidArgument],
    ["brotli", "br", brotliCompressSync(binary), Code.Unimplemented],
    ["two encodings", "gzip, gzip", gzipSync(gzipSync(binary)), Code.Unimplemented],
  ])("%s", async (_, encoding, message, code) => {
    const { port, internalErrors } = await startTestServer();
    const prefix = Buffer.from([1, 0, 0, 0, 0]);
    prefix.writeUInt32BE(message.length, 1);
    for (const type of ["application/grpc-web+proto", "application/grpc"]) {
      const encodingHeader = encoding === undefined ? {} : { "grpc-encoding": encoding };
      const response = await sendHttp1(port, QUOTE_PATH, {
        method: "POST",
        headers: { "content-type": type, ...encodingHeader },
        body: Buffer.concat([prefix, message]),
      });
      const header = response.headers["grpc-status"] ?? response.trailers["grpc-status"];
      const status = header ?? /grpc-status: ?(\d+)/.exec(response.body)?.[1];
      expect([type, status]).toEqual([type, String(code)]);
    }
    expect(internalErrors).toEqual([]);
  });
});

test("GET ignores Content-Encoding", async () => {
  const { port } = await startTestServer();
  const response = await sendHttp1(port, "/v1/quote?amount=1", { headers: { "content-encoding": "gzip" } });
  expect(response.status).toBe(200);
});
