import { createHash } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { DynamicDocument, StaticDocument } from "../../../src/http/documents.js";
import { HTTP_VERSIONS, sendHttp1 } from "./support/raw-client.js";
import { startTestServer } from "./support/test-server.js";

const long = "<p>long</p>".repeat(1000);
const etagOf = (text: string) => `W/"${createHash("sha256").update(text).digest("base64url")}"`;
const policy = ["content-security-policy", "default-src 'none'"];

function fixed(text: string, contentType: string): StaticDocument {
  return { contentType, read: async () => Buffer.from(text), headers: policy };
}

function start(
  more: Readonly<Record<string, StaticDocument | (() => DynamicDocument | Promise<DynamicDocument>)>> = {},
) {
  const documents = new Map(
    Object.entries({
      "/": fixed(long, "text/html; charset=utf-8"),
      "/small": fixed("{}", "application/json; charset=utf-8"),
      "/picture": fixed(long, "image/png"),
      ...more,
    }),
  );
  return startTestServer({ documents });
}

describe.each(HTTP_VERSIONS)("a document over %s", (_, send) => {
  test("is sent with its type, its headers and a validator", async () => {
    const { port, logged } = await start();
    const { status, headers, body } = await send(port, "/", { headers: { "x-request-id": "mine" } });
    expect([status, body]).toEqual([200, long]);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-length": String(long.length),
      "content-security-policy": "default-src 'none'",
      "cache-control": "no-cache",
      etag: etagOf(long),
      vary: "Accept-Encoding",
      "x-content-type-options": "nosniff",
      "access-control-allow-origin": "*",
    });
    expect(headers).not.toHaveProperty("content-encoding");
    // Shared caches may keep it and send it to others.
    expect(headers).not.toHaveProperty("x-request-id");
    expect((await logged(1))[0]).toMatchObject({ requestId: "mine", operation: "/", code: "ok" });
  });

  test("is sent without its body to HEAD, with the same length", async () => {
    const { port } = await start();
    const { status, headers, body } = await send(port, "/", { method: "HEAD" });
    expect([status, body]).toEqual([200, ""]);
    expect(headers).toMatchObject({ "content-length": String(long.length), etag: etagOf(long) });
  });

  test.each([
    ["GET", etagOf(long).slice(2)],
    ["HEAD", `"other", ${etagOf(long)}`],
  ])("returns 304 to %s with If-None-Match: %s", async (method, value) => {
    const { port } = await start();
    const { status, headers, body } = await send(port, "/", { method, headers: { "if-none-match": value } });
    expect([status, body, headers.etag, headers.vary]).toEqual([304, "", etagOf(long), "Accept-Encoding"]);
    expect(headers).toMatchObject({ "cache-control": "no-cache", "content-security-policy": "default-src 'none'" });
    expect(headers).not.toHaveProperty("content-length");
  });

  test("is sent again if the validator does not match, whatever the query", async () => {
    const { port } = await start();
    const headers = { "if-none-match": etagOf("old") };
    expect((await send(port, "/?theme=dark&theme=", { headers })).body).toBe(long);
  });

  test("returns 405 for other methods", async () => {
    const { port } = await start();
    const { status, headers, body } = await send(port, "/", { method: "POST", body: "x" });
    expect([status, headers.allow]).toEqual([405, "GET, HEAD, OPTIONS"]);
    expect(JSON.parse(body)).toMatchObject({ reason: "METHOD_NOT_ALLOWED" });
  });

  test("answers a CORS preflight", async () => {
    const { port } = await start();
    const { status, headers } = await send(port, "/", { method: "OPTIONS" });
    expect([status, headers["access-control-allow-methods"]]).toEqual([204, "GET, HEAD, OPTIONS"]);
  });

  test("is compressed for callers that accept gzip, HEAD included", async () => {
    const { port } = await start();
    const headers = { "accept-encoding": "gzip" };
    const head = await send(port, "/", { method: "HEAD", headers });
    expect(head.headers).toMatchObject({ "content-encoding": "gzip", etag: etagOf(long), vary: "Accept-Encoding" });
    expect(Number(head.headers["content-length"])).toBeLessThan(long.length / 10);
  });
});

describe("gzip", () => {
  test.each([
    ["br, GZIP;q=0.5", true],
    ["gzip;q=0, *", false],
  ])("Accept-Encoding: %s", async (accepted, isTaken) => {
    const { port } = await start();
    // The second response is from the memoized result.
    for (let round = 0; round < 2; round += 1) {
      const req = request({ port, path: "/", headers: { "accept-encoding": accepted }, agent: false }).end();
      const [res] = (await once(req, "response")) as [IncomingMessage];
      const body = await buffer(res);
      expect(res.headers["content-encoding"]).toBe(isTaken ? "gzip" : undefined);
      expect(res.headers["content-length"]).toBe(String(body.length));
      expect((isTaken ? gunzipSync(body) : body).toString()).toBe(long);
    }
  });

  test.each(["/small", "/picture"])("is not applied to %s, which would not shrink", async (path) => {
    const { port } = await start();
    const { headers } = await sendHttp1(port, path, { headers: { "accept-encoding": "gzip" } });
    expect(headers).not.toHaveProperty("content-encoding");
    expect(headers).not.toHaveProperty("vary");
  });
});

test("a document is read once, at the first request", async () => {
  let reads = 0;
  const read = async () => {
    reads += 1;
    return Buffer.from("text");
  };
  const { port } = await start({ "/read": { contentType: "text/plain", read } });
  expect(reads).toBe(0);
  const answers = await Promise.all([1, 2, 3].map(() => sendHttp1(port, "/read")));
  expect(answers.map(({ body }) => body)).toEqual(["text", "text", "text"]);
  expect(reads).toBe(1);
});

test("a failed read is an internal error without details, and the next request reads again", async () => {
  let isThere = false;
  const read = async () => {
    if (!isThere) throw new Error("no such file: /secret/place");
    return Buffer.from("text");
  };
  const { port, internalErrors, logged } = await start({
    "/read": { contentType: "text/plain", read },
  });
  const { status, body } = await sendHttp1(port, "/read");
  expect([status, JSON.parse(body)]).toMatchObject([500, { reason: "INTERNAL", message: "internal error" }]);
  expect(internalErrors).toMatchObject([{ message: "no such file: /secret/place" }]);
  expect((await logged(1))[0]).toMatchObject({ operation: "/read", code: "internal" });
  isThere = true;
  expect((await sendHttp1(port, "/read")).body).toBe("text");
});

describe("a dynamic document", () => {
  const throwSecret = (): never => {
    throw new Error("secret");
  };
  const ready: DynamicDocument = {
    status: 200,
    contentType: "application/json; charset=utf-8",
    body: '{"status":"ready"}',
  };

  test.each(HTTP_VERSIONS)("is created for each request and not cacheable (%s)", async (_, send) => {
    let count = 0;
    const report = () => {
      count += 1;
      return { ...ready, body: `é${count}` };
    };
    const { port } = await start({ "/report": report });
    const { headers, body } = await send(port, "/report");
    expect([body, (await send(port, "/report")).body]).toEqual(["é1", "é2"]);
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "content-length": "3",
      "content-type": ready.contentType,
    });
    expect(headers).not.toHaveProperty("etag");
    const head = await send(port, "/report", { method: "HEAD" });
    expect([head.status, head.headers["content-length"], head.body]).toEqual([200, "3", ""]);
    expect((await send(port, "/report", { method: "PUT" })).status).toBe(405);
  });

  test("may have an error status", async () => {
    const { port, logged } = await start({
      "/report": async () => ({ ...ready, status: 503 }),
    });
    expect((await sendHttp1(port, "/report")).status).toBe(503);
    expect((await logged(1))[0]).toMatchObject({ operation: "/report", code: "unavailable" });
  });

  test.each([
    ["throws", () => Promise.reject(new Error("secret"))],
    ["throws at once", throwSecret],
  ])("that %s returns an internal error without details", async (_, report) => {
    const { port, internalErrors } = await start({ "/report": report });
    const { status, body } = await sendHttp1(port, "/report");
    expect([status, JSON.parse(body).reason]).toEqual([500, "INTERNAL"]);
    expect(body).not.toContain("secret");
    expect(internalErrors).toMatchObject([{ message: "secret" }]);
  });
});

test("rejects a document at the path of an operation", async () => {
  await expect(start({ "/v1/quote": fixed("", "text/plain") })).rejects.toThrow("/v1/quote");
});

test("the rate limit does not apply to documents", async () => {
  const documents = new Map([["/", fixed("page", "text/html")]]);
  const { port } = await startTestServer({ documents, rateLimit: { requests: 1, windowMs: 60_000 } });
  const statuses = [];
  for (let i = 0; i < 3; i += 1) statuses.push((await sendHttp1(port, "/")).status);
  expect(statuses).toEqual([200, 200, 200]);
  expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
});
