import { connect } from "node:net";
import { expect, test } from "vitest";
import { http2 } from "./raw-client.js";
import { echoQuote, QUOTE, startServer } from "./running-server.js";

const quote = (id: string): string => `GET /v1/quote?amount=1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n\r\n`;

/** Sends bytes on one connection and gives all that comes back until it ends. */
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

/** Serves quotes that wait until they are let go. */
async function startSlowServer(limits = {}) {
  let running = 0;
  let letGo = (): void => {};
  const wait = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const server = await startServer({
    limits,
    getQuote: async (request, context) => {
      running += 1;
      await wait;
      return echoQuote(request, context);
    },
  });
  return { ...server, letGo, running: () => running };
}

test("a HEAD over HTTP/2 that is answered is logged as such", async () => {
  const { port, lines, logged } = await startServer();
  expect((await http2(port, "/v1/quote?amount=1", { method: "HEAD" })).status).toBe(200);
  await logged(1);
  expect(lines).toMatchObject([{ operation: QUOTE, code: "ok" }]);
});

test("one connection of HTTP/1.1 cannot have more requests waiting than one of HTTP/2", async () => {
  const { port, running, logged, letGo } = await startSlowServer({ concurrentStreams: 20 });
  const burst = Array.from({ length: 2000 }, (_, index) => quote(`r${index}`)).join("");
  expect(await exchange(port, burst)).toBe("");
  await logged(20);
  expect(running()).toBe(20);
  letGo();
});

test("who waits for an answer longer than one may leave it unread still gets it", async () => {
  const { url, letGo } = await startSlowServer({ stallMs: 100 });
  const answer = fetch(`${url}/v1/quote?amount=1`);
  setTimeout(letGo, 600);
  expect((await answer).status).toBe(200);
});

test.each([
  ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["bytes that are no request", "no request\r\n\r\n"],
  ["a body that breaks", "POST /v1/quote HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
])("%s behind a request is no answer to it", async (_, after) => {
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
])("%s does not hold up the end of the server", async (_, bytes) => {
  const { port, server } = await startServer();
  const ended = exchange(port, bytes);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const started = performance.now();
  await server.close(20_000);
  expect(performance.now() - started).toBeLessThan(5_000);
  await ended;
});
