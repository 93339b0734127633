import { once } from "node:events";
import { constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { encodeClientPreface, encodeFrame, FRAME_TYPES } from "../../../../bench/support/http2-frames.js";
import { ServiceError } from "../../../../src/errors.js";
import { encodeGet, openPeer, uint32 } from "../support/http2-peer.js";
import { openHttp2, openRawSocket, sendHttp1, sendHttp2, sendHttp2On } from "../support/raw-client.js";
import { transferEvent, WATCH_GET_PATH } from "../support/stream-contract.js";
import {
  createLargeQuote,
  echoQuote,
  QUOTE_PATH,
  startHoldingServer,
  startTestServer,
  type TestServer,
} from "../support/test-server.js";

/** Interval of the checks. Their clock moves only when a test advances it. */
const CHECK_INTERVAL_MS = 1000;
/** More than the system buffers for a connection whose peer does not read. */
const LARGE_BYTES = 12_000_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});

const path = "/v1/quote?amount=1";
const request = `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

/** Serves quotes of a given size, each with a body of its own. */
const startServer = (bytes: number, limits = {}) =>
  startTestServer({ limits, getQuote: async () => createLargeQuote(bytes) });

/** Opens a connection that never reads. */
async function openUnreadSocket(port: number, bytes: string | Buffer) {
  const socket = await openRawSocket(port);
  socket.pause();
  socket.write(bytes);
  return socket;
}

/** Opens an HTTP/2 session whose streams have no flow-control window. */
const openUnreadSession = (port: number) => openHttp2(port, { settings: { initialWindowSize: 0 } });

/** Lets checks pass until one has closed a connection because of its unsent bytes. */
const waitForCut = ({ server }: TestServer) =>
  expect
    .poll(() => {
      vi.advanceTimersByTime(CHECK_INTERVAL_MS);
      return server.getLoad().cuts.unsent_bytes;
    })
    .toBe(1);

describe("the budget of unsent bytes", () => {
  test("closes the connection that holds most, and leaves the others open", async () => {
    const started = await startServer(LARGE_BYTES, { unsentBytes: 2.5 * LARGE_BYTES });
    const { port, server, logged } = started;
    await openUnreadSocket(port, request);
    await openUnreadSocket(port, request.repeat(4));
    await expect.poll(() => server.getLoad().requests).toBe(5);
    await waitForCut(started);
    expect((await logged(4)).map(({ code }) => code)).toEqual(Array(4).fill("canceled"));
    expect(server.getLoad()).toMatchObject({ connections: 1, requests: 1 });
    vi.advanceTimersByTime(CHECK_INTERVAL_MS);
    expect(server.getLoad().unsentBytes).toBeLessThan(2.5 * LARGE_BYTES);
  });

  test("closes an HTTP/2 connection before the next regular check if many requests arrive", async () => {
    const { port, server } = await startServer(10_000, { unsentBytes: 1_000_000 });
    const sessions = [openUnreadSession(port), openUnreadSession(port)];
    const [sendFirst, sendSecond] = sessions.map((session) => () => {
      const streams = Array.from({ length: 200 }, () => session.request({ ":path": path }).on("error", () => {}));
      return Promise.all(streams.map((stream) => new Promise((resolve) => stream.once("response", resolve))));
    });
    await sendFirst?.();
    // Its responses wait to be sent.
    void sendSecond?.();
    await expect.poll(() => server.getLoad().cuts.unsent_bytes).toBeGreaterThan(0);
    expect((await sendHttp1(port, "/v1/available-routes")).status).toBe(200);
  });

  test("counts the body of a request that nobody reads", async () => {
    const started = await startTestServer({ limits: { unsentBytes: 100_000 } });
    const { port, server } = started;
    const session = openUnreadSession(port);
    for (let index = 0; index < 10; index++) {
      // The response that the method is not allowed cannot be sent.
      const stream = session.request({ ":path": path, ":method": "POST" });
      stream.on("error", () => {}).write(Buffer.alloc(64_000));
    }
    await expect.poll(() => server.getLoad().openStreams).toBe(10);
    await waitForCut(started);
  });

  test("does not count a body that all callers share", async () => {
    const response = Object.freeze(createLargeQuote(100_000));
    const { port, server } = await startTestServer({ limits: { unsentBytes: 300_000 }, getQuote: () => response });
    const session = openUnreadSession(port);
    for (let index = 0; index < 50; index++) session.request({ ":path": path }).on("error", () => {});
    await expect.poll(() => server.getLoad().openStreams).toBe(50);
    await sendHttp2On(session, "/v1/available-routes", { method: "HEAD" });
    vi.advanceTimersByTime(CHECK_INTERVAL_MS);
    expect(server.getLoad()).toMatchObject({ unsentBytes: 0, cuts: { unsent_bytes: 0 } });
  });
});

describe("a response has to be read in time", () => {
  const limits = { responseMs: 60_000 };
  /** For clients that answer no PINGs. */
  const patient = { ...limits, pingIntervalMs: Number.POSITIVE_INFINITY };
  /** Advances the clock of the checks in steps of one second. */
  async function advance(ms: number, onStep: () => void = () => {}): Promise<void> {
    for (let elapsed = 0; elapsed < ms; elapsed += CHECK_INTERVAL_MS) {
      vi.advanceTimersByTime(CHECK_INTERVAL_MS);
      onStep();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  test("over HTTP/1.1, however slowly its caller reads", async () => {
    const { port, server, logged } = await startServer(LARGE_BYTES, {
      ...limits,
      minBytesPerSecond: LARGE_BYTES,
    });
    const socket = await openUnreadSocket(port, request);
    await expect.poll(() => server.getLoad().requests).toBe(1);
    await expect.poll(() => socket.readableLength).toBeGreaterThan(0);
    await advance(59_000, () => socket.read(1));
    expect(server.getLoad()).toMatchObject({ connections: 1, cuts: { response_deadline: 0 } });
    await advance(3_000);
    expect(await logged(1)).toMatchObject([{ code: "canceled" }]);
    expect(server.getLoad()).toMatchObject({ connections: 0, cuts: { response_deadline: 1 } });
  });

  test("over HTTP/2, whatever PINGs and window updates of one byte arrive", async () => {
    const { port, server, logged } = await startServer(10_000, patient);
    const socket = await openPeer(port);
    const WINDOW_UPDATE = 8;
    const noWindow = Buffer.concat([Buffer.from([0, 4]), uint32(0)]);
    const settings = encodeFrame(FRAME_TYPES.settings, 0, 0, noWindow);
    const headers = encodeFrame(FRAME_TYPES.headers, 5, 1, encodeGet(path));
    socket.write(Buffer.concat([encodeClientPreface(), settings, headers]));
    const progress = Buffer.concat([
      encodeFrame(FRAME_TYPES.ping, 0, 0, Buffer.alloc(8)),
      encodeFrame(WINDOW_UPDATE, 0, 1, uint32(1)),
    ]);
    await expect.poll(() => server.getLoad().openStreams).toBe(1);
    await sleep(50);
    await advance(50_000, () => socket.write(progress));
    expect(server.getLoad().openStreams).toBe(1);
    await advance(15_000, () => socket.write(progress));
    expect((await logged(1))[0]).toMatchObject({ code: "canceled" });
    expect(server.getLoad()).toMatchObject({ openStreams: 0, cuts: { response_deadline: 1 } });
  });

  const grpc = { ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc", te: "trailers" };
  const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;
  test.each([
    ["a HEAD request that does not end", { ":method": "HEAD", ":path": path }, undefined, NGHTTP2_NO_ERROR],
    ["the trailers of a failed call", grpc, Buffer.alloc(5), NGHTTP2_CANCEL],
    ["the trailers of a malformed call", grpc, Buffer.alloc(0), NGHTTP2_CANCEL],
  ])("over HTTP/2, although no bytes of it wait: %s", async (_, headers, body, code) => {
    const { port, server } = await startTestServer({
      limits: patient,
      getQuote(request, context) {
        if (body !== undefined) throw new ServiceError("INVALID_PARAMETER", "no");
        return echoQuote(request, context);
      },
    });
    const session = openUnreadSession(port);
    const stream = session.request(headers, { endStream: false });
    stream.on("error", () => {});
    const closed = once(stream, "close");
    if (body !== undefined) stream.end(body);
    await once(stream, "response");
    await advance(59_000);
    expect(server.getLoad()).toMatchObject({ openStreams: 1, cuts: { response_deadline: 0 } });
    await advance(6_000);
    await closed;
    expect(stream.rstCode).toBe(code);
    expect(server.getLoad()).toMatchObject({ requests: 0, openStreams: 0, cuts: { response_deadline: 1 } });
  });

  test("and its stream is given up if its caller resets that without an error", async () => {
    const { port, server, logged } = await startServer(10_000, limits);
    const session = openUnreadSession(port);
    const stream = session.request({ ":path": path });
    stream.on("error", () => {});
    await once(stream, "response");
    stream.close(NGHTTP2_NO_ERROR);
    await new Promise((resolve) => session.ping(resolve));
    vi.advanceTimersByTime(CHECK_INTERVAL_MS);
    // Node.js 26 has given it up by now. Until then its bytes count.
    const { openStreams, unsentBytes } = server.getLoad();
    expect(unsentBytes > 0).toBe(openStreams > 0);
    await advance(4_000);
    expect(await logged(1)).toMatchObject([{ code: "canceled" }]);
    expect(server.getLoad()).toMatchObject({ requests: 0, openStreams: 0, cuts: { response_deadline: 0 } });
  });

  test("and a large one may take longer at the minimum rate", async () => {
    const { port, server, accessLines, logged } = await startServer(LARGE_BYTES, {
      ...limits,
      minBytesPerSecond: LARGE_BYTES / 300,
    });
    const socket = await openUnreadSocket(port, request);
    await expect.poll(() => socket.readableLength).toBeGreaterThan(0);
    await advance(200_000);
    expect(server.getLoad().connections).toBe(1);
    let received = 0;
    socket.on("data", (chunk: Buffer) => (received += chunk.length)).resume();
    await logged(1);
    await expect.poll(() => received).toBeGreaterThan(LARGE_BYTES);
    expect(accessLines).toMatchObject([{ code: "ok" }]);
  });

  test("but a streaming call goes on as long as its caller reads, however much waits again", async () => {
    const message = transferEvent("t", "a".repeat(1_500));
    const { port, server } = await startTestServer({
      limits: patient,
      // Always has more to tell.
      watch: (_, stream) => {
        const fill = (): void => {
          while (stream.isReady()) stream.send(message);
        };
        fill();
        return { onReady: fill, onDrain() {}, onEnd() {} };
      },
    });
    const session = openHttp2(port, { settings: { initialWindowSize: 1_000 } });
    const reader = session.request({ ":path": WATCH_GET_PATH });
    reader.on("error", () => {}).pause();
    await once(reader, "response");
    let received = 0;
    // Every 30 s it reads what lets the server go on.
    for (let round = 0; round < 10; round++) {
      const target = received + 20_000;
      reader.on("data", (chunk: Buffer) => {
        received += chunk.length;
        if (received >= target) reader.pause().removeAllListeners("data");
      });
      reader.resume();
      await expect.poll(() => received).toBeGreaterThanOrEqual(target);
      await advance(30_000);
    }
    expect(server.getLoad()).toMatchObject({ streamingCalls: 1, cuts: { response_deadline: 0 } });
    await advance(62_000);
    expect(server.getLoad().cuts.response_deadline).toBe(1);
  });

  test.each([false, true])(
    "but a caller may wait for it as long as it takes (HTTP/2 HEAD: %s)",
    async (isHttp2Head) => {
      const { port, server, release } = await startHoldingServer({ limits: patient });
      const response = isHttp2Head ? sendHttp2(port, path, { method: "HEAD" }) : sendHttp1(port, path);
      await expect.poll(() => server.getLoad().requests).toBe(1);
      await advance(120_000);
      release();
      expect((await response).status).toBe(200);
    },
  );
});

describe("the limit of open HTTP/2 streams", () => {
  test("refuses further streams of a caller, which may be retried, and counts them", async () => {
    const { port, server, started, release } = await startHoldingServer({ limits: { totalStreams: 40 } });
    const sessions = Array.from({ length: 2 }, () => openHttp2(port));
    const ends = sessions.flatMap((session) =>
      Array.from({ length: 15 }, () => {
        const stream = session.request({ ":path": path });
        stream.on("error", () => {}).resume();
        return new Promise<number | undefined>((resolve) => stream.once("close", () => resolve(stream.rstCode)));
      }),
    );
    await expect.poll(() => server.getLoad()).toMatchObject({ openStreams: 20, cuts: { open_streams: 10 } });
    await expect.poll(started).toBe(20);
    release();
    const codes = await Promise.all(ends);
    // NO_ERROR and REFUSED_STREAM.
    expect([codes.filter((code) => code === 0).length, codes.filter((code) => code === 7).length]).toEqual([20, 10]);
    expect(started()).toBe(20);
    expect(server.getLoad().openStreams).toBe(0);
  });

  test("ends a session of which it refuses every stream", async () => {
    const { port, server, logged } = await startTestServer({
      limits: { totalStreams: 2 },
      getQuote: () => new Promise(() => {}),
    });
    const [busy, refused] = [openHttp2(port), openHttp2(port)];
    busy.request({ ":path": path }).on("error", () => {});
    await expect.poll(() => server.getLoad().openStreams).toBe(1);
    const failed = new Promise((resolve) => refused.once("goaway", resolve));
    for (let index = 0; index < 100; index++) refused.request({ ":path": path }).on("error", () => {});
    expect(await failed).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect((await logged(1)).map(({ errorCode }) => errorCode)).toEqual(["REFUSED_STREAMS"]);
    expect(server.getLoad()).toMatchObject({ openStreams: 1, cuts: { open_streams: 33 } });
  });

  test("gives the places of a closed connection back, also those of unfinished requests", async () => {
    const { port, server } = await startTestServer({ getQuote: () => new Promise(() => {}) });
    const session = openHttp2(port);
    for (let index = 0; index < 20; index++) {
      const stream = session.request({ ":path": path, ":method": "POST" }, { endStream: false });
      stream.on("error", () => {});
      stream.write("unfinished");
    }
    await expect.poll(() => server.getLoad().openStreams).toBe(20);
    session.destroy();
    await expect.poll(() => server.getLoad().openStreams).toBe(0);
  });
});

test("an HTTP/2 connection gets the responses to many requests whose bodies end empty", async () => {
  const { port } = await startTestServer();
  const session = openHttp2(port);
  const headers = { ":method": "POST", ":path": "/hop.bridge.v1.BridgeService/ListAvailableRoutes" };
  for (const type of ["application/proto", "application/grpc-web+proto", "application/grpc"]) {
    const statuses = Array.from({ length: 40 }, async () => {
      const stream = session.request({ ...headers, "content-type": type, te: "trailers" });
      // An empty DATA frame ends the request, after its headers.
      stream.end(Buffer.alloc(0));
      const [head] = await once(stream, "response");
      stream.close();
      return head[":status"];
    });
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  }
});

test("an HTTP/2 client gets all of 1000 requests, 100 at a time", async () => {
  const { port, server } = await startTestServer();
  const session = openHttp2(port);
  for (let round = 0; round < 10; round++) {
    const responses = await Promise.all(Array.from({ length: 100 }, () => sendHttp2On(session, path)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  }
  expect(new Set(Object.values(server.getLoad().cuts))).toEqual(new Set([0]));
});
