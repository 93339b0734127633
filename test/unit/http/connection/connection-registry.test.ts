import { EventEmitter } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { createConnectionRegistry } from "../../../../src/http/connection/connection-registry.js";
import { openRawSocket, sendHttp1, sendHttp2, sendHttp2On } from "../support/raw-client.js";
import { echoQuote, QUOTE, startTestServer } from "../support/test-server.js";

const quote = (id: string): string => `GET /v1/quote?amount=1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n\r\n`;

/** Sends bytes on one connection and returns everything received until it ends. */
async function exchange(port: number, bytes: string): Promise<string> {
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

/** Serves quotes that wait for their release. */
async function startSlowServer(limits = {}) {
  let running = 0;
  let letGo = (): void => {};
  const wait = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const server = await startTestServer({
    limits,
    getQuote: async (request, context) => {
      running += 1;
      await wait;
      return echoQuote(request, context);
    },
  });
  return { ...server, letGo, running: () => running };
}

test("a HEAD request over HTTP/2 is logged as answered", async () => {
  const { port, accessLines, waitForAccessLines } = await startTestServer();
  expect((await sendHttp2(port, "/v1/quote?amount=1", { method: "HEAD" })).status).toBe(200);
  await waitForAccessLines(1);
  expect(accessLines).toMatchObject([{ operation: QUOTE, code: "ok" }]);
});

test("one HTTP/1.1 connection has at most as many pending requests as one HTTP/2 connection", async () => {
  const { port, running, waitForAccessLines, letGo } = await startSlowServer({ concurrentStreams: 20 });
  const burst = Array.from({ length: 2000 }, (_, index) => quote(`r${index}`)).join("");
  expect(await exchange(port, burst)).toBe("");
  await waitForAccessLines(20);
  expect(running()).toBe(20);
  letGo();
});

test("a caller may wait for a response longer than the stall timeout", async () => {
  const { url, letGo } = await startSlowServer({ stallMs: 100 });
  const answer = fetch(`${url}/v1/quote?amount=1`);
  setTimeout(letGo, 600);
  expect((await answer).status).toBe(200);
});

test.each([
  ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["bytes that are no request", "no request\r\n\r\n"],
  ["a body that breaks", "POST /v1/quote HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
])("%s after a request does not take its response", async (_, after) => {
  const { port, letGo } = await startSlowServer();
  const answers = exchange(port, quote("first") + after);
  setTimeout(letGo, 100);
  const text = await answers;
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\nx-request-id: first\r\n/);
});

test.each([
  ["half a request", "GET /v1/quote HTTP/1.1\r\nHost"],
  ["half a preface", "PRI * HTTP/2.0\r\n\r\nSM"],
  ["a preface and no more", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"],
])("%s does not delay the shutdown", async (_, bytes) => {
  const { port, server } = await startTestServer();
  const ended = exchange(port, bytes);
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

  test("the oldest idle connection is evicted, of HTTP/2 too", async () => {
    const { port } = await startTestServer({ limits: LIMITS });
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    expect((await sendHttp2On(session, "/v1/quote?amount=1")).status).toBe(200);
    const own: Caller[] = [];
    for (let index = 0; index < 4; index++) own.push(await connectTo(port));
    expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
    await expect.poll(() => session.closed).toBe(true);
    expect(own.map(({ isClosed }) => isClosed())).toEqual([false, false, false, false]);
    await connectTo(port);
    await connectTo(port);
    await expect.poll(() => own[0]?.isClosed()).toBe(true);
    for (const { socket } of own) socket.destroy();
  });

  test("busy connections stay, and a newcomer of the same caller is closed", async () => {
    const { port, letGo, running } = await startSlowServer(LIMITS);
    const busy: Caller[] = [];
    for (let index = 0; index < 5; index++) {
      const one = await connectTo(port);
      one.socket.write(quote(`r${index}`));
      busy.push(one);
    }
    await expect.poll(running).toBe(5);
    const late = await connectTo(port);
    late.socket.write(request);
    await expect.poll(late.isClosed).toBe(true);
    expect(late.text()).toBe("");
    letGo();
    for (const each of busy) await expect.poll(each.text).toContain("200 OK");
    for (const { socket } of busy) socket.destroy();
  });

  test("another caller is admitted at the expense of the largest holder", () => {
    const cut: string[] = [];
    const newSocket = (name: string, remoteAddress: string): Socket =>
      Object.assign(new EventEmitter(), { remoteAddress, destroy: () => cut.push(name) }) as unknown as Socket;
    const all = createConnectionRegistry(5, () => false);
    for (const name of ["a1", "a2", "a3", "a4"]) expect(all.tryAdd(newSocket(name, "192.0.2.1"))).toBe(true);
    expect(all.tryAdd(newSocket("b1", "192.0.2.2"))).toBe(true);
    // All are busy: a newcomer replaces a connection of a caller with more than twice as many, until that would be
    // unfair.
    expect(all.tryAdd(newSocket("b2", "192.0.2.2"))).toBe(true);
    expect(cut).toEqual(["a1"]);
    expect(all.tryAdd(newSocket("b3", "192.0.2.2"))).toBe(false);
    expect(all.tryAdd(newSocket("a5", "192.0.2.1"))).toBe(false);
    expect(all.tryAdd(newSocket("c1", "2001:db8::1"))).toBe(true);
    expect(cut).toEqual(["a1", "b3", "a5", "a2"]);
    expect([...all]).toHaveLength(5);
  });

  test("an idle connection is found behind any number of busy ones", () => {
    const cut: Socket[] = [];
    const newSocket = (): Socket => {
      const socket: Socket = Object.assign(new EventEmitter(), {
        remoteAddress: "192.0.2.1",
        destroy: () => cut.push(socket),
      }) as unknown as Socket;
      return socket;
    };
    const busy = new Set(Array.from({ length: 150 }, newSocket));
    const all = createConnectionRegistry(151, (socket) => !busy.has(socket));
    const idle = newSocket();
    for (const socket of [...busy, idle]) all.tryAdd(socket);
    const added = Array.from({ length: 3 }, () => all.tryAdd(newSocket()));
    expect(added.at(-1)).toBe(true);
    expect(cut).toContain(idle);
    expect([...all].filter((socket) => busy.has(socket))).toHaveLength(150);
  });
});
