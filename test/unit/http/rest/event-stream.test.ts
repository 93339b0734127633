import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { WatchTransfersResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { readEventStreamFields } from "../../../../src/http/rest/annotations.js";
import { HTTP_VERSIONS, openHttp2, openRawSocket, sendHttp1 } from "../support/raw-client.js";
import {
  bookmarkEvent,
  createControlledWatch,
  createWatchService,
  transferEvent,
  WATCH_GET_PATH,
  type WatchOperation,
  type WatchStream,
} from "../support/stream-contract.js";
import { startTestServer } from "../support/test-server.js";

// A server-streaming operation under GET: Server-Sent Events.

/** An operation that does its work at once and holds nothing. */
const atOnce =
  (work: (stream: WatchStream, request: Parameters<WatchOperation>[0]) => void): WatchOperation =>
  (request, stream) => {
    work(stream, request);
    return { onReady() {}, onDrain() {}, onEnd() {} };
  };

/** Reads the blocks of a body: each ends with an empty line. */
const blocksOf = (body: string): string[] => body.split("\n\n").slice(0, -1);

describe.each(HTTP_VERSIONS)("over %s", (name, send) => {
  test("events have the name of the member, the token as id and the JSON of the member on one line", async () => {
    const watch = atOnce((stream) => {
      stream.send(transferEvent("t1", "a\nb"));
      stream.send(
        create(WatchTransfersResponseSchema, {
          resumeToken: "t2",
          event: { case: "unknown", value: { transferHash: "0xé\u2028", isFinal: true } },
        }),
      );
      stream.send(bookmarkEvent("t3"));
      stream.end();
    });
    const { port } = await startTestServer({ watch });
    const { status, headers, body } = await send(port, WATCH_GET_PATH, { headers: { accept: "application/json" } });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "access-control-allow-origin": "*",
    });
    expect(headers["content-length"]).toBeUndefined();
    const [retry, transfer, ...others] = blocksOf(body);
    const delay = Number(/^retry: (\d+)$/.exec(retry ?? "")?.[1]);
    expect(delay).toBeGreaterThanOrEqual(1000);
    expect(delay).toBeLessThanOrEqual(5000);
    const [event, id, data, ...rest] = (transfer ?? "").split("\n");
    expect([event, id, rest]).toEqual(["event: transfer", "id: t1", []]);
    // As GET prints it: defaults, and 64-bit integers as numbers.
    expect(JSON.parse(data?.slice("data: ".length) ?? "")).toMatchObject({ transferId: "a\nb", timestamp: 0 });
    expect(others).toEqual([
      'event: unknown\nid: t2\ndata: {"transferId":"","transferHash":"0xé\u2028","isFinal":true}',
      "event: bookmark\nid: t3\ndata: {}",
      "event: end\nid: t3\ndata: {}",
    ]);
  });

  test("a stream without a message is 204, and one that is interrupted is resumed", async () => {
    const complete = await startTestServer({ watch: atOnce((stream) => stream.end()) });
    const empty = await send(complete.port, WATCH_GET_PATH);
    expect(empty).toMatchObject({ status: 204, body: "", headers: { "cache-control": "no-store" } });
    const interrupted = await startTestServer({ watch: atOnce((stream) => stream.interrupt()) });
    const response = await send(interrupted.port, WATCH_GET_PATH);
    expect(response).toMatchObject({ status: 200, body: expect.stringMatching(/^retry: \d+\n\n$/) });
  });

  test("a failure before the first event is an error of any GET, and later an event", async () => {
    const error = new ServiceError("INVALID_PARAMETER", "no such token", { field: "resumeToken" });
    const thrown = await startTestServer({
      watch: () => {
        throw error;
      },
    });
    const refused = await send(thrown.port, WATCH_GET_PATH);
    expect(refused).toMatchObject({ status: 400, headers: { "content-type": "application/json; charset=utf-8" } });
    const expected = {
      ...{ code: "invalid_argument", message: "no such token", error: "no such token" },
      ...{ reason: "INVALID_PARAMETER", field: "resumeToken" },
    };
    expect(JSON.parse(refused.body)).toEqual(expected);
    const later = await startTestServer({
      watch: atOnce((stream) => {
        stream.send(bookmarkEvent("t"));
        stream.end(new TypeError("secret"));
        stream.send(bookmarkEvent("u"));
      }),
    });
    const failed = await send(later.port, WATCH_GET_PATH);
    expect(failed.status).toBe(200);
    expect(blocksOf(failed.body).at(-1)).toBe(
      'event: failure\ndata: {"code":"internal","message":"internal error","error":"internal error","reason":"INTERNAL"}',
    );
    expect(later.internalErrors).toEqual([expect.objectContaining({ message: "secret" })]);
    await later.logged(1);
    expect(later.accessLines).toMatchObject([{ code: "internal", reason: "INTERNAL", messages: 1 }]);
  });

  test("Last-Event-ID wins over the parameter, and an empty one does not", async () => {
    const seen: string[] = [];
    const watch = atOnce((stream, { resumeToken, transferId }) => {
      seen.push(`${resumeToken} ${transferId.join()}`);
      stream.end();
    });
    const { port } = await startTestServer({ watch });
    const path = `${WATCH_GET_PATH}?transferId=1&resumeToken=old&transferId=2`;
    await send(port, path);
    await send(port, path, { headers: { "last-event-id": "new" } });
    await send(port, path, { headers: { "last-event-id": "" } });
    expect(seen).toEqual(["old 1,2", "new 1,2", "old 1,2"]);
  });

  test("the refusal of a Last-Event-ID names it, and that of the parameter does not", async () => {
    const watch = atOnce((stream) => {
      stream.end(new ServiceError("INVALID_PARAMETER", "resumeToken is none", { field: "resumeToken" }));
    });
    const { port } = await startTestServer({ watch });
    const refuse = async (path: string, headers = {}) => JSON.parse((await send(port, path, { headers })).body);
    expect(await refuse(WATCH_GET_PATH, { "last-event-id": "x" })).toMatchObject({
      message: "Last-Event-ID: resumeToken is none",
      field: "resumeToken",
    });
    expect(await refuse(`${WATCH_GET_PATH}?resumeToken=x`)).toMatchObject({ message: "resumeToken is none" });
  });

  test("a query may have 50 transfers, by id and hash together", async () => {
    const seen: number[] = [];
    const watch = atOnce((stream, { transferId, transferHash }) => {
      seen.push(transferId.length + transferHash.length);
      stream.end();
    });
    const { port } = await startTestServer({ watch });
    const path = `${WATCH_GET_PATH}?${"transferHash=a&".repeat(20)}${"transferId=1&".repeat(30)}`;
    expect(await send(port, path)).toMatchObject({ status: 204 });
    const refused = await send(port, `${path}transferHash=b`);
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.body)).toMatchObject({ reason: "INVALID_PARAMETER", field: "transferId" });
    expect((await send(port, `${path}transferHash=b`, { method: "HEAD" })).status).toBe(400);
    expect(seen).toEqual([50]);
  });

  test("HEAD answers at once without the operation, OPTIONS allows Last-Event-ID on this path alone", async () => {
    const watch: WatchOperation = () => {
      throw new Error("called");
    };
    const { port, internalErrors } = await startTestServer({ watch });
    const head = await send(port, WATCH_GET_PATH, { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, body: "", headers: { "content-type": "text/event-stream" } });
    expect(await send(port, `${WATCH_GET_PATH}?nope=1`, { method: "HEAD" })).toMatchObject({ status: 400, body: "" });
    const allowed = async (path: string) =>
      (await send(port, path, { method: "OPTIONS" })).headers["access-control-allow-headers"];
    expect(await allowed(WATCH_GET_PATH)).toMatch(/(^|, )Last-Event-ID(,|$)/);
    expect(await allowed("/v1/quote")).not.toContain("Last-Event-ID");
    expect((await send(port, WATCH_GET_PATH, { method: "POST" })).status).toBe(405);
    expect((await send(port, "/v1/things%3Awatch")).status).toBe(404);
    expect(internalErrors).toEqual([]);
  });

  test("one line is logged at the end, with the number of messages", async () => {
    const watch = createControlledWatch();
    const { port, accessLines, logged, server } = await startTestServer({ watch: watch.operation });
    const response = send(port, WATCH_GET_PATH);
    const { stream, events } = await watch.next();
    stream.send(bookmarkEvent("t1"));
    stream.send(bookmarkEvent("t2"));
    expect(accessLines).toEqual([]);
    expect(server.getLoad().streamingCalls).toBe(1);
    stream.end();
    expect(events).toEqual(["end"]);
    await response;
    expect(await logged(1)).toMatchObject([{ protocol: "rest", code: "ok", messages: 2 }]);
    expect(server.getLoad().streamingCalls).toBe(0);
  });

  test("a caller that leaves ends its stream", async () => {
    const watch = createControlledWatch();
    const { port, logged, server } = await startTestServer({ watch: watch.operation });
    const leave = name === "HTTP/2" ? openOverHttp2(port) : await openOverHttp1(port);
    const { stream, events } = await watch.next();
    stream.send(bookmarkEvent("t1"));
    await leave();
    await expect.poll(() => events).toEqual(["end"]);
    expect(await logged(1)).toMatchObject([{ code: "canceled", messages: 1 }]);
    stream.send(bookmarkEvent("t2"));
    stream.end();
    expect(server.getLoad().streamingCalls).toBe(0);
    expect(events).toEqual(["end"]);
  });

  test("beyond the limit a stream is refused", async () => {
    const watch = createControlledWatch();
    const { port } = await startTestServer({ watch: watch.operation, limits: { operationStreams: 2 } });
    const first = send(port, WATCH_GET_PATH);
    const { stream } = await watch.next();
    const refused = await send(port, WATCH_GET_PATH);
    expect(refused).toMatchObject({ status: 429, headers: { "retry-after": "5" } });
    expect(JSON.parse(refused.body)).toMatchObject({ reason: "RATE_LIMITED" });
    stream.end();
    await first;
  });

  test("counts against the rate limit", async () => {
    const rateLimit = { requests: 1, windowMs: 60_000 };
    const { port } = await startTestServer({ watch: atOnce((stream) => stream.end()), rateLimit });
    expect((await send(port, WATCH_GET_PATH)).headers["ratelimit-remaining"]).toBe("0");
    expect((await send(port, WATCH_GET_PATH)).status).toBe(429);
  });
});

/** Opens a stream; returns what closes it, once a byte has arrived. */
async function openOverHttp1(port: number): Promise<() => Promise<void>> {
  const socket = await openRawSocket(port);
  socket.write(`GET ${WATCH_GET_PATH} HTTP/1.1\r\nHost: a\r\n\r\n`);
  return async () => {
    await once(socket, "data");
    socket.destroy();
  };
}

function openOverHttp2(port: number): () => Promise<void> {
  const stream = openHttp2(port).request({ ":path": WATCH_GET_PATH });
  return async () => {
    await once(stream, "data");
    stream.close(8);
  };
}

test("an id that the format cannot hold, and a message without an event, fail the stream", async () => {
  for (const message of [bookmarkEvent("a\nb"), create(WatchTransfersResponseSchema, { resumeToken: "t" })]) {
    const { port, internalErrors } = await startTestServer({ watch: atOnce((stream) => stream.send(message)) });
    expect((await sendHttp1(port, WATCH_GET_PATH)).status).toBe(500);
    expect(internalErrors).toHaveLength(1);
  }
});

describe("an annotation is refused at the start", () => {
  const fits = { id: "resume_token", event: "event", lastEventId: "resume_token" };
  test.each([
    ["that is missing", undefined, "needs it"],
    ["without an id", { ...fits, id: "" }, "is not a string field"],
    ["whose id is no field of the response", { ...fits, id: "view" }, "is not a string field"],
    ["whose id is a member of the oneof", { ...fits, id: "bookmark" }, "is not a string field"],
    ["whose event is no oneof", { ...fits, event: "resume_token" }, "has no oneof"],
    ["whose Last-Event-ID is a list", { ...fits, lastEventId: "transfer_id" }, "is not a string field"],
  ])("%s", (_, option, problem) => {
    const [method] = createWatchService(option).methods;
    if (method === undefined) throw new Error("the test's contract has no method");
    expect(() => readEventStreamFields(method)).toThrow(problem);
  });
});
