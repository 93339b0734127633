import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { encodeClientPreface, encodeFrame, FRAME_TYPES } from "../../../../bench/support/http2-frames.js";
import type { HttpLimits } from "../../../../src/http/connection/http-limits.js";
import { encodeGet, encodeReset, isPingAck, openPeer, uint32 } from "../support/http2-peer.js";
import { createKeepAliveAgent, openHttp2, openRawSocket, sendHttp1, sendHttp2On } from "../support/raw-client.js";
import {
  type AccessLine,
  createLargeQuote,
  createLatch,
  echoQuote,
  QUOTE_PATH,
  startHoldingServer,
  startTestServer,
} from "../support/test-server.js";

/** Interval of the checks of all sessions. Their clock moves only when a test advances it. */
const CHECK_INTERVAL_MS = 1000;
/** Bytes that a flood sends per second of that clock. */
const FLOOD_BYTES_PER_SECOND = 256 * 1024;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});

const END = 1;
const ACK = 1;
const END_HEADERS = 4;
const PADDED = 8;
const PRIORITY = 2;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;

/** GET /v1/quote?amount=9, which never completes in these tests. */
const REQUEST = encodeGet("/v1/quote?amount=9");
const EMPTY = Buffer.alloc(0);
const streamId = (index: number): number => 2 * index + 1;
const open = (index: number, flags: number): Buffer =>
  encodeFrame(FRAME_TYPES.headers, flags, streamId(index), REQUEST);
/** Frames after the HEADERS of one open stream. */
const onOneStream = (more: (index: number) => Buffer) => (index: number) => (index === 0 ? open(0, 4) : more(index));
const concat = (...frames: Buffer[]): Buffer => Buffer.concat(frames);
/** A request that is reset at once. */
const resetRequest = (flags: number) => (index: number) => concat(open(index, flags), encodeReset(streamId(index)));
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const isCanceled = ({ code }: AccessLine): boolean => code === "canceled";
/** Returns the error codes in the log. */
const errorCodesOf = (lines: readonly AccessLine[]): unknown[] =>
  lines.flatMap(({ errorCode }) => (errorCode === undefined ? [] : [errorCode]));
/** Makes Node.js close the session once its requests are complete. */
const goAway = encodeFrame(FRAME_TYPES.goAway, 0, 0, Buffer.alloc(8));

/** A header of 4000 bytes for the dynamic table of HPACK, and 15,000 references to it. */
function bomb(index: number): Buffer {
  const large = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, "z")]);
  const headers = index === 0 ? [REQUEST, large] : [REQUEST, Buffer.alloc(15_000, 0x80 | 62)];
  return encodeFrame(FRAME_TYPES.headers, END | END_HEADERS, streamId(index), Buffer.concat(headers));
}

/** Serves quotes: those for amount 9 never complete, the others after a delay. */
const startHangingServer = (limits: Partial<HttpLimits> = {}, ready?: Promise<void>) =>
  startTestServer({
    limits,
    getQuote: async (request, context) => {
      if (request.amount !== "9") return Promise.resolve(ready).then(() => echoQuote(request, context));
      return new Promise((_, reject) => context.signal.addEventListener("abort", () => reject(context.signal.reason)));
    },
  });

/** Not `once`: a closed connection may emit an error first. */
const nextEvent = (socket: Socket, name: string) => new Promise<void>((resolve) => socket.once(name, () => resolve()));

/** Sends frames until the server closes the connection; returns the code of its GOAWAY. */
async function flood(port: number, makeFrames: (index: number) => Buffer): Promise<number | undefined> {
  let code: number | undefined;
  const socket = await openPeer(port, (type, _flags, _stream, payload) => {
    if (type === FRAME_TYPES.goAway) code = payload.readUInt32BE(4);
  });
  const closed = nextEvent(socket, "close");
  socket.write(encodeClientPreface());
  let bytesUntilCheck = FLOOD_BYTES_PER_SECOND;
  for (let index = 0; !socket.destroyed; ) {
    const frames: Buffer[] = [];
    for (let left = 20; left > 0; left--) frames.push(makeFrames(index++));
    const batch = Buffer.concat(frames);
    // The server may stop reading.
    if (!socket.write(batch)) await Promise.race([nextEvent(socket, "drain"), closed]);
    bytesUntilCheck -= batch.length;
    if (bytesUntilCheck <= 0) {
      bytesUntilCheck += FLOOD_BYTES_PER_SECOND;
      vi.advanceTimersByTime(CHECK_INTERVAL_MS);
    }
    await nextTurn();
  }
  return code;
}

const ENHANCE_YOUR_CALM = 11;
const PROTOCOL_ERROR = 1;
const MAX_RESET_BURST = 500;

// A flood of resets has one log entry per request instead.
describe("a flood closes its connection with one log entry while other callers are served", () => {
  test.each([
    ["requests that are reset immediately", resetRequest(END | END_HEADERS), undefined],
    ["requests without END_STREAM that are reset", resetRequest(END_HEADERS), undefined],
    ["more requests than allowed", (index: number) => open(index, END | END_HEADERS), "TOO_MANY_INVALID_FRAMES"],
    ["PING", () => encodeFrame(FRAME_TYPES.ping, 0, 0, Buffer.alloc(8)), /ERR_HTTP2_ERROR|EXCESS_BYTES/],
    ["SETTINGS", () => encodeFrame(FRAME_TYPES.settings, 0, 0, EMPTY), /ERR_HTTP2_ERROR|EXCESS_BYTES/],
    ["unsolicited SETTINGS acknowledgements", () => encodeFrame(FRAME_TYPES.settings, 1, 0, EMPTY), "ERR_HTTP2_ERROR"],
    [
      "PRIORITY",
      (index: number) => encodeFrame(PRIORITY, 0, streamId(index), Buffer.from([0, 0, 0, 0, 16])),
      /ERR_HTTP2_ERROR|EXCESS_BYTES/,
    ],
    ["frames of an unknown type", () => encodeFrame(0x77, 0, 0, Buffer.alloc(8)), /ERR_HTTP2_ERROR|EXCESS_BYTES/],
    ["padding", onOneStream(() => encodeFrame(FRAME_TYPES.data, PADDED, 1, Buffer.alloc(256, 255))), "EXCESS_BYTES"],
    ["empty DATA", onOneStream(() => encodeFrame(FRAME_TYPES.data, 0, 1, EMPTY)), /INVALID_FRAMES|EXCESS_BYTES/],
    [
      "CONTINUATION",
      (index: number) =>
        index === 0 ? open(0, 0) : encodeFrame(CONTINUATION, 0, 1, Buffer.from([0x40, 1, 0x78, 1, 0x79])),
      "ERR_HTTP2_ERROR",
    ],
    [
      "empty CONTINUATION",
      (index: number) => (index === 0 ? open(0, 0) : encodeFrame(CONTINUATION, 0, 1, EMPTY)),
      "ERR_HTTP2_ERROR",
    ],
    ["WINDOW_UPDATE with an increment of 0", () => encodeFrame(WINDOW_UPDATE, 0, 0, uint32(0)), "ERR_HTTP2_ERROR"],
    [
      "WINDOW_UPDATE beyond the maximum",
      () => encodeFrame(WINDOW_UPDATE, 0, 0, uint32(2 ** 31 - 1)),
      "ERR_HTTP2_ERROR",
    ],
    ["a stream ID that is reused", () => open(0, END | END_HEADERS), "ERR_HTTP2_ERROR"],
    ["headers that HPACK expands a thousandfold", bomb, /ERR_HTTP2_ERROR|INVALID_FRAMES|EXCESS_BYTES/],
  ] as const)("of %s", async (_, makeFrames, errorCode) => {
    const { port, accessLines, internalErrors } = await startHangingServer();
    let isOver = false;
    const flooding = flood(port, makeFrames).finally(() => {
      isOver = true;
    });
    const agent = createKeepAliveAgent();
    const statuses: number[] = [];
    do statuses.push((await sendHttp1(port, "/v1/quote?amount=1", { agent })).status);
    while (!isOver);
    expect([ENHANCE_YOUR_CALM, PROTOCOL_ERROR, 0, 2, 3, 5, 9, undefined]).toContain(await flooding);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const expected = errorCode === undefined ? [] : [expect.stringMatching(errorCode)];
    await expect.poll(() => errorCodesOf(accessLines)).toEqual(expected);
    expect(internalErrors).toEqual([]);
    // Closing the connection ended its requests.
    await expect.poll(() => accessLines.filter(isCanceled).length).toBeLessThan(2_000);
  });
});

describe("a fatal error closes the connection at the next check", () => {
  const pendingRequest = open(0, END_HEADERS);
  const wholeRequest = open(0, END | END_HEADERS);
  test.each([
    ["a frame that is too large", encodeFrame(FRAME_TYPES.data, 0, 1, Buffer.alloc(20_000))],
    ["headers that cannot be decompressed", encodeFrame(FRAME_TYPES.headers, 5, 1, Buffer.alloc(3, 255))],
    ["too many settings", encodeFrame(FRAME_TYPES.settings, 0, 0, Buffer.alloc(3_000, "\0\x04\0\0\xff\xff", "latin1"))],
    ["DATA on the connection", encodeFrame(FRAME_TYPES.data, 0, 0, Buffer.from("x"))],
    ["a PING of the wrong length", encodeFrame(FRAME_TYPES.ping, 0, 0, Buffer.alloc(7))],
    ["CONTINUATION without HEADERS", encodeFrame(CONTINUATION, END_HEADERS, 1, REQUEST)],
    ["another frame between HEADERS and CONTINUATION", concat(open(0, END), encodeFrame(6, 0, 0, Buffer.alloc(8)))],
    ["more padding than data", concat(pendingRequest, encodeFrame(FRAME_TYPES.data, PADDED, 1, Buffer.from([200, 1])))],
    ["DATA after END_STREAM", concat(wholeRequest, encodeFrame(FRAME_TYPES.data, 0, 1, Buffer.from("x")))],
    ["a short RST_STREAM after a GOAWAY", concat(wholeRequest, goAway, encodeFrame(FRAME_TYPES.reset, 0, 1, EMPTY))],
    // Node.js reports these by itself.
    ["a WINDOW_UPDATE of 0", encodeFrame(WINDOW_UPDATE, 0, 0, uint32(0))],
    ["a request with an even number", encodeFrame(FRAME_TYPES.headers, 5, 2, REQUEST)],
  ])("of %s", async (_, bytes) => {
    const { port, accessLines } = await startHangingServer();
    const goAwayCodes: number[] = [];
    const socket = await openPeer(port, (type, _flags, _stream, payload) => {
      if (type === FRAME_TYPES.goAway) goAwayCodes.push(payload.readUInt32BE(4));
    });
    socket.write(concat(encodeClientPreface(), bytes));
    await expect.poll(() => goAwayCodes.length).toBeGreaterThan(0);
    // A second check, since a request may have been opened in the interval of the first.
    for (let checks = 0; checks < 2; checks += 1) {
      vi.advanceTimersByTime(CHECK_INTERVAL_MS);
      for (let turns = 0; turns < 3; turns += 1) await nextTurn();
    }
    await expect.poll(() => socket.destroyed).toBe(true);
    await expect.poll(() => errorCodesOf(accessLines)).toEqual(["ERR_HTTP2_ERROR"]);
    expect(goAwayCodes.at(-1)).toBeGreaterThan(0);
  });
});

// Node.js would refuse it while nghttp2 reads its headers, which corrupts memory.
test("a request that follows a GOAWAY in the same chunk is served", async () => {
  const { headers, reset, data } = FRAME_TYPES;
  const { port } = await startHangingServer();
  const received: string[] = [];
  const socket = await openPeer(port, (type, _flags, stream) => received.push(`${type} ${stream}`));
  const second = encodeGet("/v1/quote?amount=1");
  const frame = encodeFrame(headers, END | END_HEADERS, streamId(1), second);
  socket.write(concat(encodeClientPreface(), open(0, END | END_HEADERS), goAway, frame));
  await expect.poll(() => received).toContain(`${data} ${streamId(1)}`);
  expect(received).not.toContain(`${reset} ${streamId(1)}`);
});

test("a connection that was told to go away is closed although its caller keeps it open", async () => {
  const { port, server } = await startHangingServer({ responseMs: 5 * CHECK_INTERVAL_MS });
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {}).resume();
  const ended = nextEvent(socket, "end");
  socket.write(encodeClientPreface());
  for (let index = 0; index <= MAX_RESET_BURST; index += 1) {
    socket.write(resetRequest(END | END_HEADERS)(index));
    if (index % 20 === 0) await nextTurn();
  }
  await ended;
  for (let checks = 0; checks < 7; checks += 1) vi.advanceTimersByTime(CHECK_INTERVAL_MS);
  await expect.poll(() => server.getLoad().connections).toBe(0);
});

test("a connection is asked for a PING once after each burst of requests", async () => {
  const { port } = await startHangingServer();
  let pings = 0;
  let responses = 0;
  const socket = await openPeer(port, (type, _flags, _stream, payload) => {
    if (type === FRAME_TYPES.headers) responses += 1;
    if (type !== FRAME_TYPES.ping) return;
    pings += 1;
    socket.write(encodeFrame(FRAME_TYPES.ping, ACK, 0, payload));
  });
  socket.write(encodeClientPreface());
  for (let burst = 0; burst < 3; burst += 1) {
    socket.write(encodeFrame(FRAME_TYPES.headers, END | END_HEADERS, streamId(burst), encodeGet("/x")));
    await expect.poll(() => responses).toBe(burst + 1);
    vi.advanceTimersByTime(CHECK_INTERVAL_MS);
    expect(pings).toBe(burst);
    for (let checks = 0; checks < 4; checks += 1) {
      vi.advanceTimersByTime(CHECK_INTERVAL_MS);
      await sleep(10);
    }
    await expect.poll(() => pings).toBe(burst + 1);
  }
});

describe("a connection that does not answer PINGs is closed", () => {
  const limits = { pingIntervalMs: CHECK_INTERVAL_MS };
  const start = encodeClientPreface();

  test.each([
    ["after the preface", start],
    ["after an incomplete preface", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM")],
    ["in the middle of a frame", concat(start, open(0, END | END_HEADERS).subarray(0, 15))],
    ["between HEADERS and CONTINUATION", concat(start, open(0, END))],
    ["with a pending request", concat(start, open(0, END | END_HEADERS))],
    ["after a GOAWAY, with a pending request", concat(start, open(0, END | END_HEADERS), goAway)],
    ["in the middle of a frame, with a pending request", concat(start, open(0, 5), open(1, 5).subarray(0, 15))],
  ])("%s", async (_, bytes) => {
    const { port, accessLines } = await startHangingServer(limits);
    const socket = await openRawSocket(port);
    // Read but never answered.
    socket.resume();
    socket.write(bytes);
    while (!socket.destroyed) {
      vi.advanceTimersByTime(CHECK_INTERVAL_MS);
      await sleep(5);
    }
    await expect.poll(() => errorCodesOf(accessLines)).toEqual(["KEEPALIVE_TIMEOUT"]);
  });

  test("although its caller does not read what it asked for", async () => {
    const { opened: answered, open: onAnswer } = createLatch();
    const { port, server, accessLines } = await startTestServer({
      limits,
      getQuote: () => {
        onAnswer();
        return createLargeQuote(4_000_000);
      },
    });
    const socket = await openRawSocket(port);
    socket.pause();
    socket.write(concat(start, ...[0, 1, 2, 3].map((index) => open(index, END | END_HEADERS))));
    await answered;
    // Within seconds. Node.js would wait until the caller reads.
    for (let checks = 0; checks < 8; checks += 1) {
      vi.advanceTimersByTime(CHECK_INTERVAL_MS);
      await sleep(5);
    }
    await expect.poll(() => server.getLoad().connections).toBe(0);
    await expect.poll(() => errorCodesOf(accessLines)).toEqual(["KEEPALIVE_TIMEOUT"]);
    expect(accessLines.filter(isCanceled)).toHaveLength(4);
  });

  test("but stays open while it answers them, however long a request takes", async () => {
    const { port, release } = await startHoldingServer({ limits });
    const session = openHttp2(port);
    let pings = 0;
    session.on("ping", () => {
      pings += 1;
    });
    const response = sendHttp2On(session, "/v1/quote?amount=1");
    for (let round = 1; round <= 3; round++) {
      // The acknowledgement of the previous PING precedes this request.
      await sendHttp2On(session, "/nowhere");
      vi.advanceTimersByTime(limits.pingIntervalMs);
      await expect.poll(() => pings).toBe(round);
    }
    release();
    expect((await response).status).toBe(200);
  });

  test("but stays open after a GOAWAY while it acknowledges SETTINGS, which Node.js sends then", async () => {
    const { port, release } = await startHoldingServer({ limits });
    const { settings, ping, headers } = FRAME_TYPES;
    let acknowledged = 0;
    let hasResponse = false;
    const socket = await openPeer(port, (type, flags) => {
      // The answer to the PING shows that the acknowledgement before it has been read.
      if (type === settings && flags === 0)
        socket.write(concat(encodeFrame(settings, ACK, 0, EMPTY), encodeFrame(ping, 0, 0, Buffer.alloc(8))));
      else if (isPingAck(type, flags)) acknowledged += 1;
      else if (type === headers) hasResponse = true;
    });
    socket.write(concat(start, open(0, END | END_HEADERS), goAway));
    for (let round = 1; round <= 4; round++) {
      await expect.poll(() => acknowledged).toBe(round);
      vi.advanceTimersByTime(limits.pingIntervalMs);
    }
    expect(hasResponse).toBe(false);
    release();
    await expect.poll(() => hasResponse).toBe(true);
  });
});

test("a thousand requests on one connection, some of them reset, do not count as a flood", async () => {
  const { port, accessLines } = await startTestServer({
    getQuote: async (request, context) => sleep(1).then(() => echoQuote(request, context)),
  });
  const session = openHttp2(port);
  for (let round = 0; round < 10; round++) {
    const responses = Array.from({ length: 90 }, () => sendHttp2On(session, "/v1/quote?amount=1"));
    for (let index = 0; index < 10; index++) {
      const stream = session.request({ ":path": QUOTE_PATH, ":method": "POST", "content-type": "application/grpc" });
      stream.on("error", () => {});
      stream.close(8);
    }
    for (const { status } of await Promise.all(responses)) expect(status).toBe(200);
  }
  expect(errorCodesOf(accessLines)).toEqual([]);
});

test("a client whose deadlines keep expiring gets a GOAWAY and loses no open request", async () => {
  const { opened, open: release } = createLatch();
  const { port, accessLines, logged } = await startHangingServer({}, opened);
  const session = openHttp2(port);
  const goAwayCodes: number[] = [];
  session.on("goaway", (code) => goAwayCodes.push(code));
  const slow = sendHttp2On(session, "/v1/quote?amount=1");
  for (let round = 1; round <= 3; round++) {
    expect(goAwayCodes).toEqual([]);
    const streams = Array.from({ length: 199 }, () => session.request({ ":path": "/v1/quote?amount=9" }));
    await sendHttp2On(session, "/nowhere");
    for (const stream of streams) stream.on("error", () => {}).close(8);
    await logged(200 * round);
  }
  await expect.poll(() => goAwayCodes).toEqual([0]);
  release();
  expect((await slow).status).toBe(200);
  await expect.poll(() => session.destroyed).toBe(true);
  expect(errorCodesOf(accessLines)).toEqual([]);
});

test("occasional resets do not close the connection", async () => {
  const { port, accessLines } = await startHangingServer();
  const session = openHttp2(port);
  async function resetRequests(count: number): Promise<void> {
    for (let index = 0; index < count; index += 50) {
      const streams = Array.from({ length: 50 }, () => session.request({ ":path": "/v1/quote?amount=9" }));
      // Answered after all of them have begun.
      await sendHttp2On(session, "/nowhere");
      await Promise.all(
        streams.map((stream) => {
          stream.on("error", () => {}).close(8);
          return new Promise((resolve) => stream.once("close", resolve));
        }),
      );
    }
  }
  await resetRequests(450);
  await expect.poll(() => accessLines.filter(isCanceled).length).toBe(450);
  vi.advanceTimersByTime(3 * CHECK_INTERVAL_MS);
  await resetRequests(100);
  expect((await sendHttp2On(session, "/v1/quote?amount=1")).status).toBe(200);
  expect(errorCodesOf(accessLines)).toEqual([]);
});
