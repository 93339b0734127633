import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import {
  collectText,
  openHttp2,
  openRawSocket,
  sendHttp1,
  sendHttp2,
  sendHttp2On,
  sendRawBytes,
} from "../support/raw-client.js";
import { QUOTE, startHoldingServer, startTestServer } from "../support/test-server.js";

const quote = (id: string): string => `GET /v1/quote?amount=1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n\r\n`;

test("logs a HEAD request over HTTP/2 as ok", async () => {
  const { port, logged } = await startTestServer();
  expect((await sendHttp2(port, "/v1/quote?amount=1", { method: "HEAD" })).status).toBe(200);
  expect(await logged(1)).toMatchObject([{ operation: QUOTE, code: "ok" }]);
});

test.each([
  ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["invalid HTTP", "no request\r\n\r\n"],
  ["a malformed chunk", "POST /v1/quote HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
])("%s after a request does not suppress its response", async (_, suffix) => {
  const { port, release } = await startHoldingServer();
  const received = sendRawBytes(port, quote("first") + suffix);
  setTimeout(release, 100);
  expect(await received).toMatch(/^HTTP\/1\.1 200 OK\r\nx-request-id: first\r\n/);
});

test.each([
  ["an incomplete request", "GET /v1/quote HTTP/1.1\r\nHost"],
  ["an incomplete HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM"],
  ["an HTTP/2 preface without a request", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"],
])("%s does not delay the shutdown", async (_, bytes) => {
  const { port, server } = await startTestServer();
  const ended = sendRawBytes(port, bytes);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const started = performance.now();
  await server.close(600_000);
  expect(performance.now() - started).toBeLessThan(60_000);
  await ended;
});

describe("when the connection limit is reached", () => {
  const limits = { connections: 5 };

  test("evicts the oldest idle connection, also over HTTP/2", async () => {
    const { port } = await startTestServer({ limits });
    const session = openHttp2(port);
    expect((await sendHttp2On(session, "/v1/quote?amount=1")).status).toBe(200);
    const sockets: Socket[] = [];
    for (let index = 0; index < 4; index++) sockets.push((await openRawSocket(port)).resume());
    expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
    await expect.poll(() => session.closed).toBe(true);
    expect(sockets.map(({ closed }) => closed)).toEqual([false, false, false, false]);
    await openRawSocket(port);
    await openRawSocket(port);
    await expect.poll(() => sockets[0]?.closed).toBe(true);
  });

  test("keeps busy connections and closes a new one of the same caller", async () => {
    const { port, release, started } = await startHoldingServer({ limits });
    const texts: (() => string)[] = [];
    for (let index = 0; index < 5; index++) {
      const socket = await openRawSocket(port);
      socket.write(quote(`r${index}`));
      texts.push(collectText(socket));
    }
    await expect.poll(started).toBe(5);
    expect(await sendRawBytes(port, "GET /v1/available-routes HTTP/1.1\r\nHost: a\r\n\r\n")).toBe("");
    release();
    for (const text of texts) await expect.poll(text).toContain("200 OK");
  });
});
