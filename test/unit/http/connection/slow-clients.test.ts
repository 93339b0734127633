import { once } from "node:events";
import { type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, test } from "vitest";
import { encodeClientPreface, encodeFrame, FRAME_TYPES } from "../../../../bench/support/http2-frames.js";
import { GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { openRawSocket } from "../support/raw-client.js";
import { QUOTE_PATH, startTestServer } from "../support/test-server.js";

const ending: (() => void)[] = [];
afterEach(() => {
  for (const end of ending.splice(0)) end();
});

/** What stands before a message of 50,000 bytes in gRPC. */
const START = Buffer.from([0, 0, 0, 0xc3, 0x50]);

/** Sends a byte again and again. */
function drip(send: (byte: string) => void, byte: string): void {
  const timer = setInterval(() => send(byte), 20);
  ending.push(() => clearInterval(timer));
}

describe("a body that comes byte by byte is waited for no longer than one that does not come", () => {
  const limits = { requestMs: 500, headersMs: 500 };

  test.each([
    ["Connect", `POST ${QUOTE_PATH}`, "application/json", /^HTTP\/1\.1 (408|400) /],
    ["gRPC-Web", `POST ${QUOTE_PATH}`, "application/grpc-web+proto", /^HTTP\/1\.1 408 |grpc-status: 3/],
    ["gRPC", `POST ${QUOTE_PATH}`, "application/grpc", /^HTTP\/1\.1 408 |grpc-status: 3/],
    ["a path that takes none", "POST /v1/quote", "application/json", /^HTTP\/1\.1 405 /],
    ["a path that is not there", "POST /nowhere", "application/json", /^HTTP\/1\.1 404 /],
    ["GET", "GET /v1/quote?amount=1", "application/json", /^HTTP\/1\.1 200 /],
  ])("over HTTP/1.1: %s", async (_, line, type, answer) => {
    const { port } = await startTestServer({ limits });
    const socket = await openRawSocket(port);
    ending.push(() => socket.destroy());
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.write(`${line} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 5000\r\n\r\n`);
    drip((byte) => socket.write(byte), " ");
    await new Promise((resolve) => socket.once("close", resolve));
    expect(text).toMatch(answer);
  });

  async function request(url: string, headers: Record<string, string>): Promise<ClientHttp2Stream> {
    const session = connectHttp2(url);
    session.on("error", () => {});
    ending.push(() => session.destroy());
    const stream = session.request(headers, { endStream: false });
    stream.on("error", () => {}).resume();
    return stream;
  }

  test.each([
    ["Connect", QUOTE_PATH, "application/json", 400],
    ["a path that takes none", "/v1/quote", "application/json", 405],
    ["a path that is not there", "/nowhere", "application/json", 404],
  ])("over HTTP/2: %s", async (_, path, type, status) => {
    const { url } = await startTestServer({ limits });
    const stream = await request(url, { ":method": "POST", ":path": path, "content-type": type });
    drip((byte) => stream.writable && stream.write(byte), " ");
    const [head] = await once(stream, "response");
    expect(head[":status"]).toBe(status);
    await new Promise((resolve) => stream.once("close", resolve));
  });

  test.each([
    ["the short way", {}],
    ["the adapter", { "grpc-encoding": "gzip" }],
  ])("over gRPC by %s", async (_, more) => {
    const { url } = await startTestServer({ limits });
    const headers = { ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc", te: "trailers" };
    const stream = await request(url, { ...headers, ...more });
    stream.write(START);
    drip((byte) => stream.writable && stream.write(byte), "\0");
    const [trailers] = await once(stream, "trailers");
    expect(trailers).toMatchObject({ "grpc-status": "3", "grpc-message": "the request body did not arrive in time" });
    await new Promise((resolve) => stream.once("close", resolve));
  });
});

describe("memory is for what came, not for how it came", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  function used(): number {
    collectGarbage();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    return (heapUsed + external + arrayBuffers) / 1e6;
  }
  const path = Buffer.from(QUOTE_PATH);
  const STREAMS = 20;
  const BYTES = 9_000;

  const literal = (name: string, value: string) =>
    Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
  const head = (type: string) =>
    Buffer.concat([Buffer.from([0x83, 0x86, 1, 1, 0x61, 4, path.length]), path, literal("content-type", type)]);
  const bytes = Buffer.concat(Array.from({ length: 1000 }, () => encodeFrame(FRAME_TYPES.data, 0, 1, Buffer.alloc(1))));

  test.each([
    ["gRPC by the short way", head("application/grpc"), START],
    ["gRPC by the adapter", Buffer.concat([head("application/grpc"), literal("grpc-encoding", "gzip")]), START],
    ["Connect by the short way", head("application/proto"), Buffer.from([0x12])],
    [
      "a stream of messages",
      Buffer.concat([
        Buffer.from([0x83, 0x86, 1, 1, 0x61, 4, 57]),
        Buffer.from("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
        literal("content-type", "application/grpc"),
      ]),
      START,
    ],
  ])("for %s, byte by byte", async (_, headers, start) => {
    const { port, accessLines } = await startTestServer();
    const socket = await openRawSocket(port);
    ending.push(() => socket.destroy());
    socket.resume();
    socket.write(encodeClientPreface());
    const before = used();
    for (let index = 0; index < STREAMS; index++) {
      const id = 2 * index + 1;
      socket.write(encodeFrame(FRAME_TYPES.headers, 4, id, headers));
      socket.write(encodeFrame(FRAME_TYPES.data, 0, id, start));
      const own = Buffer.from(bytes);
      for (let at = 0; at < own.length; at += 10) own.writeUInt32BE(id, at + 5);
      for (let sent = 0; sent < BYTES; sent += 1000) {
        if (!socket.write(own)) await once(socket, "drain");
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(accessLines).toEqual([]);
    // Bodies of 9000 bytes, in pieces of one byte each: those would take more than 20 MB.
    expect(used() - before).toBeLessThan(10);
  });

  test("a caller who opens requests and no window holds their answers, not copies of them for each", async () => {
    const amountIn = "9".repeat(100_000);
    const answer = Object.freeze(create(GetQuoteResponseSchema, { amountIn }));
    const { url } = await startTestServer({ getQuote: () => answer });
    const session = connectHttp2(url, { settings: { initialWindowSize: 0 } });
    session.on("error", () => {});
    ending.push(() => session.destroy());
    await once(session, "remoteSettings");
    const before = used();
    const headers = { ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc" };
    const answered = Array.from({ length: 200 }, () => {
      const stream = session.request(headers);
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
      return once(stream, "response");
    });
    await Promise.all(answered);
    // 200 answers of 100 kB.
    expect(used() - before).toBeLessThan(10);
  });
});
