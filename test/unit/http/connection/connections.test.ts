import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { openRawSocket, sendHttp1, sendHttp2, sendHttp2On } from "../support/raw-client.js";
import { echoQuote, QUOTE, startTestServer } from "../support/test-server.js";

const quote = (id: string): string => `GET /v1/quote?amount=1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n\r\n`;

/** Sends bytes on one connection and returns everything received until it ends. */
async function sendAndCollect(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.on("error", () => {});
  socket.write(bytes);
  await new Promise((resolve) => socket.once("close", resolve));
  return text;
}

/** Serves quotes that wait until the test calls `release`. */
async function startSlowServer(limits = {}) {
  let running = 0;
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const server = await startTestServer({
    limits,
    getQuote: async (request, context) => {
      running += 1;
      await released;
      return echoQuote(request, context);
    },
  });
  return { ...server, release, running: () => running };
}

test("logs a HEAD request over HTTP/2 as ok", async () => {
  const { port, accessLines, waitForAccessLines } = await startTestServer();
  expect((await sendHttp2(port, "/v1/quote?amount=1", { method: "HEAD" })).status).toBe(200);
  await waitForAccessLines(1);
  expect(accessLines).toMatchObject([{ operation: QUOTE, code: "ok" }]);
});

test.each([
  ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["invalid HTTP", "no request\r\n\r\n"],
  ["a malformed chunk", "POST /v1/quote HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
])("%s after a request does not suppress its response", async (_, suffix) => {
  const { port, release } = await startSlowServer();
  const received = sendAndCollect(port, quote("first") + suffix);
  setTimeout(release, 100);
  const text = await received;
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\nx-request-id: first\r\n/);
});

test.each([
  ["an incomplete request", "GET /v1/quote HTTP/1.1\r\nHost"],
  ["an incomplete HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM"],
  ["an HTTP/2 preface without a request", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"],
])("%s does not delay the shutdown", async (_, bytes) => {
  const { port, server } = await startTestServer();
  const ended = sendAndCollect(port, bytes);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const started = performance.now();
  await server.close(600_000);
  expect(performance.now() - started).toBeLessThan(60_000);
  await ended;
});

describe("when the connection limit is reached", () => {
  const LIMITS = { connections: 5 };
  const request = "GET /v1/available-routes HTTP/1.1\r\nHost: a\r\n\r\n";
  interface Caller {
    readonly socket: Socket;
    isClosed(): boolean;
    text(): string;
  }
  async function connectTo(port: number): Promise<Caller> {
    const socket = await openRawSocket(port);
    let isClosed = false;
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("close", () => {
      isClosed = true;
    });
    return { socket, isClosed: () => isClosed, text: () => text };
  }

  test("evicts the oldest idle connection, also over HTTP/2", async () => {
    const { port } = await startTestServer({ limits: LIMITS });
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    expect((await sendHttp2On(session, "/v1/quote?amount=1")).status).toBe(200);
    const callers: Caller[] = [];
    for (let index = 0; index < 4; index++) callers.push(await connectTo(port));
    expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
    await expect.poll(() => session.closed).toBe(true);
    expect(callers.map(({ isClosed }) => isClosed())).toEqual([false, false, false, false]);
    await connectTo(port);
    await connectTo(port);
    await expect.poll(() => callers[0]?.isClosed()).toBe(true);
    for (const { socket } of callers) socket.destroy();
  });

  test("keeps busy connections and closes a new one of the same caller", async () => {
    const { port, release, running } = await startSlowServer(LIMITS);
    const busy: Caller[] = [];
    for (let index = 0; index < 5; index++) {
      const caller = await connectTo(port);
      caller.socket.write(quote(`r${index}`));
      busy.push(caller);
    }
    await expect.poll(running).toBe(5);
    const newcomer = await connectTo(port);
    newcomer.socket.write(request);
    await expect.poll(newcomer.isClosed).toBe(true);
    expect(newcomer.text()).toBe("");
    release();
    for (const { text } of busy) await expect.poll(text).toContain("200 OK");
    for (const { socket } of busy) socket.destroy();
  });
});
