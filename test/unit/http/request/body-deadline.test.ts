import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { describe, expect, onTestFinished, test } from "vitest";
import { openRawSocket } from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

// Calls whose body never ends. Without a deadline they fail after the 30 seconds of every request.

const WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const MESSAGE = Buffer.alloc(5);
const GRPC = { "content-type": "application/grpc", "grpc-timeout": "50m" };

/** Sends the headers and the start of a body over HTTP/2, and returns the response. */
async function sendUnended(url: string, path: string, headers: Record<string, string>, body: Buffer) {
  const session = connectHttp2(url);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.write(body);
  let fields: Record<string, unknown> = {};
  let text = "";
  stream.on("response", (head) => {
    fields = { ...fields, ...head };
  });
  stream.on("trailers", (trailers) => {
    fields = { ...fields, ...trailers };
  });
  stream.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  await once(stream, "end");
  stream.close();
  return { fields, text };
}

describeOnBothPaths(() => {
  describe("a call whose body does not end is answered at its deadline", () => {
    test.each([
      ["nothing", QUOTE_PATH, GRPC, Buffer.alloc(0)],
      ["half a message", QUOTE_PATH, GRPC, MESSAGE.subarray(0, 3)],
      ["a message without its end", QUOTE_PATH, GRPC, MESSAGE],
      ["a part of a compressed message", QUOTE_PATH, { ...GRPC, "grpc-encoding": "gzip" }, MESSAGE.subarray(0, 3)],
      ["a watch without its end", WATCH, GRPC, MESSAGE],
      ["a watch without its message", WATCH, GRPC, Buffer.alloc(0)],
      ["open reflection", REFLECTION, GRPC, Buffer.alloc(0)],
      ["reflection in the middle of a message", REFLECTION, GRPC, MESSAGE.subarray(0, 3)],
    ])("with gRPC: %s", async (_, path, headers, body) => {
      const { url, accessLines, internalErrors, waitForAccessLines } = await startTestServer();
      const { fields } = await sendUnended(url, path, headers, body);
      expect(fields).toMatchObject({
        ":status": 200,
        "grpc-status": "4",
        "grpc-message": "the deadline passed before the call arrived",
      });
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ code: "deadline_exceeded" }]);
      expect(internalErrors).toEqual([]);
    });

    test.each([
      ["JSON", "application/json", '{"amo'],
      ["binary", "application/proto", "\x0a"],
      ["a spelling for the general path", "application/json;charset=utf-8", "{"],
    ])("with Connect over HTTP/2: %s", async (_, type, body) => {
      const { url } = await startTestServer();
      const headers = { "content-type": type, "connect-timeout-ms": "50" };
      const { fields, text } = await sendUnended(url, QUOTE_PATH, headers, Buffer.from(body));
      expect(fields).toMatchObject({ ":status": 504, "cache-control": "no-store" });
      expect(JSON.parse(text)).toMatchObject({
        code: "deadline_exceeded",
        message: "the deadline passed before the call arrived",
        details: [{ type: "google.rpc.ErrorInfo" }],
      });
    });

    test.each([
      [
        "Connect",
        QUOTE_PATH,
        "application/json",
        "Connect-Timeout-Ms: 50",
        /^HTTP\/1\.1 504 .*"deadline_exceeded".*details/s,
      ],
      [
        "gRPC-Web",
        QUOTE_PATH,
        "application/grpc-web+proto",
        "Grpc-Timeout: 50m",
        /^HTTP\/1\.1 200 .*grpc-status: 4\r\n/s,
      ],
      [
        "a Connect stream",
        WATCH,
        "application/connect+json",
        "Connect-Timeout-Ms: 50",
        /^HTTP\/1\.1 200 .*"deadline_exceeded"/s,
      ],
    ])("with %s over HTTP/1.1, while bytes keep arriving", async (_, path, type, timeout, expected) => {
      const { port, accessLines, waitForAccessLines } = await startTestServer();
      const socket = await openRawSocket(port);
      let received = "";
      socket.on("data", (chunk: Buffer) => {
        received += chunk.toString("latin1");
      });
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n${timeout}\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      const drip = setInterval(() => socket.write("1\r\n\0\r\n"), 5);
      onTestFinished(() => clearInterval(drip));
      await waitForAccessLines(1);
      await expect.poll(() => received).toMatch(expected);
      expect(accessLines).toMatchObject([{ code: "deadline_exceeded" }]);
      socket.destroy();
    });
  });

  test("the time for a body ends before a later deadline", async () => {
    const { url } = await startTestServer({ limits: { requestMs: 1_000, headersMs: 1_000 } });
    const headers = { ...GRPC, "grpc-timeout": "1H" };
    const { fields } = await sendUnended(url, QUOTE_PATH, headers, MESSAGE.subarray(0, 3));
    expect(fields).toMatchObject({ "grpc-status": "3", "grpc-message": "the request body did not arrive in time" });
  });

  test("a call that arrives in parts before its deadline is answered", async () => {
    const { url } = await startTestServer();
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    const stream = session.request({ ":method": "POST", ":path": QUOTE_PATH, ...GRPC, "grpc-timeout": "1H" });
    for (const byte of MESSAGE) {
      stream.write(Buffer.from([byte]));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    stream.end();
    const [trailers] = (await once(stream.resume(), "trailers")) as [Record<string, unknown>];
    expect(trailers["grpc-status"]).toBe("0");
  });
});
