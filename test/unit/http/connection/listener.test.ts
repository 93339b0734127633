import { once } from "node:events";
import { request } from "node:http";
import type { IncomingHttpHeaders } from "node:http2";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_TYPES,
} from "../../../../bench/support/http2-frames.js";
import { HttpServer } from "../../../../src/http/server.js";
import { callQuote, createGrpcClient } from "../support/grpc-client.js";
import { encodeReset } from "../support/http2-peer.js";
import {
  collectText,
  openHttp2,
  openRawSocket,
  postJson,
  sendHttp1,
  sendHttp2On,
  sendRawBytes,
} from "../support/raw-client.js";
import {
  createLargeQuote,
  LONGEST_TIMER_MS,
  QUOTE_PATH,
  startHoldingServer,
  startTestServer,
} from "../support/test-server.js";

const ROUTES = "GET /v1/available-routes HTTP/1.1\r\nHost: x\r\n\r\n";
const POST = `POST ${QUOTE_PATH} HTTP/1.1\r\nHost: x\r\n`;
const GET = "GET /v1/quote?amount=1 HTTP/1.1\r\nHost: x\r\n";

/** Returns what the server sends before it closes the connection, and after how many milliseconds. */
async function closedAfter(port: number, bytes: string | Buffer): Promise<{ text: string; ms: number }> {
  const start = performance.now();
  return { text: await sendRawBytes(port, bytes), ms: performance.now() - start };
}

describe("the protocol of a connection", () => {
  test("is detected from first bytes that arrive one by one", async () => {
    const { port } = await startTestServer();
    const rest = " /v1/quote?amount=7 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const text = await sendRawBytes(port, "G", "E", "T", rest);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n.*"amountIn":"7"/s);
  });

  test("is HTTP/2 after a preface in pieces", async () => {
    const { port } = await startTestServer();
    const socket = await openRawSocket(port);
    for (const part of ["P", "RI", " * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\0\0\0\x04\0\0\0\0\0"]) {
      socket.write(part, "latin1");
      await sleep(5);
    }
    const [frame] = (await once(socket, "data")) as [Buffer];
    expect(frame.readUInt8(3)).toBe(4);
  });

  test("is rejected if it only begins like HTTP/2", async () => {
    const { port } = await startTestServer();
    await sendRawBytes(port, "PRINT / HTTP/1.1\r\nHost: x\r\n\r\n");
    expect((await sendHttp1(port, "/v1/quote")).status).toBe(200);
  });

  test("stays HTTP/1.1 if the caller offers an upgrade to h2c", async () => {
    const { port } = await startTestServer();
    const upgrade =
      "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    expect(await sendRawBytes(port, `${GET}${upgrade}`)).toMatch(/^HTTP\/1\.1 200 OK/);
  });
});

describe("a slow or silent connection is closed", () => {
  const limits = { headersMs: 300, requestMs: 600, keepAliveMs: 300, idleMs: 300 };

  test.each([
    ["without any bytes", ""],
    ["after too few bytes to detect the protocol", "GE"],
  ])("%s", async (_, bytes) => {
    const { port } = await startTestServer({ limits });
    const { text, ms } = await closedAfter(port, bytes);
    expect(text).toBe("");
    expect(ms).toBeGreaterThan(250);
    expect(ms).toBeLessThan(60_000);
  });

  test.each([
    ["in the middle of the headers", "GET / HTTP/1.1\r\nHost"],
    ["in the middle of the body", `${POST}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{`],
  ])("%s", async (_, bytes) => {
    const { port, logged } = await startTestServer({ limits: { ...limits, requestMs: 300 } });
    const { text, ms } = await closedAfter(port, bytes);
    expect(text).toMatch(/^HTTP\/1\.1 40[08] .*"code":"invalid_argument"/s);
    expect(ms).toBeLessThan(60_000);
    expect((await logged(1)).map(({ code }) => code)).toEqual(["invalid_argument"]);
  });

  test("between two requests of HTTP/1.1", async () => {
    const { port } = await startTestServer({ limits });
    const { text, ms } = await closedAfter(port, `${GET}\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK/);
    // A second after the time that it announces.
    expect(ms).toBeGreaterThan(limits.keepAliveMs + 900);
    expect(ms).toBeLessThan(60_000);
  });

  test("not between two requests of HTTP/1.1 while the second may be on its way", async () => {
    const setTimeoutOfSockets = vi.spyOn(Socket.prototype, "setTimeout");
    const { port } = await startTestServer({ limits: { ...limits, keepAliveMs: 50 } });
    const socket = await openRawSocket(port);
    const read = async () => ((await once(socket, "data")) as [Buffer])[0].toString();
    const isInGrace = () => setTimeoutOfSockets.mock.calls.some(([ms]) => ms === 1000);
    socket.write(`${GET}\r\n`);
    expect(await read()).toMatch(/^HTTP\/1\.1 200 OK/);
    await expect.poll(isInGrace, { interval: 1 }).toBe(true);
    socket.write(`${GET}\r\n`);
    expect(await read()).toMatch(/^HTTP\/1\.1 200 OK/);
    setTimeoutOfSockets.mockRestore();
  });

  test("between two requests of HTTP/2, but not during a request", async () => {
    // A busy machine may take as long until the request begins.
    const idleMs = 1_500;
    const { port, release } = await startHoldingServer({ limits: { ...limits, idleMs } });
    const session = openHttp2(port);
    const closed = once(session, "close");
    const running = sendHttp2On(session, "/v1/quote?amount=1");
    await sleep(2 * idleMs);
    expect(session.destroyed).toBe(false);
    const start = performance.now();
    release();
    expect((await running).status).toBe(200);
    await closed;
    expect(performance.now() - start).toBeGreaterThan(idleMs - 50);
  });

  test("without any request over HTTP/2", async () => {
    const { port } = await startTestServer({ limits });
    const session = openHttp2(port);
    await once(session, "close");
    expect(session.destroyed).toBe(true);
  });
});

describe("invalid HTTP is rejected with a JSON error and logged", () => {
  test.each([
    ["bytes of another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS\r\n\r\n", 400],
    ["an invalid request line", "???\r\n\r\n", 400],
    ["a header without a name", `${GET}: x\r\n\r\n`, 400],
    ["an unknown HTTP version", "GET / HTTP/9.9\r\nHost: x\r\n\r\n", 400],
    ["long headers", `${GET}X: ${"x".repeat(17 * 1024)}\r\n\r\n`, 431],
    ["many headers", `${GET}${"Name: value\r\n".repeat(2000)}\r\n`, 431],
    ["a URL longer than the header limit", `GET /?a=${"1".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414],
    ["a tunnel", "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", 405],
    ["a malformed chunk", `${POST}Content-Type: application/proto\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`, 400],
  ])("%s", async (_, bytes, status) => {
    const { port, internalErrors, logged } = await startTestServer();
    const text = await sendRawBytes(port, Buffer.from(bytes, "latin1"));
    const [head = "", body = ""] = text.split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
    const lines = ["content-type: application/json; charset=utf-8", `content-length: ${body.length}`];
    lines.push("cache-control: no-store", "access-control-allow-origin: \\*", "connection: close", "x-request-id: .+");
    for (const line of lines) expect(head).toMatch(new RegExp(`\r\n${line}`, "i"));
    expect(JSON.parse(body)).toMatchObject({ error: expect.any(String) });
    expect(await logged(1)).toMatchObject([{ code: status === 405 ? "unimplemented" : "invalid_argument" }]);
    expect(internalErrors).toEqual([]);
  });

  test("ignores unknown expectations", async () => {
    const { port } = await startTestServer();
    expect(await sendRawBytes(port, `${GET}Expect: miracles\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 200 OK/,
    );
  });
});

const createServer = (port: number) =>
  new HttpServer({
    host: "127.0.0.1",
    port,
    services: [],
    maxTimeoutMs: LONGEST_TIMER_MS,
    log: () => {},
    onInternalError: () => {},
  });

test("listen rejects if the address is in use", async () => {
  const { port } = await startTestServer();
  await expect(createServer(port).listen()).rejects.toThrow("EADDRINUSE");
});

describe("closing", () => {
  test("finishes running requests on every protocol and accepts no new ones", async () => {
    const { server, port, release, started, accessLines } = await startHoldingServer();
    const path = "/v1/quote?amount=1";
    const grpc = createGrpcClient(port);
    const session = openHttp2(port);
    const keepAlive = await openRawSocket(port);
    keepAlive.write(`${GET}\r\n`);
    const idle = await openRawSocket(port);
    idle.write(ROUTES);
    await once(idle, "data");
    const undecided = await openRawSocket(port);
    const twenty = <T>(send: () => T): T[] => Array.from({ length: 20 }, send);
    const all = [
      ...twenty(() => sendHttp1(port, path)),
      ...twenty(() => sendHttp2On(session, path)),
      ...twenty(() => sendHttp1(port, QUOTE_PATH, postJson("{}"))),
    ];
    const calls = twenty(() => callQuote(grpc, Buffer.alloc(0)));
    await expect.poll(started).toBe(81);

    const closing = server.close(5000);
    await Promise.all([once(idle, "close"), once(undecided, "close")]);
    await expect(sendHttp1(port, path)).rejects.toThrow("ECONNREFUSED");
    release();
    for (const answer of await Promise.all(all)) expect(answer.status).toBe(200);
    for (const { error } of await Promise.all(calls)) expect(error).toBeUndefined();
    const [chunk] = (await once(keepAlive, "data")) as [Buffer];
    expect(chunk.toString()).toMatch(/^HTTP\/1\.1 200 OK.*\r\nconnection: close\r\n/is);
    await closing;
    expect(accessLines).toHaveLength(82);
    expect(accessLines.every(({ code }) => code === "ok")).toBe(true);
  });

  test("lets a slow reader receive the rest of a response", async () => {
    const bytes = 30_000_000;
    let calls = 0;
    const { server, port, accessLines } = await startTestServer({
      async getQuote() {
        calls += 1;
        return createLargeQuote(bytes);
      },
    });
    const slow = await openRawSocket(port);
    slow.pause();
    slow.write(`${GET}\r\n`);
    const idle = await openRawSocket(port);
    idle.write(ROUTES);
    await once(idle, "data");
    await expect.poll(() => calls).toBe(1);
    const closing = server.close(600_000);
    await sleep(100);
    let size = 0;
    slow.on("data", (chunk: Buffer) => {
      size += chunk.length;
    });
    slow.resume();
    await Promise.all([closing, once(slow, "close"), once(idle, "close")]);
    expect(size).toBeGreaterThan(bytes);
    expect(accessLines.map(({ code }) => code)).toEqual(["ok", "ok"]);
  });

  test("waits no longer than the grace period", async () => {
    const { server, port, started, accessLines } = await startHoldingServer();
    const session = openHttp2(port);
    const silent = await openRawSocket(port);
    silent.write("GET / HTT");
    const failing = [
      sendHttp1(port, "/v1/quote"),
      sendHttp2On(session, "/v1/quote"),
      sendHttp1(port, QUOTE_PATH, postJson("{}")),
    ].map((answer) => expect(answer).rejects.toThrow());
    await expect.poll(started).toBe(3);
    const start = performance.now();
    await server.close(200);
    const ms = performance.now() - start;
    expect(ms).toBeGreaterThan(150);
    expect(ms).toBeLessThan(60_000);
    await Promise.all(failing);
    expect(accessLines.map(({ code }) => code)).toEqual(["canceled", "canceled", "canceled"]);
  });

  test("works twice, and before listening", async () => {
    const { server } = await startTestServer();
    await Promise.all([server.close(100), server.close(100)]);
    await server.close(0);
    await createServer(0).close(100);
  });
});

test("sends a large response to its end although CONNECT follows its request, and closes the connection then", async () => {
  const { port, server } = await startTestServer({ fastPaths: false, getQuote: () => createLargeQuote(300_000) });
  const post = `${POST}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
  const socket = await openRawSocket(port);
  const received = collectText(socket);
  // In one chunk: the request is not answered yet.
  socket.write(`${post}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(socket, "end");
  expect(received()).toContain("9".repeat(300_000));
  await expect.poll(() => server.getLoad()).toMatchObject({ requests: 0, connections: 0 });
});

test("grants 100-continue", async () => {
  const { port } = await startTestServer();
  const headers = { expect: "100-continue", "content-type": "application/json", "content-length": 2 };
  const req = request({ port, path: QUOTE_PATH, method: "POST", headers, agent: false });
  req.flushHeaders();
  await once(req, "continue");
  req.end("{}");
  const [res] = (await once(req, "response")) as [{ statusCode: number; resume(): void }];
  res.resume();
  expect(res.statusCode).toBe(200);
});

test("grants 100-continue over HTTP/2", async () => {
  const { port } = await startTestServer();
  const session = openHttp2(port);
  const headers = { "content-type": "application/json", expect: "100-continue" };
  const stream = session.request({ ":method": "POST", ":path": QUOTE_PATH, ...headers });
  await once(stream, "continue");
  stream.end("{}");
  const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
  expect(head[":status"]).toBe(200);
});

/** A request over HTTP/2 that is reset in the same chunk: it is gone before Node.js announces it. */
function encodeResetRequest(path: string, headers: readonly (readonly [string, string])[], body: readonly Buffer[]) {
  const pseudoHeaders = Object.entries({ ":method": "POST", ":scheme": "http", ":path": path, ":authority": "x" });
  const { first } = encodeHeaders([...pseudoHeaders, ...headers]);
  return Buffer.concat([encodeClientPreface(), encodeFrame(FRAME_TYPES.headers, 4, 1, first), ...body, encodeReset(1)]);
}

const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const EXPECT = [
  ["content-type", "application/json"],
  ["expect", "100-continue"],
] as const;

// Node.js throws for the second and the third, outside of any handler: one such request would end the process.
test.each([
  ["a stream of requests", REFLECTION, [["content-type", "application/grpc"]] as const, []],
  ["a request that expects 100-continue", QUOTE_PATH, EXPECT, []],
  ["a part of its body", QUOTE_PATH, EXPECT, [encodeFrame(FRAME_TYPES.data, 0, 1, Buffer.from("{"))]],
])("survives and keeps nothing of %s that is reset with its headers", async (_, path, headers, body) => {
  const { port, server, logged } = await startTestServer();
  const socket = await openRawSocket(port);
  socket.write(encodeResetRequest(path, headers, body));
  expect(await logged(1)).toMatchObject([{ code: "canceled" }]);
  expect((await sendHttp1(port, "/v1/quote")).status).toBe(200);
  expect(server.getLoad().receivedBytes).toBe(0);
});

test("answers an HTTP/2 request without a path", async () => {
  const { port } = await startTestServer();
  const session = openHttp2(port);
  const stream = session.request({ ":method": "CONNECT", ":authority": "x:1" });
  const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
  expect(head[":status"]).toBe(404);
});
