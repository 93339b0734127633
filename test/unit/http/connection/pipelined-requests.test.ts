import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { collectText, openRawSocket, sendHttp1 } from "../support/raw-client.js";
import { QUOTE_PATH, startHoldingServer, startTestServer } from "../support/test-server.js";

const quote = (amount: number): string => `GET /v1/quote?amount=${amount} HTTP/1.1\r\nHost: a\r\n\r\n`;
const post = (amount: number): string => {
  const body = JSON.stringify({ amount: String(amount), note: "\r\n\r\n" }).replace(/,"note.*/, "}\r\n\r\n");
  const headers = `Host: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST ${QUOTE_PATH} HTTP/1.1\r\n${headers}\r\n\r\n${body}`;
};
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** Collects the amounts of the answers on a connection. */
function collectAmounts(socket: Socket): () => number[] {
  const text = collectText(socket);
  return () => [...text().matchAll(/"amountIn":\s?"(\d+)"/g)].map(([, amount]) => Number(amount));
}

describe.each([
  ["sends all at once", 0],
  ["sends one request first", 1],
])("a client that %s", (_, first) => {
  async function connectTo(port: number): Promise<Socket> {
    const socket = await openRawSocket(port);
    if (first === 0) return socket;
    // Its input is then read by Node's parser itself.
    socket.write("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(socket, "data");
    return socket;
  }

  test("and pipelines 300 requests gets all answers in order", async () => {
    const { port, server } = await startTestServer();
    const socket = await connectTo(port);
    const amounts = collectAmounts(socket);
    socket.write(range(300).map(quote).join(""));
    await expect.poll(amounts).toEqual(range(300));
    // The connection is as good as before.
    socket.write(quote(301));
    await expect.poll(amounts).toEqual(range(301));
    expect(server.getLoad().pipelinedRequests).toBe(0);
  });

  test("and pipelines requests with bodies, in pieces of any size, gets all answers in order", async () => {
    const { port } = await startTestServer();
    const socket = await connectTo(port);
    const amounts = collectAmounts(socket);
    const bytes = range(60)
      .map((amount) => (amount % 2 === 0 ? post(amount) : quote(amount)))
      .join("");
    for (let offset = 0, size = 1; offset < bytes.length; offset += size, size = (size * 7) % 1009) {
      socket.write(bytes.slice(offset, offset + size));
      if (offset % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await expect.poll(amounts).toEqual(range(60));
  });

  test("and closes its side after its requests gets all answers", async () => {
    const { port } = await startTestServer();
    const socket = await connectTo(port);
    const amounts = collectAmounts(socket);
    socket.end(range(100).map(quote).join(""));
    await once(socket, "end");
    expect(amounts()).toEqual(range(100));
  });
});

test("a connection has at most eight unanswered requests, and reads no further", async () => {
  const { port, server, release, started } = await startHoldingServer();
  const socket = await openRawSocket(port);
  const amounts = collectAmounts(socket);
  socket.write(range(1000).map(quote).join(""));
  await expect.poll(started).toBe(8);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(started()).toBe(8);
  expect(server.getLoad()).toMatchObject({ pipelinedRequests: 7, requests: 8 });
  release();
  await expect.poll(amounts).toEqual(range(1000));
  expect(server.getLoad()).toMatchObject({ pipelinedRequests: 0, requests: 0 });
});

test("all connections together have a limited number of pipelined requests, and each has one request", async () => {
  const { port, server, release, started } = await startHoldingServer({ limits: { totalPipelinedRequests: 10 } });
  const sockets = await Promise.all(range(5).map(() => openRawSocket(port)));
  const counts = sockets.map(collectAmounts);
  for (const socket of sockets) socket.write(range(20).map(quote).join(""));
  await expect.poll(started).toBe(15);
  expect(server.getLoad().pipelinedRequests).toBe(10);
  release();
  for (const amounts of counts) await expect.poll(amounts).toEqual(range(20));
});

test("a connection that closes gives its pipelined requests back", async () => {
  const { port, server, started, release } = await startHoldingServer();
  const socket = await openRawSocket(port);
  socket.write(range(50).map(quote).join(""));
  await expect.poll(started).toBe(8);
  socket.resetAndDestroy();
  // A connection that is not read shows its end when its first response is written.
  release();
  await expect.poll(() => server.getLoad()).toMatchObject({ pipelinedRequests: 0, requests: 0, connections: 0 });
});

test("a flood of pipelined requests on many connections does not delay others", async () => {
  const { port } = await startTestServer();
  const sockets = await Promise.all(range(100).map(() => openRawSocket(port)));
  let answers = 0;
  for (const socket of sockets) {
    socket.on("data", (chunk: Buffer) => (answers += chunk.toString().split("200 OK").length - 1));
    socket.write(range(249).map(quote).join(""));
  }
  expect((await sendHttp1(port, "/v1/available-routes")).status).toBe(200);
  // Before most of the flood, which was sent first, is answered.
  expect(answers).toBeLessThan((100 * 249) / 2);
  await expect.poll(() => answers, { timeout: 60_000 }).toBe(100 * 249);
});

test("malformed input after pipelined requests leaves their answers intact and ends the connection", async () => {
  const { port, accessLines } = await startTestServer();
  const socket = await openRawSocket(port);
  const amounts = collectAmounts(socket);
  socket.write(`${range(20).map(quote).join("")}\x01\x02\r\n\r\n${quote(21)}`);
  await once(socket, "close");
  expect(amounts()).toEqual(range(20));
  expect(accessLines).toHaveLength(20);
});
