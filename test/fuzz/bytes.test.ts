import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../../bench/support/http2-frames.js";
import { DEFAULT_HTTP_LIMITS } from "../../src/http/connection/http-limits.js";
import { isFullEffort } from "../support/effort.js";
import { buildService } from "../support/service/build-service.js";
import { type FuzzTarget, startFuzzTarget } from "./fuzz-target.js";
import { runProperty } from "./run-property.js";

// Invalid or damaged requests. Their connections end, other clients are still served, and no sockets leak.

const CONNECTIONS = isFullEffort ? 4_000 : 1_000;
const CONCURRENCY = 200;
/** The client closes a connection after this time. */
const CLIENT_TIMEOUT_MS = 150;
/** Only a leak takes longer. */
const MAX_CLOSE_MS = 4 * DEFAULT_HTTP_LIMITS.pingIntervalMs + 60_000;

let target: FuzzTarget;
beforeAll(async () => {
  target = await startFuzzTarget(await buildService(), { ASSETS_URL: "off" });
});
afterAll(() => {
  if (target?.isRunning()) target.signal("SIGKILL");
});

type Bytes = fc.Arbitrary<Buffer>;
const latin1 = (...texts: string[]): Bytes => fc.constantFrom(...texts.map((text) => Buffer.from(text, "latin1")));
const noise: Bytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));

/** The first bytes of other protocols, some of which resemble HTTP. */
const otherProtocols = latin1(
  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  "SSH-2.0-OpenSSH_9.6\r\n",
  "\x00\x00\x00\x85\xffSMB\x72\x00\x00\x00\x00",
  "\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00",
  "*1\r\n$4\r\nPING\r\n",
  "\x00\x00\x00\x08\x04\xd2\x16\x2f",
  "\x10\x1d\x00\x04MQTT\x04\x02\x00\x3c",
  "EHLO x\r\n",
  "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\n\r\n",
  "\r\n\r\n\x00\r\nQUIT\n!\x11\x0c\x00\x00\x00",
  "<policy-file-request/>\0",
);
/** Pieces of HTTP/1.1, valid and invalid, in any order. */
const pieces = latin1(
  "GET /v1/available-routes HTTP/1.1\r\n",
  "GET /v1/quote HTTP/1.0\r\n",
  "POST /hop.bridge.v1.BridgeService/GetQuote HTTP/1.1\r\n",
  "GET  HTTP/9.9\r\n",
  "Host: x\r\n",
  "Content-Type: application/json\r\n",
  "Content-Length: 5\r\n",
  "Content-Length: 5\r\nContent-Length: 6\r\n",
  "Content-Length: -1\r\n",
  "Content-Length: 99999999999999999999\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding: gzip, chunked\r\n",
  "Transfer-Encoding : chunked\r\n",
  "Expect: 100-continue\r\n",
  "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAA\r\n",
  "X: a\r\n b\r\n",
  "X\0: \x01\r\n",
  `X: ${"x".repeat(20_000)}\r\n`,
  "\r\n",
  "\n",
  "{}",
  "5\r\nhello\r\n",
  "fffffffffffffffff\r\n",
  "0\r\n\r\n",
);
const http1: Bytes = fc
  .array(fc.oneof({ weight: 5, arbitrary: pieces }, { weight: 1, arbitrary: noise }), { maxLength: 7 })
  .map((parts) => Buffer.concat(parts));

const headers = encodeHeaders([
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/v1/available-routes?token=HOP"],
  [":authority", "x"],
]).first;
const ends = FRAME_FLAGS.endHeaders | FRAME_FLAGS.endStream;
/** Frames of HTTP/2, with any part wrong. */
const frames: Bytes = fc
  .record({
    type: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 7, 8, 9) },
      { weight: 1, arbitrary: fc.nat(255) },
    ),
    flagBits: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(0, 1, 4, 5, 8, 0x20) },
      { weight: 1, arbitrary: fc.nat(255) },
    ),
    stream: fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(0, 1, 3, 5, 7, 2) },
      { weight: 1, arbitrary: fc.nat(2 ** 31 - 1) },
    ),
    payload: fc.oneof(
      { weight: 3, arbitrary: fc.constant(headers) },
      { weight: 3, arbitrary: noise },
      {
        weight: 2,
        arbitrary: latin1(
          "",
          "\0\0\0\0",
          "\x7f\xff\xff\xff",
          "\0\0\0\0\0\0\0\0",
          "\0\x04\xff\xff\xff\xff",
          "\0\x01\0\0\x10\0",
        ),
      },
      { weight: 1, arbitrary: fc.constantFrom(Buffer.alloc(16_385, 0xff), Buffer.alloc(16_384, 0x82)) },
    ),
    lengthError: fc.oneof(
      { weight: 8, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.constantFrom(-1, 1, 100, 2 ** 23) },
    ),
  })
  .map(({ type, flagBits, stream, payload, lengthError }) => {
    const bytes = encodeFrame(type, flagBits, stream, payload);
    if (lengthError !== 0) bytes.writeUIntBE(Math.max(0, payload.length + lengthError), 0, 3);
    return bytes;
  });
const http2: Bytes = fc
  .tuple(
    fc.oneof(
      { weight: 5, arbitrary: fc.constant(encodeClientPreface()) },
      { weight: 1, arbitrary: latin1("PRI", "PRI * HTTP/2.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") },
    ),
    fc.array(
      fc.oneof(
        { weight: 4, arbitrary: frames },
        { weight: 1, arbitrary: noise },
        { weight: 1, arbitrary: fc.constant(encodeFrame(FRAME_TYPES.headers, ends, 9, headers)) },
      ),
      { maxLength: 8 },
    ),
  )
  .map(([preface, rest]) => Buffer.concat([preface, ...rest]));

const streams: Bytes = fc.oneof(
  { weight: 1, arbitrary: noise },
  { weight: 1, arbitrary: fc.tuple(otherProtocols, noise).map((parts) => Buffer.concat(parts)) },
  { weight: 4, arbitrary: http1 },
  { weight: 5, arbitrary: http2 },
);
const connectionInputs = fc.record({
  bytes: streams,
  /** Number of pieces in which the bytes are sent. */
  parts: fc.integer({ min: 1, max: 3 }),
  end: fc.constantFrom("finish", "reset", "wait"),
});
type ConnectionInput = typeof connectionInputs extends fc.Arbitrary<infer T> ? T : never;

/** Sends the bytes on a new connection and returns the response. */
function sendBytes(port: number, { bytes, parts, end }: ConnectionInput): Promise<Buffer> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const received: Buffer[] = [];
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(received));
    };
    const timer = setTimeout(finish, CLIENT_TIMEOUT_MS);
    socket.on("data", (chunk) => received.push(chunk));
    socket.on("error", () => {});
    socket.on("end", finish);
    socket.on("close", finish);
    const size = Math.ceil(bytes.length / parts);
    for (let part = 0; part < parts; part += 1) socket.write(bytes.subarray(part * size, (part + 1) * size));
    if (end === "finish") socket.end();
    else if (end === "reset") setTimeout(() => socket.resetAndDestroy(), 5);
  });
}

/** Returns whether a response reports a server error. GET of the routes needs no upstream. */
function reportsServerFault(response: Buffer): boolean {
  const text = response.toString("latin1");
  return /(?:^|\r\n)HTTP\/1\.1 5/.test(text) || /"code":"(?:internal|unknown|data_loss)"/.test(text);
}

test("an invalid frame after a GOAWAY and a request does not end the service", async () => {
  const socket = connect(target.port, "127.0.0.1").on("error", () => {});
  const closed = once(socket, "close");
  // In one chunk: the session must not end between the frames.
  socket.write(
    Buffer.concat([
      encodeClientPreface(),
      encodeFrame(FRAME_TYPES.goAway, 0, 0, Buffer.alloc(8)),
      encodeFrame(FRAME_TYPES.headers, ends, 9, headers),
      encodeFrame(FRAME_TYPES.reset, 0, 1, Buffer.alloc(0)),
    ]),
  );
  socket.resume();
  await closed;
  await target.expectHealthy();
});

test(`${CONNECTIONS} connections with malformed input end without server errors or leaks`, {
  timeout: 1_200_000,
}, async () => {
  const countSockets = async (): Promise<number> =>
    (await target.resourceUsage()).resources.filter((kind) => kind === "TCPSocketWrap").length;
  const batch = fc.array(connectionInputs, { minLength: CONCURRENCY, maxLength: CONCURRENCY, size: "max" });
  const property = fc.asyncProperty(batch, async (inputs) => {
    const responses = Promise.all(
      inputs.map(async (input) => ({
        sent: input.bytes.toString("latin1"),
        response: await sendBytes(target.port, input),
      })),
    );
    await target.expectHealthy();
    expect((await responses).filter(({ response }) => reportsServerFault(response))).toEqual([]);
    expect(target.isRunning(), target.output().stderr).toBe(true);
  });
  await runProperty(property, CONNECTIONS / CONCURRENCY);
  await target.expectHealthy();
  // After a protocol error, Node.js leaves the HTTP/2 connection open. The service closes it when it does not answer a
  // PING, after up to two intervals of 30 s.
  if (isFullEffort) await expect.poll(countSockets, { timeout: MAX_CLOSE_MS, interval: 1_000 }).toBe(0);
  await target.expectCleanExit();
});
