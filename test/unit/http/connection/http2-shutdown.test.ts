import { beforeEach, expect, test, vi } from "vitest";
import { encodeClientPreface, encodeFrame, FRAME_FLAGS, FRAME_TYPES } from "../../../../bench/support/http2-frames.js";
import { encodeGet, isPingAck, openPeer } from "../support/http2-peer.js";
import { createLatch, echoQuote, startTestServer } from "../support/test-server.js";

// The peer speaks in frames: it decides when it has read the notice.

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});

const MAX_STREAM_ID = 2 ** 31 - 1;
const GET_QUOTE = encodeGet("/v1/quote?amount=1");

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Opens a connection and returns what it receives, frame by frame. */
async function openConnection(port: number) {
  const frames: Frame[] = [];
  let wake = (): void => {};
  const socket = await openPeer(port, (type, flags, stream, payload) => {
    frames.push({ type, flags, stream, payload: Buffer.from(payload) });
    wake();
  });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));

  /** Returns the next frame that fits; those before it are passed over. */
  async function read(fits: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      for (let frame = frames.shift(); frame !== undefined; frame = frames.shift()) if (fits(frame)) return frame;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  return {
    closed,
    start: () => socket.write(encodeClientPreface()),
    ackSettings: () => socket.write(encodeFrame(FRAME_TYPES.settings, FRAME_FLAGS.ack, 0, Buffer.alloc(0))),
    request: (stream: number) =>
      socket.write(encodeFrame(FRAME_TYPES.headers, FRAME_FLAGS.endHeaders | FRAME_FLAGS.endStream, stream, GET_QUOTE)),
    /** Answers a PING, and resolves when the server has read that: it has answered the next one. */
    async answer({ payload }: Frame) {
      socket.write(encodeFrame(FRAME_TYPES.ping, FRAME_FLAGS.ack, 0, payload));
      socket.write(encodeFrame(FRAME_TYPES.ping, 0, 0, Buffer.alloc(8)));
      await read(({ type, flags }) => isPingAck(type, flags));
    },
    readSettings: () => read(({ type, flags }) => type === FRAME_TYPES.settings && flags === 0),
    readPing: () => read(({ type, flags }) => type === FRAME_TYPES.ping && flags === 0),
    /** Returns the last stream of the next GOAWAY. */
    readGoAway: async () => (await read(({ type }) => type === FRAME_TYPES.goAway)).payload.readUInt32BE(0),
    /** Returns the first field of the headers of a response, as a byte of HPACK. */
    async readStatus(id: number) {
      const { payload } = await read(({ type, stream }) => type === FRAME_TYPES.headers && stream === id);
      // The first headers begin with the new size of the table, 0.
      return payload.find((byte) => byte !== TABLE_SIZE_0);
    },
  };
}

const STATUS_200 = 0x88;
const TABLE_SIZE_0 = 0x20;

async function openSession(port: number) {
  const connection = await openConnection(port);
  connection.start();
  await connection.readSettings();
  connection.ackSettings();
  connection.request(1);
  await connection.readStatus(1);
  return connection;
}

test("serves streams that a peer sends before it has read the notice, however late", async () => {
  const { server, port } = await startTestServer();
  const connection = await openSession(port);
  const closing = server.close(60_000);
  expect(await connection.readGoAway()).toBe(MAX_STREAM_ID);
  const ping = await connection.readPing();
  // Long after the time for a peer that has read it.
  await vi.advanceTimersByTimeAsync(4_000);
  connection.request(3);
  connection.request(5);
  expect(await connection.readStatus(3)).toBe(STATUS_200);
  expect(await connection.readStatus(5)).toBe(STATUS_200);
  await connection.answer(ping);
  await vi.advanceTimersByTimeAsync(100);
  expect(await connection.readGoAway()).toBe(5);
  await Promise.all([closing, connection.closed]);
});

test("serves such streams beside one that is open", async () => {
  const { opened, open } = createLatch();
  let calls = 0;
  const { server, port } = await startTestServer({
    getQuote: async (request, context) => {
      calls += 1;
      if (calls === 2) await opened;
      return echoQuote(request, context);
    },
  });
  const connection = await openSession(port);
  connection.request(3);
  const closing = server.close(60_000);
  const ping = await connection.readPing();
  connection.request(5);
  expect(await connection.readStatus(5)).toBe(STATUS_200);
  await connection.answer(ping);
  open();
  expect(await connection.readStatus(3)).toBe(STATUS_200);
  await vi.advanceTimersByTimeAsync(100);
  await Promise.all([closing, connection.closed]);
});

test("serves the first stream of a connection that was accepted before", async () => {
  const { server, port } = await startTestServer();
  const connection = await openConnection(port);
  await vi.waitUntil(() => server.getLoad().connections === 1, { timeout: 60_000 });
  const closing = server.close(60_000);
  connection.start();
  connection.request(1);
  await connection.readSettings();
  expect(await connection.readStatus(1)).toBe(STATUS_200);
  connection.ackSettings();
  expect(await connection.readGoAway()).toBe(MAX_STREAM_ID);
  await connection.answer(await connection.readPing());
  await vi.advanceTimersByTimeAsync(100);
  await Promise.all([closing, connection.closed]);
});

test("waits no longer than five seconds for a peer that does not answer", async () => {
  const { server, port } = await startTestServer();
  const connection = await openSession(port);
  const closing = server.close(60_000);
  await connection.readPing();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await connection.readGoAway()).toBe(1);
  await Promise.all([closing, connection.closed]);
});
