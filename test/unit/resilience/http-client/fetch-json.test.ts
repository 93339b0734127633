import type { RequestListener } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { Agent } from "undici";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { ServiceError } from "../../../../src/errors.js";
import { type FetchJsonOptions, fetchJson } from "../../../../src/resilience/http-client/fetch-json.js";
import { UpstreamError } from "../../../../src/resilience/http-client/upstream-error.js";
import { startHttpStub } from "../../../support/stubs/http-stub.js";

const dispatcher = new Agent();
const answers: Readonly<Record<string, RequestListener>> = {
  "/json": (_, response) => response.end('{"a":[1]}'),
  "/headers": (request, response) => response.end(JSON.stringify(request.headers)),
  "/echo": (request, response) => request.pipe(response),
  "/redirect": (_, response) => response.writeHead(302, { location: "/json" }).end(),
  "/error": (_, response) => response.writeHead(503).end("{}"),
  "/error-without-end": (_, response) => response.writeHead(500).write("x"),
  "/limited": (_, response) => response.writeHead(429, { "retry-after": "7" }).end(),
  "/text": (_, response) => response.end("OK"),
  "/html": (_, response) => response.end("\n<!doctype html><title>Sign in</title>"),
  "/refused": (_, response) => response.writeHead(401).end(),
  "/gzip": (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync('{"a":1}')),
  "/big": (_, response) => response.end(JSON.stringify("x".repeat(2000))),
  "/deep": (_, response) => response.write("[".repeat(17)),
  "/many": (_, response) => response.write(`[${"1,".repeat(400)}`),
  "/drip": (_, response) => response.write('{"a":'),
  "/cut": (_, response) => {
    response.writeHead(200, { "content-length": "100" }).write("{");
    setTimeout(() => response.destroy(), 20);
  },
};
const stub = await startHttpStub((request, response) => answers[request.url ?? ""]?.(request, response));
afterAll(async () => {
  await dispatcher.destroy();
  await stub.close();
});

const options: FetchJsonOptions = {
  dispatcher,
  timeoutMs: 60_000,
  maxBytes: 1000,
  memberLimits: { members: 300 },
  signal: new AbortController().signal,
};
const exchange = (path: string, more: Partial<FetchJsonOptions> = {}): Promise<unknown> =>
  fetchJson(`${stub.url}${path}`, { ...options, ...more });

describe("fetchJson", () => {
  test("returns the JSON of the response", async () => {
    expect(await exchange("/json")).toEqual({ a: [1] });
  });

  test("requests an uncompressed response", async () => {
    expect(await exchange("/headers")).toMatchObject({ "accept-encoding": "identity" });
  });

  test("posts a body", async () => {
    expect(await exchange("/echo", { body: '{"b":2}' })).toEqual({ b: 2 });
    expect(stub.requests).toContain("POST /echo");
  });

  test.each([
    ["/redirect", "answered 302", "http_error"],
    ["/error", "answered 503", "http_error"],
    ["/error-without-end", "answered 500", "http_error"],
    ["/text", "answered something that is not JSON", "invalid_response"],
    ["/html", "answered an HTML page", "invalid_response"],
    ["/refused", "answered 401: the key is not accepted", "http_error"],
    ["/limited", "answered 429: too many requests", "http_error"],
    ["/gzip", "answered with a content encoding that was not requested", "invalid_response"],
    ["/big", "answered more than 1000 bytes", "too_large"],
    // These never end.
    ["/deep", "answered JSON beyond the limit of its depth", "too_complex"],
    ["/many", "answered JSON beyond the limit of its members", "too_complex"],
    ["/drip", "did not answer in time", "timeout"],
    ["/silent", "did not answer in time", "timeout"],
    ["/cut", "connection lost", "network_error"],
  ])("%s: %s (%s)", async (path, message, kind) => {
    const error = await exchange(path, kind === "timeout" ? { timeoutMs: 300 } : {}).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UpstreamError);
    expect(error).toMatchObject({ message, kind });
  });

  test("distinguishes a response that is too large for its connection, too", async () => {
    const dispatcher = new Agent({ maxResponseSize: 1_000 });
    await expect(exchange("/big", { dispatcher, maxBytes: 1_000_000 })).rejects.toMatchObject({ kind: "too_large" });
    await dispatcher.destroy();
  });

  test("follows no redirect", () => {
    expect(stub.requests.filter((line) => line === "GET /json")).toHaveLength(1);
  });

  test("times out even when garbage is collected meanwhile", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const collecting = setInterval(collect, 20);
    onTestFinished(() => clearInterval(collecting));
    await expect(exchange("/silent", { timeoutMs: 300, signal: new AbortController().signal })).rejects.toThrow(
      "did not answer in time",
    );
  });

  test("aborts when its caller leaves", async () => {
    const leaving = new AbortController();
    const pending = exchange("/silent", { signal: leaving.signal, timeoutMs: 60_000 });
    setTimeout(() => leaving.abort(), 20);
    await expect(pending).rejects.toThrow("did not answer in time");
  });

  test("aborts with its caller before there is a connection", async () => {
    const unconnected = new Agent({ connect: () => {} });
    const pending = exchange("/json", { dispatcher: unconnected, signal: AbortSignal.timeout(20), timeoutMs: 60_000 });
    await expect(pending).rejects.toThrow("did not answer in time");
  });

  test("sends nothing for a caller that has already left", async () => {
    const before = stub.requests.length;
    const message = "did not answer in time";
    const left = exchange("/json", { signal: AbortSignal.abort() });
    await expect(left).rejects.toMatchObject({ message, kind: "aborted" });
    expect(stub.requests).toHaveLength(before);
  });

  test("reports Retry-After of a 429 response", async () => {
    await expect(exchange("/limited")).rejects.toMatchObject({ status: 429, retryAfterMs: 7000 });
    await expect(exchange("/error")).rejects.toMatchObject({ status: 503, retryAfterMs: undefined });
  });

  test("leaves no listener on a long-lived signal", async () => {
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    await exchange("/json", { signal });
    await exchange("/error", { signal }).catch(() => {});
    expect(added).toHaveBeenCalledTimes(2);
    expect(removed).toHaveBeenCalledTimes(2);
  });

  test("fails when the connection is refused", async () => {
    const gone = await startHttpStub(() => {});
    await gone.close();
    await expect(fetchJson(`${gone.url}/`, options)).rejects.toThrow("connection refused");
  });

  test.each([
    ["ENOTFOUND", "DNS lookup failed"],
    ["EAI_AGAIN", "DNS lookup failed"],
    ["ENETUNREACH", "no route to the host"],
    ["ETIMEDOUT", "connection timed out"],
    ["UND_ERR_CONNECT_TIMEOUT", "connection timed out"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "TLS certificate rejected"],
    ["CERT_HAS_EXPIRED", "TLS certificate rejected"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "TLS certificate rejected"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "TLS certificate rejected"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "TLS handshake failed"],
    ["EPROTO", "TLS handshake failed"],
    ["ECONNRESET", "connection lost"],
    ["EMFILE", "could not be reached"],
  ])("says of %s: %s", async (code, message) => {
    const failing = new Agent({
      connect: (_, callback) => callback(Object.assign(new Error("https://secret.example"), { code }), null),
    });
    const error = await exchange("/json", { dispatcher: failing }).catch((reason: unknown) => reason);
    expect((error as UpstreamError).message).toBe(message);
    await failing.destroy();
  });

  test("reserves memory as the body grows, and releases it however the request ends", async () => {
    const memory = { grow: vi.fn(), release: vi.fn() };
    const openMemory = () => memory;
    const text = JSON.stringify("x".repeat(700));
    expect(await exchange("/echo", { openMemory, body: text })).toBe("x".repeat(700));
    expect(memory.grow.mock.lastCall?.[0]).toBeGreaterThanOrEqual(text.length);
    expect(memory.release).toHaveBeenCalledTimes(1);

    await expect(exchange("/big", { openMemory })).rejects.toThrow("answered more than 1000 bytes");
    expect(Math.max(...memory.grow.mock.calls.flat())).toBeLessThanOrEqual(1000);
    expect(memory.release).toHaveBeenCalledTimes(2);

    const full = new ServiceError("OVERLOADED", "no memory is left");
    memory.grow.mockImplementation(() => {
      throw full;
    });
    await expect(exchange("/json", { openMemory })).rejects.toBe(full);
    expect(memory.release).toHaveBeenCalledTimes(3);
  });
});
