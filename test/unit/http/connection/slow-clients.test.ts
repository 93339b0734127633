import { once } from "node:events";
import { type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create } from "@bufbuild/protobuf";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  createFrameReader,
  encodeClientPreface,
  encodeFrame,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../../../../bench/support/http2-frames.js";
import { GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { openRawSocket } from "../support/raw-client.js";
import { QUOTE_PATH, startTestServer } from "../support/test-server.js";

/** The gRPC prefix of a message of 50,000 bytes. */
const MESSAGE_PREFIX = Buffer.from([0, 0, 0, 0xc3, 0x50]);

/** Sends a byte every 20 ms until the test ends. */
function drip(send: (byte: string) => void, byte: string): void {
  const timer = setInterval(() => send(byte), 20);
  onTestFinished(() => clearInterval(timer));
}

describe("a body that arrives byte by byte times out like one that does not arrive", () => {
  const limits = { requestMs: 500, headersMs: 500 };

  // The requests of a test run at the same time: each takes as long as the timeout.
  test("over HTTP/1.1", async () => {
    const { port } = await startTestServer({ limits });
    async function sendSlowly(requestLine: string, contentType: string): Promise<string> {
      const socket = await openRawSocket(port);
      onTestFinished(() => void socket.destroy());
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk;
      });
      socket.write(
        `${requestLine} HTTP/1.1\r\nHost: x\r\nContent-Type: ${contentType}\r\nContent-Length: 5000\r\n\r\n`,
      );
      drip((byte) => socket.write(byte), " ");
      await new Promise((resolve) => socket.once("close", resolve));
      return text;
    }
    const cases: readonly [string, string, string, RegExp][] = [
      ["Connect", `POST ${QUOTE_PATH}`, "application/json", /^HTTP\/1\.1 (408|400) /],
      ["gRPC-Web", `POST ${QUOTE_PATH}`, "application/grpc-web+proto", /^HTTP\/1\.1 408 |grpc-status: 3/],
      ["gRPC", `POST ${QUOTE_PATH}`, "application/grpc", /^HTTP\/1\.1 408 |grpc-status: 3/],
      ["a path that does not accept POST", "POST /v1/quote", "application/json", /^HTTP\/1\.1 405 /],
      ["an unknown path", "POST /nowhere", "application/json", /^HTTP\/1\.1 404 /],
      ["GET", "GET /v1/quote?amount=1", "application/json", /^HTTP\/1\.1 200 /],
    ];
    await Promise.all(
      cases.map(async ([name, requestLine, contentType, expected]) => {
        expect(await sendSlowly(requestLine, contentType), name).toMatch(expected);
      }),
    );
  });

  async function request(url: string, headers: Record<string, string>): Promise<ClientHttp2Stream> {
    const session = connectHttp2(url);
    session.on("error", () => {});
    onTestFinished(() => session.destroy());
    const stream = session.request(headers, { endStream: false });
    stream.on("error", () => {}).resume();
    return stream;
  }

  test("over HTTP/2", async () => {
    const { url } = await startTestServer({ limits });
    const cases: readonly [string, string, string, number][] = [
      ["Connect", QUOTE_PATH, "application/json", 400],
      ["a path that does not accept POST", "/v1/quote", "application/json", 405],
      ["an unknown path", "/nowhere", "application/json", 404],
    ];
    await Promise.all(
      cases.map(async ([name, path, type, status]) => {
        const stream = await request(url, { ":method": "POST", ":path": path, "content-type": type });
        drip((byte) => stream.writable && stream.write(byte), " ");
        const [headers] = await once(stream, "response");
        expect(headers[":status"], name).toBe(status);
        if (!stream.closed) await new Promise((resolve) => stream.once("close", resolve));
      }),
    );
  });

  test("over gRPC on the fast path and on the general path", async () => {
    const { url } = await startTestServer({ limits });
    await Promise.all(
      [{}, { "grpc-encoding": "gzip" }].map(async (extraHeaders) => {
        const headers = { ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc", te: "trailers" };
        const stream = await request(url, { ...headers, ...extraHeaders });
        stream.write(MESSAGE_PREFIX);
        drip((byte) => stream.writable && stream.write(byte), "\0");
        const [trailers] = await once(stream, "trailers");
        expect(trailers).toMatchObject({
          "grpc-status": "3",
          "grpc-message": "the request body did not arrive in time",
        });
        if (!stream.closed) await new Promise((resolve) => stream.once("close", resolve));
      }),
    );
  });
});

describe("memory use depends on the bytes received, not on how they were split", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  function usedMegabytes(): number {
    collectGarbage();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    return (heapUsed + external + arrayBuffers) / 1e6;
  }
  const path = Buffer.from(QUOTE_PATH);
  const STREAMS = 20;
  const BYTES = 9_000;

  const literal = (name: string, value: string) =>
    Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
  const encodeHeaders = (type: string) =>
    Buffer.concat([Buffer.from([0x83, 0x86, 1, 1, 0x61, 4, path.length]), path, literal("content-type", type)]);
  const bytes = Buffer.concat(Array.from({ length: 1000 }, () => encodeFrame(FRAME_TYPES.data, 0, 1, Buffer.alloc(1))));

  test.each([
    ["gRPC on the fast path", encodeHeaders("application/grpc"), MESSAGE_PREFIX],
    [
      "gRPC on the general path",
      Buffer.concat([encodeHeaders("application/grpc"), literal("grpc-encoding", "gzip")]),
      MESSAGE_PREFIX,
    ],
    ["Connect on the fast path", encodeHeaders("application/proto"), Buffer.from([0x12])],
    [
      "a stream of messages",
      Buffer.concat([
        Buffer.from([0x83, 0x86, 1, 1, 0x61, 4, 57]),
        Buffer.from("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
        literal("content-type", "application/grpc"),
      ]),
      MESSAGE_PREFIX,
    ],
  ])("%s, byte by byte", async (_, headers, prefix) => {
    // However long a busy machine takes for 180,000 frames, no request may time out.
    const { port, accessLines } = await startTestServer({ limits: { requestMs: 3_600_000 } });
    const socket = await openRawSocket(port);
    onTestFinished(() => void socket.destroy());
    const isRead = new Promise<void>((resolve) => {
      const isPingAck = (type: number, flags: number) => type === FRAME_TYPES.ping && flags === FRAME_FLAGS.ack;
      const read = createFrameReader((type, flags) => isPingAck(type, flags) && resolve());
      socket.on("data", read);
    });
    socket.write(encodeClientPreface());
    const before = usedMegabytes();
    for (let index = 0; index < STREAMS; index++) {
      const id = 2 * index + 1;
      socket.write(encodeFrame(FRAME_TYPES.headers, 4, id, headers));
      socket.write(encodeFrame(FRAME_TYPES.data, 0, id, prefix));
      const frames = Buffer.from(bytes);
      for (let offset = 0; offset < frames.length; offset += 10) frames.writeUInt32BE(id, offset + 5);
      for (let sent = 0; sent < BYTES; sent += 1000) {
        if (!socket.write(frames)) await once(socket, "drain");
      }
    }
    socket.write(encodeFrame(FRAME_TYPES.ping, 0, 0, Buffer.alloc(8)));
    await isRead;
    expect(accessLines).toEqual([]);
    // 20 bodies of 9000 bytes; kept as chunks of one byte, they would take more than 20 MB. A busy machine takes longer to
    // read and to free what was sent.
    await expect.poll(() => usedMegabytes() - before).toBeLessThan(10);
    expect(accessLines).toEqual([]);
  });

  test("requests without a flow-control window share the memory of one response", async () => {
    const amountIn = "9".repeat(100_000);
    const response = Object.freeze(create(GetQuoteResponseSchema, { amountIn }));
    const { url } = await startTestServer({ getQuote: () => response });
    const session = connectHttp2(url, { settings: { initialWindowSize: 0 } });
    session.on("error", () => {});
    onTestFinished(() => session.destroy());
    await once(session, "remoteSettings");
    const before = usedMegabytes();
    const headers = { ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc" };
    const responses = Array.from({ length: 200 }, () => {
      const stream = session.request(headers);
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
      return once(stream, "response");
    });
    await Promise.all(responses);
    // 200 copies of 100 kB would take 20 MB.
    expect(usedMegabytes() - before).toBeLessThan(10);
  });
});
