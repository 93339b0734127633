import { createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createMetricsListener, type MetricsListener } from "../../../../src/observability/metrics/metrics-listener.js";

const open: MetricsListener[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function listen(renderText: () => Promise<string>): Promise<string> {
  const listener = createMetricsListener({ host: "127.0.0.1", port: 0, renderText });
  open.push(listener);
  return (await listener.listen()).url;
}

test("gives metrics to GET and HEAD at /metrics, and nothing else", async () => {
  const url = await listen(async () => "some_metric 1\n");
  const answer = await fetch(url);
  expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
    "some_metric 1\n",
  ]);
  expect((await fetch(`${url}?name[]=x`)).status).toBe(200);
  const head = await fetch(url, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "14", ""]);
  const posted = await fetch(url, { method: "POST", body: "x" });
  expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  for (const path of ["", "/", "/metrics/", "/v1/quote", "/readyz"])
    expect((await fetch(url.replace("/metrics", path))).status).toBe(404);
});

test("says that they cannot be had, and not why", async () => {
  const url = await listen(() => Promise.reject(new Error("a secret")));
  const answer = await fetch(url);
  expect([answer.status, await answer.text()]).toEqual([503, "the metrics cannot be had\n"]);
});

test("a port in use is told as the system tells it", async () => {
  const url = await listen(async () => "");
  const port = Number(new URL(url).port);
  const second = createMetricsListener({ host: "127.0.0.1", port, renderText: async () => "" });
  await expect(second.listen()).rejects.toMatchObject({ code: "EADDRINUSE", syscall: "listen", port });
  await second.close();
});

test("the port is free again when it is closed, also with connections that go on", async () => {
  const listener = createMetricsListener({ host: "127.0.0.1", port: 0, renderText: async () => "x" });
  const { url } = await listener.listen();
  await (await fetch(url)).text();
  await listener.close();
  await expect(fetch(url)).rejects.toThrow();
  const again = createServer().listen(Number(new URL(url).port), "127.0.0.1");
  await new Promise((resolve, reject) => again.once("listening", resolve).once("error", reject));
  again.close();
});
