import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport, type HandlerContext } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  BridgeService,
  GetTransferStatusResponse_State as State,
  type WatchTransfersRequest,
  type WatchTransfersResponse,
  WatchTransfersResponseSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { getErrorDetails, type WatchTransfersOptions, watchTransfers } from "../../../src/client.js";
import { ServiceError } from "../../../src/errors.js";
import { toConnectError } from "../../../src/http/request/error-mapping.js";

type Stream = (request: WatchTransfersRequest, context: HandlerContext) => AsyncIterable<WatchTransfersResponse>;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0);
});
afterEach(() => void vi.restoreAllMocks());

const state = (resumeToken: string, transferId: string, value = State.PENDING, transactionHash = `${transferId}h`) =>
  create(WatchTransfersResponseSchema, {
    resumeToken,
    event: { case: "transfer", value: { transferId, transactionHash, state: value } },
  });
const unknown = (resumeToken: string, transferHash: string) =>
  create(WatchTransfersResponseSchema, { resumeToken, event: { case: "unknown", value: { transferHash } } });
const bookmark = (resumeToken: string) =>
  create(WatchTransfersResponseSchema, { resumeToken, event: { case: "bookmark", value: {} } });

const unreachable = () => new ConnectError("no route", Code.Unavailable);
const rejected = (...args: ConstructorParameters<typeof ServiceError>) =>
  toConnectError(new ServiceError(...args), "hop.bridge.v1", {});

/** Sends messages one after the other, and fails where it comes to an error. */
const sends = (...items: readonly (WatchTransfersResponse | Error)[]): Stream =>
  async function* stream() {
    for (const item of items) {
      if (item instanceof Error) throw item;
      yield item;
    }
  };

/** Runs a watch whose calls get the streams in turn, until its end; the clock runs whenever the watch waits. */
async function watch(
  streams: readonly Stream[],
  options: WatchTransfersOptions = {},
  request: { readonly resumeToken?: string } = {},
) {
  const requests: WatchTransfersRequest[] = [];
  const transport = createRouterTransport(({ rpc }) => {
    rpc(BridgeService.method.watchTransfers, (received, context) => {
      requests.push(received);
      const stream = streams[requests.length - 1];
      if (stream === undefined) throw new ConnectError("no further stream", Code.PermissionDenied);
      return stream(received, context);
    });
  });
  const client = createClient(BridgeService, transport);
  const events: string[] = [];
  const delaysMs: number[] = [];
  const onRetry = (error: ConnectError, delayMs: number): void => {
    delaysMs.push(delayMs);
    options.onRetry?.(error, delayMs);
  };
  let outcome: unknown = "running";
  async function run(): Promise<void> {
    for await (const { event, resumeToken } of watchTransfers(
      client,
      { transferId: ["a"], ...request },
      { ...options, onRetry },
    ))
      events.push(event.case === "transfer" ? `${State[event.value.state]} ${resumeToken}` : `unknown ${resumeToken}`);
  }
  const ended = run().then(
    () => (outcome = "complete"),
    (error: unknown) => (outcome = error),
  );
  while (outcome === "running") await vi.advanceTimersByTimeAsync(500);
  await ended;
  return { events, outcome, delaysMs, tokens: requests.map(({ resumeToken }) => resumeToken), requests };
}

test("returns every state until the stream is complete", async () => {
  const stream = sends(unknown("1", "ah"), state("2", "a"), state("3", "a", State.BONDED));
  const events = ["unknown 1", "PENDING 2", "BONDED 3"];
  expect(await watch([stream])).toMatchObject({ events, outcome: "complete", tokens: [""] });
});

test("takes an empty stream for complete", async () => {
  expect(await watch([sends()])).toMatchObject({ events: [], outcome: "complete" });
});

test("resumes a stream that ends with a bookmark, without saying so", async () => {
  const streams = [sends(state("2", "a"), bookmark("3")), sends(state("4", "a", State.BONDED))];
  expect(await watch(streams, {}, { resumeToken: "1" })).toMatchObject({
    events: ["PENDING 2", "BONDED 4"],
    outcome: "complete",
    tokens: ["1", "3"],
    delaysMs: [],
  });
});

describe("resumes after", () => {
  const RESUMED = { events: ["PENDING 1", "BONDED 2"], outcome: "complete", tokens: ["", "1"] };

  test.each([
    ["an unreachable server", unreachable()],
    ["a connection that breaks", new ConnectError("aborted", Code.Aborted)],
    ["a response that is cut off", new ConnectError("missing EndStreamResponse", Code.InvalidArgument)],
    ["a stream that is reset", new ConnectError("closed with error code CANCEL", Code.Canceled)],
    ["a browser's network error", new TypeError("Failed to fetch")],
    ["UPSTREAM_UNAVAILABLE", rejected("UPSTREAM_UNAVAILABLE", "polygon does not answer")],
    ["OVERLOADED", rejected("OVERLOADED", "too many watches")],
  ])("%s", async (_, error) => {
    const watched = await watch([sends(state("1", "a"), error), sends(state("2", "a", State.BONDED))]);
    expect(watched).toMatchObject(RESUMED);
  });

  test("silence that is longer than two bookmarks", async () => {
    const ended = vi.fn();
    const silent: Stream = async function* silent(_, { signal }) {
      yield state("1", "a");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      ended();
    };
    expect(await watch([silent, sends(state("2", "a", State.BONDED))])).toMatchObject(RESUMED);
    expect(ended).toHaveBeenCalledOnce();
  });
});

test("waits longer with each failure in a row, up to half a minute", async () => {
  const failing = Array.from({ length: 7 }, () => sends(unreachable()));
  const { delaysMs } = await watch([...failing, sends(bookmark("1"), unreachable()), sends()]);
  expect(delaysMs).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 500]);
});

test("spreads the attempts of many clients", async () => {
  vi.mocked(Math.random).mockReturnValue(0.5);
  expect((await watch([sends(unreachable()), sends()])).delaysMs).toEqual([750]);
});

test.each([
  [{ retryAfterSeconds: 5 }, 5_500],
  [{}, 500],
])("waits for Retry-After: %o", async (options, delayMs) => {
  const limited = rejected("RATE_LIMITED", "too many", options);
  expect((await watch([sends(limited), sends()])).delaysMs).toEqual([delayMs]);
});

test.each([
  ["Wed, 21 Oct 2026 07:28:00 GMT", 500],
  ["99999999999", 600_500],
])("bounds the Retry-After %s of a proxy", async (value, delayMs) => {
  const limited = new ConnectError("slow down", Code.Unavailable, { "retry-after": value });
  expect((await watch([sends(limited), sends()])).delaysMs).toEqual([delayMs]);
});

describe("throws", () => {
  test.each([
    ["INVALID_PARAMETER", rejected("INVALID_PARAMETER", "no id", { field: "transferId" })],
    ["INDEX_REQUIRED", rejected("INDEX_REQUIRED", "no index")],
    ["INTERNAL", rejected("INTERNAL", "internal error")],
  ])("the service's %s", async (reason, error) => {
    const { outcome, tokens } = await watch([sends(error)]);
    expect([getErrorDetails(outcome)?.reason, tokens.length]).toEqual([reason, 1]);
  });

  test("a proxy's refusal", async () => {
    const { outcome } = await watch([sends(new ConnectError("who are you", Code.Unauthenticated))]);
    expect(outcome).toMatchObject({ code: Code.Unauthenticated });
  });

  test("for a token of another watch that the caller gave", async () => {
    const error = rejected("INVALID_PARAMETER", "resumeToken is not one of this service", { field: "resumeToken" });
    const { outcome } = await watch([sends(error)], {}, { resumeToken: "x" });
    expect(getErrorDetails(outcome)?.field).toBe("resumeToken");
  });

  test("what onRetry throws", async () => {
    const enough = new Error("enough");
    const onRetry = (): void => {
      throw enough;
    };
    expect((await watch([sends(unreachable())], { onRetry })).outcome).toBe(enough);
  });
});

describe("does not repeat states", () => {
  test("that a service sends again because the token is too old", async () => {
    const first = sends(state("1", "a"), unknown("2", "bh"), state("3", "c"), bookmark("4"));
    const again = sends(state("5", "a"), unknown("6", "bh"), state("7", "c", State.BONDED));
    expect((await watch([first, again])).events).toEqual(["PENDING 1", "unknown 2", "PENDING 3", "BONDED 7"]);
  });

  test("when a new version of the service does not know the token", async () => {
    const refused = rejected("INVALID_PARAMETER", "resumeToken is not one of this service", { field: "resumeToken" });
    const again = sends(state("3", "a"), state("4", "a", State.BONDED));
    const { events, tokens, outcome } = await watch([sends(state("1", "a"), bookmark("2")), sends(refused), again]);
    expect([events, tokens, outcome]).toEqual([["PENDING 1", "BONDED 4"], ["", "2", ""], "complete"]);
  });

  test("but returns a state that comes back", async () => {
    const [pending, bonded] = [state("1", "a"), state("2", "a", State.BONDED)];
    const { events } = await watch([sends(pending, bonded, state("3", "a"), state("4", "a", State.BONDED))]);
    expect(events).toEqual(["PENDING 1", "BONDED 2", "PENDING 3", "BONDED 4"]);
  });

  test("but returns a transfer that was unknown in between", async () => {
    const reorganized = sends(unknown("1", "ah"), state("2", "a"), unknown("3", "ah"), state("4", "a"));
    expect((await watch([reorganized])).events).toEqual(["unknown 1", "PENDING 2", "unknown 3", "PENDING 4"]);
  });
});

describe("ends with its signal", () => {
  /** Sends one state and then nothing; notes when the call has ended. */
  function createOpenStream() {
    const ended = vi.fn();
    const stream: Stream = async function* open(_, { signal }) {
      signal.addEventListener("abort", ended);
      yield state("1", "a");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    };
    return { stream, ended };
  }

  test.each([
    ["while the stream is open", 5_000],
    ["between two attempts", 45_600],
  ])("%s", async (_, afterMs) => {
    const closing = new AbortController();
    const { stream, ended } = createOpenStream();
    setTimeout(() => closing.abort(), afterMs);
    const { events, outcome } = await watch([stream, stream], { signal: closing.signal });
    expect({ events, outcome }).toMatchObject({ events: ["PENDING 1"], outcome: { code: Code.Canceled } });
    expect(ended).toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("if it is aborted already", async () => {
    const { outcome } = await watch([sends(state("1", "a"))], { signal: AbortSignal.abort() });
    expect(outcome).toMatchObject({ code: Code.Canceled });
  });

  test("and the call ends when the loop is left", async () => {
    const { stream, ended } = createOpenStream();
    const transport = createRouterTransport(({ rpc }) => {
      rpc(BridgeService.method.watchTransfers, stream);
    });
    for await (const { resumeToken } of watchTransfers(createClient(BridgeService, transport), { transferId: ["a"] })) {
      expect(resumeToken).toBe("1");
      break;
    }
    await vi.waitFor(() => expect(ended).toHaveBeenCalled(), { timeout: 60_000 });
    expect(vi.getTimerCount()).toBe(0);
  });
});
