import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import type { DynamicDocument } from "../../../../src/http/documents.js";
import { MetricsListener } from "../../../../src/observability/metrics/metrics-listener.js";

const listeners: MetricsListener[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
});

const text = (body: string): DynamicDocument => ({ status: 200, contentType: "text/plain; version=0.0.4", body });

function create(read: () => DynamicDocument | Promise<DynamicDocument>): MetricsListener {
  const documents = new Map([
    ["/metrics", read],
    ["/livez", () => text("alive")],
  ]);
  const listener = new MetricsListener("127.0.0.1", documents);
  listeners.push(listener);
  return listener;
}

const listen = (read: () => DynamicDocument | Promise<DynamicDocument>): Promise<string> => create(read).listen(0);

/** Opens a connection; `isClosed` tells whether the listener has closed it. */
async function openConnection(url: string) {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  let isClosed = false;
  socket.once("close", () => {
    isClosed = true;
  });
  await once(socket, "connect");
  return { socket, isClosed: () => isClosed };
}

test("serves GET and HEAD at the paths of its documents and nothing else", async () => {
  const url = await listen(() => text("some_metric 1\n"));
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([200, "some_metric 1\n"]);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4");
  expect((await fetch(`${url}?name[]=x`)).status).toBe(200);
  expect(await (await fetch(new URL("/livez", url))).text()).toBe("alive");
  const head = await fetch(url, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "14", ""]);
  const postResponse = await fetch(url, { method: "POST", body: "x" });
  expect([postResponse.status, postResponse.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  for (const path of ["", "/", "/metrics/", "/v1/quote", "/readyz"])
    expect((await fetch(url.replace("/metrics", path))).status).toBe(404);
});

test("passes on the status of a document", async () => {
  const url = await listen(() => ({ ...text("DRAINING"), status: 503 }));
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([503, "DRAINING"]);
});

test("returns 503 without details when a document fails", async () => {
  const url = await listen(() => Promise.reject(new Error("a secret")));
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([503, "/metrics is unavailable\n"]);
});

test("renders one document at a time for a connection: pipelined requests close it", async () => {
  const read = vi.fn(() => new Promise<DynamicDocument>(() => {}));
  const url = await listen(read);
  const callers = await Promise.all(Array.from({ length: 20 }, () => openConnection(url)));
  for (const { socket } of callers) socket.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(249));
  await vi.waitFor(() => expect(callers.every(({ isClosed }) => isClosed())).toBe(true), { timeout: 60_000 });
  expect(read).toHaveBeenCalledTimes(20);
});

test("serves several requests of one connection one after the other, without a timer left of them", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const url = await listen(() => text("1"));
  const { socket } = await openConnection(url);
  for (let count = 0; count < 3; count++) {
    socket.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String((await once(socket, "data"))[0])).toContain("200 OK");
    await expect.poll(() => vi.getTimerCount()).toBe(0);
  }
});

test("closes the oldest connection for a new one beyond 64", async () => {
  const url = await listen(() => text("1"));
  const callers: Awaited<ReturnType<typeof openConnection>>[] = [];
  for (let count = 0; count < 64; count++) callers.push(await openConnection(url));
  const { socket } = await openConnection(url);
  socket.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(String((await once(socket, "data"))[0])).toContain("200 OK");
  await vi.waitFor(() => expect(callers[0]?.isClosed()).toBe(true), { timeout: 60_000 });
  expect(callers.filter(({ isClosed }) => isClosed())).toHaveLength(1);
});

test("closes a connection whose response is not finished after ten seconds, though its peer keeps sending", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const read = vi.fn(() => new Promise<DynamicDocument>(() => {}));
  const url = await listen(read);
  const { socket } = await openConnection(url);
  const closed = once(socket, "close");
  socket.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  while (read.mock.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const sending = setInterval(() => socket.write("\r\n"), 1000);
  vi.advanceTimersByTime(10_000);
  await closed.finally(() => clearInterval(sending));
});

test("rejects with the system error when the port is in use, and can listen on another one then", async () => {
  const url = await listen(() => text(""));
  const port = Number(new URL(url).port);
  const second = create(() => text("second"));
  await expect(second.listen(port)).rejects.toMatchObject({ code: "EADDRINUSE", syscall: "listen", port });
  expect(await (await fetch(await second.listen(0))).text()).toBe("second");
});

test("frees the port on close even with open connections", async () => {
  const listener = create(() => text("x"));
  const url = await listener.listen(0);
  await (await fetch(url)).text();
  await listener.close();
  await expect(fetch(url)).rejects.toThrow();
  const nextServer = createServer().listen(Number(new URL(url).port), "127.0.0.1");
  await new Promise((resolve, reject) => nextServer.once("listening", resolve).once("error", reject));
  nextServer.close();
});
