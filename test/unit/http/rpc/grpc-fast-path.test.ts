import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_TYPES,
} from "../../../../bench/support/http2-frames.js";
import { GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { openHttp2, openRawSocket, readStream } from "../support/raw-client.js";
import {
  createLargeQuote,
  createLatch,
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

async function startCall(setup: TestServerOptions = {}) {
  const server = await startTestServer(setup);
  const stream = openHttp2(server.port).request(HEADERS);
  stream.on("error", () => {});
  const outcome = async () => (await readStream(stream)).fields["grpc-status"];
  return { ...server, stream, outcome };
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
      const limits = { requestMs: 100, headersMs: 100 };
      const { stream, server, outcome, logged } = await startCall({ limits });
      stream.write(body);
      let status: unknown;
      stream.on("trailers", (trailers) => {
        status = trailers["grpc-status"];
      });
      void outcome();
      await expect.poll(() => server.getLoad().requests).toBe(1);
      await expect
        .poll(() => {
          vi.advanceTimersByTime(100);
          return status;
        })
        .toBe("3");
      stream.close();
      expect(await logged(1)).toMatchObject([{ protocol: "grpc", operation: QUOTE, code: "invalid_argument" }]);
    });

    test.each([
      ["nothing", "", "unimplemented"],
      ["two messages", "00000000000000000000", "unimplemented"],
      ["a message that is cut off", "0000000009", "unimplemented"],
    ])("that arrives whole with %s is answered at once", async (_, hex, code) => {
      const { port, logged } = await startTestServer();
      const socket = await openRawSocket(port);
      const data = encodeFrame(FRAME_TYPES.data, END_STREAM, 1, Buffer.from(hex, "hex"));
      socket.write(Buffer.concat([START_OF_CALL, data]));
      expect(await logged(1)).toMatchObject([{ protocol: "grpc", operation: QUOTE, code }]);
    });

    test("whose body exceeds the limit is rejected before its end", async () => {
      const { stream, outcome, logged } = await startCall({ limits: { requestBytes: 100 } });
      stream.write(Buffer.concat([Buffer.from([0, 0, 0, 9, 0]), Buffer.alloc(200)]));
      expect(await outcome()).toBe("8");
      expect(await logged(1)).toMatchObject([{ code: "resource_exhausted" }]);
    });

    test.each([
      ["before its message", false],
      ["during the operation", true],
    ])("that its caller resets %s is logged as canceled", async (_, isAsked) => {
      const { opened: reached, open: onAsked } = createLatch();
      const signals: AbortSignal[] = [];
      const { stream, internalErrors, logged } = await startCall({
        getQuote: (_request, { signal }) => {
          signals.push(signal);
          onAsked();
          return new Promise((resolve) => {
            signal.addEventListener("abort", () => resolve(create(GetQuoteResponseSchema)));
          });
        },
      });
      if (isAsked) {
        stream.end(EMPTY);
        await reached;
      } else {
        stream.write(EMPTY.subarray(0, 2));
        await once(stream, "ready");
      }
      stream.close(8);
      expect(await logged(1)).toMatchObject([{ protocol: "grpc", code: "canceled" }]);
      expect(signals.map(({ aborted }) => aborted)).toEqual(isAsked ? [true] : []);
      expect(internalErrors).toEqual([]);
    });

    test("whose response is left unread is ended", async () => {
      const { stream, logged } = await startCall({
        limits: { responseMs: 200, minBytesPerSecond: Number.POSITIVE_INFINITY },
        getQuote: () => createLargeQuote(1_000_000),
      });
      stream.pause();
      stream.end(EMPTY);
      expect(await logged(1)).toMatchObject([{ code: "canceled" }]);
    });
  });
});

test("the fast path creates no signal for an operation that does not read it", async () => {
  let seen: object = {};
  const { stream, outcome } = await startCall({
    getQuote: (_request, context) => {
      seen = context;
      return createLargeQuote(1);
    },
  });
  stream.end(EMPTY);
  expect(await outcome()).toBe("0");
  expect(Object.values(seen).filter((value) => value instanceof AbortController)).toEqual([]);
});

test.each([
  ["whole", true],
  ["in parts", false],
])("a call that arrives %s waits for its body only as far as it has to", async (_, isWhole) => {
  const requestMs = 23_456;
  const { port, logged } = await startTestServer({ limits: { requestMs } });
  const setTimer = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => setTimer.mockRestore());
  const socket = await openRawSocket(port);
  const data = encodeFrame(FRAME_TYPES.data, END_STREAM, 1, EMPTY);
  socket.write(Buffer.concat([START_OF_CALL, isWhole ? data : Buffer.alloc(0)]));
  const countBodyTimers = () => setTimer.mock.calls.filter(([, ms]) => ms === requestMs).length;
  if (!isWhole) {
    await vi.waitFor(() => expect(countBodyTimers()).toBe(1), { timeout: 60_000 });
    socket.write(data);
  }
  expect(await logged(1)).toMatchObject([{ protocol: "grpc", code: "ok" }]);
  expect(countBodyTimers()).toBe(isWhole ? 0 : 1);
});
