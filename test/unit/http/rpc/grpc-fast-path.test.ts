import { once } from "node:events";
import { type ClientHttp2Stream, connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_TYPES,
} from "../../../../bench/support/http2-frames.js";
import { GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { openRawSocket } from "../support/raw-client.js";
import {
  describeOnBothPaths,
  QUOTE,
  QUOTE_PATH,
  startTestServer,
  type TestServerOptions,
} from "../support/test-server.js";

// Callers that misbehave during a gRPC call. The property test compares the responses of both paths.

const HEADERS = { ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc", te: "trailers" };
const EMPTY = Buffer.alloc(5);
const END_STREAM = 1;
const END_HEADERS = 4;
/** A connection with the headers of a call. */
const START_OF_CALL = Buffer.concat([
  encodeClientPreface(),
  encodeFrame(
    FRAME_TYPES.headers,
    END_HEADERS,
    1,
    encodeHeaders(Object.entries({ ":scheme": "http", ":authority": "test", ...HEADERS })).first,
  ),
]);

async function startCall(setup: TestServerOptions = {}, headers: Record<string, string> = {}) {
  const server = await startTestServer(setup);
  const session = connectHttp2(server.url);
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  const stream = session.request({ ...HEADERS, ...headers });
  stream.on("error", () => {});
  return { ...server, session, stream };
}

/** Returns the gRPC status from the trailers. */
async function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  stream.resume();
  const [trailers] = (await once(stream, "trailers")) as [IncomingHttpHeaders];
  return trailers["grpc-status"];
}

describeOnBothPaths(() => {
  describe("a gRPC call", () => {
    test.each([
      ["nothing", Buffer.alloc(0)],
      ["half a message", Buffer.from([0, 0, 0])],
      ["a message without its end", EMPTY],
    ])("of which only %s arrives fails after the timeout", async (_, body) => {
      // A busy machine may be late with the headers.
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const { stream, server, accessLines, waitForAccessLines } = await startCall({
        limits: { requestMs: 100, headersMs: 100 },
      });
      stream.write(body);
      let status: unknown;
      void statusOf(stream).then((received) => {
        status = received;
      });
      await expect.poll(() => server.getLoad().requests).toBe(1);
      await expect
        .poll(() => {
          vi.advanceTimersByTime(100);
          return status;
        })
        .toBe("3");
      stream.close();
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ protocol: "grpc", operation: QUOTE, code: "invalid_argument" }]);
    });

    test.each([
      ["nothing", "", "unimplemented"],
      ["two messages", "00000000000000000000", "unimplemented"],
      ["a message that is cut off", "0000000009", "unimplemented"],
    ])("that arrives whole with %s is answered at once", async (_, hex, code) => {
      const { port, accessLines, waitForAccessLines } = await startTestServer();
      const socket = await openRawSocket(port);
      onTestFinished(() => void socket.destroy());
      const data = encodeFrame(FRAME_TYPES.data, END_STREAM, 1, Buffer.from(hex, "hex"));
      socket.write(Buffer.concat([START_OF_CALL, data]));
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ protocol: "grpc", operation: QUOTE, code }]);
    });

    test("whose body exceeds the limit is rejected before its end", async () => {
      const { stream, accessLines, waitForAccessLines } = await startCall({ limits: { requestBytes: 100 } });
      stream.write(Buffer.concat([Buffer.from([0, 0, 0, 9, 0]), Buffer.alloc(200)]));
      expect(await statusOf(stream)).toBe("8");
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ code: "resource_exhausted" }]);
    });

    test.each([
      ["before its message", false],
      ["during the operation", true],
    ])("that its caller resets %s is logged as canceled", async (_, isAsked) => {
      let onAsked = (): void => {};
      const reached = new Promise<void>((resolve) => {
        onAsked = resolve;
      });
      const signals: AbortSignal[] = [];
      const { stream, accessLines, internalErrors, waitForAccessLines } = await startCall({
        getQuote: (_request, { signal }) => {
          signals.push(signal);
          onAsked();
          return new Promise((resolve) => {
            signal.addEventListener("abort", () => resolve(create(GetQuoteResponseSchema)));
          });
        },
      });
      if (isAsked) stream.end(EMPTY);
      else stream.write(EMPTY.subarray(0, 2));
      if (isAsked) await reached;
      else await once(stream, "ready").catch(() => {});
      stream.close(8);
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ protocol: "grpc", code: "canceled" }]);
      expect(signals.map(({ aborted }) => aborted)).toEqual(isAsked ? [true] : []);
      expect(internalErrors).toEqual([]);
    });

    test("whose response is left unread is ended", async () => {
      const amountIn = "9".repeat(1_000_000);
      const { stream, accessLines, waitForAccessLines } = await startCall({
        limits: { responseMs: 200, minBytesPerSecond: Number.POSITIVE_INFINITY },
        getQuote: () => create(GetQuoteResponseSchema, { amountIn }),
      });
      stream.pause();
      stream.end(EMPTY);
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ code: "canceled" }]);
    });
  });
});

test("the fast path creates no signal for an operation that does not read it", async () => {
  let seen: object = {};
  const { stream } = await startCall({
    getQuote: (_request, context) => {
      seen = context;
      return create(GetQuoteResponseSchema, { amountIn: "1" });
    },
  });
  stream.end(EMPTY);
  expect(await statusOf(stream)).toBe("0");
  expect(Object.values(seen).filter((value) => value instanceof AbortController)).toEqual([]);
});

test.each([
  ["whole", true],
  ["in parts", false],
])("a call that arrives %s waits for its body only as far as it has to", async (_, isWhole) => {
  const requestMs = 23_456;
  const { port, accessLines, waitForAccessLines } = await startTestServer({ limits: { requestMs } });
  const setTimer = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => setTimer.mockRestore());
  const socket = await openRawSocket(port);
  onTestFinished(() => void socket.destroy());
  const data = encodeFrame(FRAME_TYPES.data, END_STREAM, 1, EMPTY);
  socket.write(Buffer.concat([START_OF_CALL, isWhole ? data : Buffer.alloc(0)]));
  const countBodyTimers = () => setTimer.mock.calls.filter(([, ms]) => ms === requestMs).length;
  if (!isWhole) {
    await vi.waitFor(() => expect(countBodyTimers()).toBe(1), { timeout: 60_000 });
    socket.write(data);
  }
  await waitForAccessLines(1);
  expect(accessLines).toMatchObject([{ protocol: "grpc", code: "ok" }]);
  expect(countBodyTimers()).toBe(isWhole ? 0 : 1);
});
