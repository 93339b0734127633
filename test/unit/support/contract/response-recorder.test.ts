import { createServer, type RequestListener, ServerResponse } from "node:http";
import { createServer as createHttp2Server, Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type RecordedResponse, recordResponses } from "../../../support/contract/response-recorder.js";
import { sendHttp1, sendHttp2 } from "../../http/support/raw-client.js";

// The recorder reports what clients receive, however a server writes it.

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const restore of undo.splice(0).reverse()) await restore();
});

function record(onResponse: (response: RecordedResponse) => void): void {
  undo.push(recordResponses([ServerResponse, Http2ServerResponse], onResponse));
}

const versions = [
  ["HTTP/1.1", sendHttp1, (listener: RequestListener) => createServer(listener)],
  ["h2c", sendHttp2, (listener: RequestListener) => createHttp2Server(listener as never)],
] as const;

const head = { "access-control-expose-headers": "X-Request-Id, Age", "content-type": "text/plain" };
const list = Object.entries(head).flat();

describe.each(versions)("over %s", (version, send, create) => {
  async function start(listener: RequestListener): Promise<number> {
    const server = create(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    undo.push(() => server.close());
    return (server.address() as AddressInfo).port;
  }

  const writers: readonly [string, RequestListener][] = [
    ["with an object of headers", (_, res) => void res.writeHead(400, { ...head, "X-More": "1" }).end("text")],
    ["with a status message", (_, res) => void res.writeHead(400, "Bad", { ...head, "X-More": "1" }).end("text")],
    [
      "with headers set before",
      (_, res) => {
        res.setHeader("X-More", "1");
        res.writeHead(400, head).end("text");
      },
    ],
    [
      "without writeHead",
      (_, res) => {
        for (const [name, value] of Object.entries({ ...head, "X-More": 1 })) res.setHeader(name, value);
        res.statusCode = 400;
        res.end(Buffer.from("text"));
      },
    ],
  ];
  test.each(writers)("reports a response written %s", async (_, listener) => {
    const responses: RecordedResponse[] = [];
    record((response) => responses.push(response));
    const port = await start(listener);
    const { status, body } = await send(port, "/v1/quote?amount=secret&token", { method: "POST" });
    expect([status, body]).toEqual([400, "text"]);
    const headers = { ...head, "x-more": "1" };
    const parameters = ["amount", "token"];
    expect(responses).toEqual([{ method: "POST", path: "/v1/quote", parameters, status, headers, body }]);
  });

  test("reports a response once when it is ended twice", async () => {
    const onResponse = vi.fn();
    record(onResponse);
    const port = await start((_, res) => {
      res.writeHead(200, head).end("text");
      res.end();
    });
    expect((await send(port, "/v1/quote")).body).toBe("text");
    expect(onResponse).toHaveBeenCalledTimes(1);
  });

  test("ignores responses without a request ID and paths outside /v1/", async () => {
    const onResponse = vi.fn();
    record(onResponse);
    const port = await start((req, res) => {
      if (version === "HTTP/1.1") res.writeHead(200, req.url === "/" ? list : ["a", "b"]).end("text");
      else res.writeHead(200, req.url === "/" ? head : { a: "b" }).end("text");
    });
    expect((await send(port, "/v1/quote")).body).toBe("text");
    expect((await send(port, "/")).body).toBe("text");
    expect(onResponse).not.toHaveBeenCalled();
  });

  test("raises an error of the callback as uncaught, without delaying the response", async () => {
    // Vitest's own listener would end the run.
    const listeners = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    const faults: Error[] = [];
    process.on("uncaughtException", (error) => faults.push(error));
    undo.push(() => {
      process.removeAllListeners("uncaughtException");
      for (const listener of listeners) process.on("uncaughtException", listener);
    });
    record(() => {
      throw new Error("the callback failed");
    });
    const port = await start((_, res) => void res.writeHead(200, head).end("text"));
    expect((await send(port, "/v1/quote")).body).toBe("text");
    expect(faults).toMatchObject([{ message: "the callback failed" }]);
  });
});

test("reports headers passed as a flat list over HTTP/1.1", async () => {
  const responses: RecordedResponse[] = [];
  record((response) => responses.push(response));
  const server = createServer(
    (_, res) => void res.writeHead(200, ["Access-Control-Expose-Headers", "X-Request-Id", "X-More", "1"]).end("text"),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => server.close());
  await sendHttp1((server.address() as AddressInfo).port, "http://else.where/v1/quote");
  expect(responses).toMatchObject([{ path: "/v1/quote", headers: { "x-more": "1" }, body: "text" }]);
});
