import { connect as connectHttp2 } from "node:http2";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openRawSocket, sendHttp1, sendHttp2On } from "../unit/http/support/raw-client.js";
import {
  bookmarkEvent,
  WATCH_GET_PATH,
  WATCH_PATH,
  type WatchOperation,
} from "../unit/http/support/stream-contract.js";
import { QUOTE_PATH, startTestServer, type TestServer } from "../unit/http/support/test-server.js";

// For any input: no response blames the server, no internal error is reported, and the server keeps running.

const text = fc.string({ unit: "binary" });
const visible = fc.string({ unit: "grapheme-ascii" }).map((some) => some.replace(/[^\x21-\x7e]/g, ""));
const names = fc.constantFrom(
  "amount",
  "slippage",
  "rpcUrl[x]",
  "rpc_url",
  "__proto__",
  "constructor",
  "toString",
  "int32Value",
  "byNumber[1]",
  "repeatedBytesValue",
  "firstChoice",
  "refresh",
  "transferId",
  "transfer_id",
  "transferId[0]",
  "resumeToken",
);
const values = fc.oneof(
  visible,
  text.map(encodeURIComponent),
  fc.constantFrom("", "1", "-0", "1e9", "%", "%ff", "%00", "true"),
);
const query = fc
  .array(fc.tuple(fc.oneof(names, visible), fc.oneof(values, visible)), { maxLength: 5 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join("&"));
const paths = fc.oneof(
  fc.constantFrom(
    "/v1/quote",
    "/v1/echo",
    "/v1/available-routes",
    "/v1/transfer-status",
    QUOTE_PATH,
    "/grpc.health.v1.Health/Check",
    WATCH_GET_PATH,
    WATCH_PATH,
  ),
  fc.constantFrom("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.health.v1.Health/Nope"),
  visible.map((some) => `/${some}`),
  visible.map((some) => `http://x/${some}`),
);
const methods = fc.constantFrom(
  "GET",
  "GET",
  "POST",
  "POST",
  "HEAD",
  "OPTIONS",
  "PUT",
  "DELETE",
  "PATCH",
  "TRACE",
  "QUERY",
);
const contentTypes = fc.constantFrom(
  "application/json",
  "application/proto",
  "application/grpc",
  "application/grpc+json",
  "application/grpc-web",
  "application/grpc-web+proto",
  "application/grpc-web-text",
  "application/connect+json",
  "application/connect+proto",
  "text/plain",
);
const headers = fc.record(
  {
    "content-type": fc.oneof(contentTypes, visible),
    "content-encoding": fc.oneof(fc.constantFrom("gzip", "identity", "br"), visible),
    "grpc-encoding": fc.constantFrom("gzip", "identity", "br"),
    "accept-encoding": fc.constantFrom("gzip", "br", "*"),
    "grpc-timeout": fc.oneof(fc.constantFrom("1n", "0m", "99999999H", "-1S"), visible),
    "connect-timeout-ms": fc.oneof(fc.constantFrom("0", "1", "9999999999", "-1"), visible),
    "connect-protocol-version": fc.constantFrom("1", "2", ""),
    "x-request-id": visible,
    "last-event-id": visible,
    expect: fc.constantFrom("nothing"),
  },
  { requiredKeys: [] },
);
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.json().map((some) => Buffer.from(some)),
  // Length-prefixed messages as in gRPC, whose length may be wrong.
  fc
    .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 30 }), fc.uint8Array({ maxLength: 20 }))
    .map(([flags, length, data]) => Buffer.concat([Buffer.from([flags, 0, 0, 0, length]), data])),
);
const requests = fc.record({
  method: methods,
  path: fc.tuple(paths, query).map(([p, q]) => (q === "" ? p : `${p}?${q}`)),
  headers,
  body: bytes,
});

/** A stream of two messages for any valid request. */
const watch: WatchOperation = (_, stream) => {
  for (const token of ["1", "2"]) stream.send(bookmarkEvent(token));
  stream.end();
  return { onReady() {}, onDrain() {}, onEnd() {} };
};

async function expectWell({ port, internalErrors, accessLines }: TestServer): Promise<void> {
  expect(internalErrors).toEqual([]);
  expect(accessLines.filter(({ code }) => ["internal", "unknown", "data_loss", "unavailable"].includes(code))).toEqual(
    [],
  );
  expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
}

test("no request over HTTP/1.1 or HTTP/2 returns 5xx", async () => {
  const server = await startTestServer({ watch });
  const session = connectHttp2(server.url);
  const property = fc.asyncProperty(requests, async ({ method, path, headers: some, body }) => {
    const sent = method === "POST" ? { body: Buffer.from(body) } : {};
    const request = { method, headers: some as Record<string, string>, ...sent };
    const first = await sendHttp1(server.port, path, request);
    expect(first.status).toBeLessThan(500);
    // HTTP/2 forbids these.
    if (!path.startsWith("/")) return;
    const second = await sendHttp2On(session, path, request);
    expect(second.status).toBeLessThan(500);
    for (const { headers: given } of [first, second]) expect(given["x-request-id"]).toMatch(/^[\w.-]{1,128}$/);
  });
  await fc.assert(property, { numRuns: 400 });
  session.destroy();
  await expectWell(server);
});

test("no bytes on a connection return 5xx", async () => {
  const server = await startTestServer({ watch });
  const pieces = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((some) => Buffer.from(some)),
    fc
      .constantFrom(
        "GET /v1/quote HTTP/1.1\r\n",
        "POST /v1/quote HTTP/1.1\r\n",
        `POST ${QUOTE_PATH} HTTP/1.1\r\n`,
        "Host: x\r\n",
        "Content-Type: application/json\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "Expect: 100-continue\r\n",
        "\r\n",
        "0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\0\0\0\x04\0\0\0\0\0",
        "\0\0\x04\x01\x05\0\0\0\x01",
      )
      .map((some) => Buffer.from(some, "latin1")),
  );
  const property = fc.asyncProperty(fc.array(pieces, { maxLength: 8 }), fc.boolean(), async (parts, reset) => {
    const socket = await openRawSocket(server.port);
    const got: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => got.push(chunk));
    for (const part of parts) socket.write(part);
    await new Promise((resolve) => setTimeout(resolve, 3));
    if (reset) socket.resetAndDestroy();
    else socket.destroy();
    expect(Buffer.concat(got).toString("latin1")).not.toMatch(/^HTTP\/1\.1 5/m);
  });
  await fc.assert(property, { numRuns: 500 });
  await expectWell(server);
});
