import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { envelope, openHttp2, post, readStream, sendHttp1 } from "../support/raw-client.js";
import { startTestServer } from "../support/test-server.js";

// The fast path of streams and Connect's adapter send equal responses.

const WATCH = "/grpc.health.v1.Health/Watch";

const EMPTY = envelope(Buffer.alloc(0));
const UNKNOWN_SERVICE = envelope(Buffer.from("\x0a\x04nope"));
const json = (text: string): Buffer => envelope(Buffer.from(text));
const GRPC = "application/grpc";
const WEB = "application/grpc-web+proto";
const CONNECT_JSON = "application/connect+json";
const CONNECT_BINARY = "application/connect+proto";
const CONNECT_GZIP = { "connect-content-encoding": "gzip" };

/** Sends a watch to a new server. */
async function send(fastPaths: boolean, type: string, body: Buffer, headers: Record<string, string>) {
  const { port, logged } = await startTestServer({ fastPaths });
  const stream = openHttp2(port).request({
    ...{ ":method": "POST", ":path": WATCH, "content-type": type, "x-request-id": "mine" },
    ...headers,
  });
  stream.end(body);
  const response = await readStream(stream);
  const { date: _, ...fields } = response.fields;
  const lines = (await logged(1)).map(({ durationMs: __, ...line }) => line);
  return { fields: { ...fields }, body: response.body, lines };
}

/** Long enough to read a large or compressed request before, on a busy machine too. */
const longTimeouts = { "grpc-timeout": "1S", "connect-timeout-ms": "1000" };
const timeouts = { "grpc-timeout": "40m", "connect-timeout-ms": "40" };
test.each<[string, string, Buffer, Record<string, string>?]>([
  ["gRPC", GRPC, EMPTY],
  ["gRPC with its format", "application/grpc+proto", EMPTY],
  ["gRPC with JSON", "application/grpc+json", json("{}")],
  ["gRPC, accepting gzip", GRPC, EMPTY, { "grpc-accept-encoding": "identity,deflate,gzip" }],
  ["gRPC, accepting brotli", GRPC, EMPTY, { "grpc-accept-encoding": "br" }],
  ["gRPC, compressed", GRPC, envelope(gzipSync(Buffer.alloc(0)), 1), { "grpc-encoding": "gzip", ...longTimeouts }],
  ["gRPC, with an unknown compression", GRPC, EMPTY, { "grpc-encoding": "br" }],
  ["gRPC of an unknown service", GRPC, UNKNOWN_SERVICE],
  ["gRPC without a message", GRPC, Buffer.alloc(0)],
  ["gRPC with two messages", GRPC, Buffer.concat([EMPTY, EMPTY])],
  ["gRPC with a malformed message", GRPC, envelope(Buffer.from([255, 255]))],
  ["gRPC with a message that is cut off", GRPC, UNKNOWN_SERVICE.subarray(0, 8)],
  ["gRPC with a message that is too large", GRPC, envelope(Buffer.alloc(70_000)), longTimeouts],
  ["gRPC with a malformed deadline", GRPC, EMPTY, { "grpc-timeout": "soon" }],
  ["gRPC-Web", WEB, EMPTY],
  ["gRPC-Web, in short", "application/grpc-web", EMPTY],
  ["gRPC-Web of an unknown service", WEB, UNKNOWN_SERVICE],
  ["gRPC-Web with a malformed message", WEB, envelope(Buffer.from([255, 255]))],
  ["Connect with JSON", CONNECT_JSON, json("{}")],
  ["Connect with a service", CONNECT_JSON, json('{"service":"grpc.health.v1.Health"}')],
  ["Connect with malformed JSON", CONNECT_JSON, json("{")],
  ["Connect with an unknown field", CONNECT_JSON, json('{"x":1}')],
  ["Connect with binary", CONNECT_BINARY, EMPTY],
  ["Connect, accepting gzip", CONNECT_JSON, json("{}"), { "connect-accept-encoding": "gzip" }],
  ["Connect, accepting others", CONNECT_JSON, json("{}"), { "connect-accept-encoding": "br, gzip" }],
  ["Connect, compressed", CONNECT_JSON, envelope(gzipSync("{}"), 1), { ...CONNECT_GZIP, ...longTimeouts }],
  ["a unary content type", "application/json", Buffer.from("{}")],
  ["another content type", "text/plain", EMPTY],
])("%s: both paths send equal responses", async (_, type, body, headers = {}) => {
  const [fast, general] = await Promise.all(
    [true, false].map((fastPaths) => send(fastPaths, type, body, { ...timeouts, ...headers })),
  );
  expect(fast).toEqual(general);
});

test.each<[string, string, Buffer, Record<string, string>]>([
  ["gRPC", GRPC, envelope(gzipSync(Buffer.alloc(0)), 1), { "grpc-encoding": "gzip", "grpc-timeout": "0m" }],
  ["Connect", CONNECT_JSON, envelope(gzipSync("{}"), 1), { ...CONNECT_GZIP, "connect-timeout-ms": "0" }],
])("a compressed request over %s whose deadline has passed is answered", async (_, type, body, headers) => {
  const { fields, body: text, lines } = await send(true, type, body, headers);
  if (type === GRPC) expect(fields).toMatchObject({ "grpc-status": "4" });
  else expect(text).toContain("deadline_exceeded");
  expect(lines).toMatchObject([{ code: "deadline_exceeded" }]);
});

test.each([
  ["gRPC-Web", WEB, EMPTY],
  ["Connect", CONNECT_JSON, json("{}")],
])("both paths send equal responses to %s over HTTP/1.1, also at the end of the server", async (_, type, body) => {
  const responses = await Promise.all(
    [true, false].map(async (fastPaths) => {
      const { port, server } = await startTestServer({ fastPaths });
      const response = sendHttp1(port, WATCH, post(type, body, { "x-request-id": "mine" }));
      await expect.poll(() => server.getLoad().streamingCalls).toBe(1);
      await server.close(600_000);
      const { headers: received, ...rest } = await response;
      const { date: __, ...compared } = received;
      return { ...rest, headers: compared };
    }),
  );
  expect(responses[0]).toEqual(responses[1]);
});
