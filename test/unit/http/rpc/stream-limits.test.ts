import { once } from "node:events";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openHttp2, openRawSocket, post, readStream, sendHttp1 } from "../support/raw-client.js";
import { describeOnBothPaths, startTestServer, type TestServerOptions } from "../support/test-server.js";

// Streaming calls are limited for each caller and in total, and release their place however they end.

const WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const EMPTY_MESSAGE = Buffer.alloc(5);
const DAY_MS = 24 * 60 * 60_000;
const CONNECT = "application/connect+json";
const JSON_MESSAGE = Buffer.from("\0\0\0\0\x02{}");

/** Limits of the fast path and of the general path. */
const limitsOf = (count: number) => ({ streamingCalls: count, generalStreamingCalls: count });

async function start(options: TestServerOptions = {}) {
  const server = await startTestServer({ trustProxy: true, ...options });
  const openCount = () => server.server.getLoad().streamingCalls;
  return { ...server, session: openHttp2(server.port), openCount };
}

interface StreamOptions {
  readonly path?: string;
  readonly type?: string;
  readonly message?: Buffer;
  readonly caller?: string;
  readonly headers?: Record<string, string>;
  readonly isOpenEnded?: boolean;
}

function open(session: ClientHttp2Session, options: StreamOptions = {}): ClientHttp2Stream {
  const { path = WATCH, type = "application/grpc", caller = "192.0.2.1" } = options;
  const stream = session.request({
    ...{ ":method": "POST", ":path": path, "content-type": type, "x-forwarded-for": caller },
    ...options.headers,
  });
  stream.on("error", () => {});
  stream.write(options.message ?? EMPTY_MESSAGE);
  if (!options.isOpenEnded) stream.end();
  return stream;
}

/** Returns the status of a call that ends. */
const statusOf = async (stream: ClientHttp2Stream) => (await readStream(stream)).fields["grpc-status"];

describeOnBothPaths(() => {
  describe("beyond its limit a stream is refused", () => {
    const grpc = { "grpc-status": "8", "retry-after": "5" };
    test.each([
      ["gRPC", "application/grpc", EMPTY_MESSAGE, grpc, /^$/],
      // In the headers if there is no body, otherwise at the end of the body.
      ["gRPC-Web", "application/grpc-web+proto", EMPTY_MESSAGE, {}, /^$|grpc-status: 8\r\n.*retry-after: 5\r\n/s],
      ["Connect", CONNECT, JSON_MESSAGE, { ":status": 200 }, /"code":"resource_exhausted".*"retry-after":\["5"\]/],
    ])("in the form of %s, with RATE_LIMITED and OVERLOADED", async (_, type, message, fields, body) => {
      const { session, openCount, logged } = await start({ limits: limitsOf(2) });
      open(session, { type, message, caller: "192.0.2.1" });
      await expect.poll(openCount).toBe(1);
      const ofCaller = await readStream(open(session, { type, message, caller: "192.0.2.1" }));
      open(session, { type, message, caller: "192.0.2.2" });
      await expect.poll(openCount).toBe(2);
      const ofProcess = await readStream(open(session, { type, message, caller: "192.0.2.3" }));
      for (const refused of [ofCaller, ofProcess]) {
        expect(refused.fields).toMatchObject(fields);
        expect(refused.body).toMatch(body);
        if (refused.body === "") expect(refused.fields).toMatchObject(grpc);
      }
      expect(await logged(2)).toMatchObject([
        { code: "resource_exhausted", reason: "RATE_LIMITED" },
        { code: "resource_exhausted", reason: "OVERLOADED" },
      ]);
      expect(openCount()).toBe(2);
    });

    test("if Connect's adapter serves it, by a limit of its own", async () => {
      const { session, openCount } = await start({ limits: { streamingCalls: 100, generalStreamingCalls: 2 } });
      open(session, { path: REFLECTION, isOpenEnded: true });
      await expect.poll(openCount).toBe(1);
      expect(await statusOf(open(session, { path: REFLECTION }))).toBe("8");
      expect(await statusOf(open(session, { headers: { "grpc-encoding": "gzip" } }))).toBe("8");
    });

    test("also over HTTP/1.1", async () => {
      const { port, session, openCount } = await start({ limits: limitsOf(2) });
      open(session, { caller: "127.0.0.1" });
      await expect.poll(openCount).toBe(1);
      const { status, body } = await sendHttp1(port, WATCH, post(CONNECT, JSON_MESSAGE));
      expect([status, body]).toEqual([200, expect.stringContaining("resource_exhausted")]);
    });
  });

  test("a flood of watches from one caller holds half of the places", async () => {
    const { session, openCount, logged } = await start({ limits: limitsOf(100) });
    for (let index = 0; index < 200; index += 1) open(session);
    await logged(150);
    expect(openCount()).toBe(50);
    // Another caller is still served.
    open(session, { caller: "192.0.2.2" });
    await expect.poll(openCount).toBe(51);
  });

  describe("a stream releases its place", () => {
    test.each([
      ["a watch", { path: WATCH }],
      ["reflection", { path: REFLECTION, isOpenEnded: true }],
    ])("when its caller resets %s", async (_, options) => {
      const { session, openCount } = await start();
      const streams = Array.from({ length: 20 }, () => open(session, options));
      await expect.poll(openCount).toBe(20);
      for (const stream of streams) stream.close(8);
      await expect.poll(openCount).toBe(0);
    });

    test("when its connection is lost", async () => {
      const { port, session, openCount } = await start();
      open(session);
      open(session, { path: REFLECTION, isOpenEnded: true });
      const socket = await openRawSocket(port);
      socket.write(`POST ${WATCH} HTTP/1.1\r\nHost: a\r\nContent-Type: ${CONNECT}\r\nContent-Length: 7\r\n\r\n`);
      socket.write(JSON_MESSAGE);
      await expect.poll(openCount).toBe(3);
      socket.destroy();
      await expect.poll(openCount).toBe(2);
      session.destroy();
      await expect.poll(openCount).toBe(0);
    });

    test("when its caller closes an HTTP/1.1 connection that sent its request in chunks", async () => {
      const { port, openCount } = await start();
      const socket = await openRawSocket(port);
      const headers = "Host: a\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked";
      socket.write(`POST ${WATCH} HTTP/1.1\r\n${headers}\r\n\r\n7\r\n${JSON_MESSAGE.toString("latin1")}\r\n0\r\n\r\n`);
      await expect.poll(openCount).toBe(1);
      socket.end();
      await expect.poll(openCount).toBe(0);
    });

    test("when its caller leaves it unread and resets it", async () => {
      const { port, openCount } = await start();
      const stream = open(openHttp2(port, { settings: { initialWindowSize: 0 } }));
      await expect.poll(openCount).toBe(1);
      stream.close(8);
      await expect.poll(openCount).toBe(0);
    });

    test("and its timer, when it ends long before its deadline", async () => {
      const { session, openCount } = await start();
      const [started, cleared] = [vi.spyOn(globalThis, "setTimeout"), vi.spyOn(globalThis, "clearTimeout")];
      onTestFinished(() => void vi.restoreAllMocks());
      const stream = open(session, { headers: { "grpc-timeout": "99999999H" } });
      await once(stream, "data");
      // All other timers are shorter.
      const timers = started.mock.results.filter((_, index) => Number(started.mock.calls[index]?.[1]) > DAY_MS);
      expect(timers).toHaveLength(1);
      expect(cleared).not.toHaveBeenCalledWith(timers[0]?.value);
      stream.close(8);
      await expect.poll(openCount).toBe(0);
      expect(cleared).toHaveBeenCalledWith(timers[0]?.value);
    });

    test("at its deadline", async () => {
      const { session, openCount } = await start();
      expect(await statusOf(open(session, { headers: { "grpc-timeout": "50m" } }))).toBe("4");
      await expect.poll(openCount).toBe(0);
    });

    test("when it ends by itself", async () => {
      const { session, openCount } = await start();
      expect(await statusOf(open(session, { path: REFLECTION }))).toBe("0");
      await expect.poll(openCount).toBe(0);
    });

    test("when the server drains", async () => {
      const { session, server, openCount } = await start();
      const statuses = Promise.all([
        statusOf(open(session)),
        statusOf(open(session, { path: REFLECTION, isOpenEnded: true })),
      ]);
      await expect.poll(openCount).toBe(2);
      const closing = server.close(600_000);
      expect(await statuses).toEqual(["0", "0"]);
      session.close();
      await closing;
      expect(openCount()).toBe(0);
    });
  });
});

test("on the fast path a stream counts from its headers on, and an invalid one no longer", async () => {
  const { session, openCount } = await start({ limits: { ...limitsOf(2), requestMs: 60_000 } });
  const unfinished = open(session, { message: EMPTY_MESSAGE.subarray(0, 2), isOpenEnded: true });
  await expect.poll(openCount).toBe(1);
  expect(await statusOf(open(session))).toBe("8");
  unfinished.end();
  expect(await statusOf(unfinished)).toBe("3");
  await expect.poll(openCount).toBe(0);
  open(session);
  await expect.poll(openCount).toBe(1);
});

describe("only the fast path counts a watch", () => {
  const connect = { type: CONNECT, message: JSON_MESSAGE };
  test.each([
    [
      "in gRPC of a client that accepts all encodings",
      { headers: { "grpc-accept-encoding": "identity,deflate,gzip" } },
    ],
    ["of Connect's Node.js client", { ...connect, headers: { "connect-accept-encoding": "gzip,br" } }],
    ["of a client of Connect that accepts brotli alone", { ...connect, headers: { "connect-accept-encoding": "br" } }],
  ])("%s", async (_, options) => {
    const { session, openCount } = await start({ limits: { streamingCalls: 2, generalStreamingCalls: 0 } });
    const stream = open(session, options);
    expect((await once(stream, "response"))[0]).toMatchObject({ ":status": 200 });
    await once(stream, "data");
    expect(openCount()).toBe(1);
  });
});

test("the general path alone counts a watch that the fast path hands over", async () => {
  const { session, openCount } = await start();
  // A name beyond ASCII.
  const message = Buffer.from('\0\0\0\0\x10{"service":"\u00fc"}');
  const stream = open(session, { type: CONNECT, message });
  expect((await once(stream, "data")).toString()).toContain("SERVICE_UNKNOWN");
  expect(openCount()).toBe(1);
});
