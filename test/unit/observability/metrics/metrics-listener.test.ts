import { createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createMetricsListener, type MetricsListener } from "../../../../src/observability/metrics/metrics-listener.js";

const listeners: MetricsListener[] = [];
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
});

async function listen(renderText: () => Promise<string>): Promise<string> {
  const listener = createMetricsListener({ host: "127.0.0.1", port: 0, renderText });
  listeners.push(listener);
  return (await listener.listen()).url;
}

test("serves GET and HEAD at /metrics and nothing else", async () => {
  const url = await listen(async () => "some_metric 1\n");
  const response = await fetch(url);
  expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
    "some_metric 1\n",
  ]);
  expect((await fetch(`${url}?name[]=x`)).status).toBe(200);
  const head = await fetch(url, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "14", ""]);
  const postResponse = await fetch(url, { method: "POST", body: "x" });
  expect([postResponse.status, postResponse.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  for (const path of ["", "/", "/metrics/", "/v1/quote", "/readyz"])
    expect((await fetch(url.replace("/metrics", path))).status).toBe(404);
});

test("returns 503 without details when rendering fails", async () => {
  const url = await listen(() => Promise.reject(new Error("a secret")));
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([503, "metrics are unavailable\n"]);
});

test("rejects with the system error when the port is in use", async () => {
  const url = await listen(async () => "");
  const port = Number(new URL(url).port);
  const second = createMetricsListener({ host: "127.0.0.1", port, renderText: async () => "" });
  await expect(second.listen()).rejects.toMatchObject({ code: "EADDRINUSE", syscall: "listen", port });
  await second.close();
});

test("frees the port on close even with open connections", async () => {
  const listener = createMetricsListener({ host: "127.0.0.1", port: 0, renderText: async () => "x" });
  const { url } = await listener.listen();
  await (await fetch(url)).text();
  await listener.close();
  await expect(fetch(url)).rejects.toThrow();
  const nextServer = createServer().listen(Number(new URL(url).port), "127.0.0.1");
  await new Promise((resolve, reject) => nextServer.once("listening", resolve).once("error", reject));
  nextServer.close();
});
