import { create, type Message } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WatchTransfersRequestSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { RequestContext } from "../../../../src/http/request/request-context.js";
import { StreamingCalls, type StreamOutcome } from "../../../../src/http/stream/streaming-calls.js";
import type { MessageStream, StreamHandlers } from "../../../../src/operations/operation.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { bookmarkEvent } from "../support/stream-contract.js";
import { UNLIMITED_CALLS } from "../support/test-server.js";

// What an operation sees of its stream, whatever the protocol.

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Stream = MessageStream<Message>;

function start({
  run = () => {},
  remainingMs,
  bytes = 100,
  handlers = {},
}: {
  run?: (stream: Stream) => void;
  remainingMs?: number;
  /** Size of each message. */
  bytes?: number;
  handlers?: Partial<Record<keyof StreamHandlers, (stream: Stream) => void>>;
} = {}) {
  const events: string[] = [];
  const flushes: (() => void)[] = [];
  const outcomes: StreamOutcome[] = [];
  const draining = new AbortController();
  const calls = new StreamingCalls(draining.signal);
  const context = new RequestContext({}, undefined, {
    log: (entry) => events.push(`logged ${entry.fields?.messages}`),
    onInternalError() {},
    trustProxy: false,
    ...UNLIMITED_CALLS,
    eventLoop: new FairScheduler(),
  });
  let stream: Stream | undefined;
  const call = {
    context,
    operation: (_: Message, given: Stream) => {
      stream = given;
      run(given);
      const handle = (name: keyof StreamHandlers) => () => {
        events.push(name);
        handlers[name]?.(given);
      };
      return { onReady: handle("onReady"), onDrain: handle("onDrain"), onEnd: handle("onEnd") };
    },
    request: create(WatchTransfersRequestSchema),
    transport: {
      write(_: Message, onFlushed: () => void) {
        flushes.push(onFlushed);
        return bytes;
      },
      finish: (outcome: StreamOutcome) => void outcomes.push(outcome),
    },
    remainingMs,
  };
  const open = () => {
    calls.open(call);
    return stream as Stream;
  };
  return {
    ...{ open, calls, call, context, draining, events, outcomes },
    flush: (count = flushes.length) => {
      for (const onFlushed of flushes.splice(0, count)) onFlushed();
    },
  };
}
const message = bookmarkEvent("t");
const fail = (error: Error): never => {
  throw error;
};

test("is ready until 4 KiB wait, and tells when all of them are taken, if it was asked meanwhile", () => {
  const { open, flush, events } = start({ bytes: 2000 });
  const stream = open();
  stream.send(message);
  stream.send(message);
  expect(stream.isReady()).toBe(true);
  flush();
  expect(events).toEqual([]);
  for (let sent = 0; sent < 3; sent += 1) stream.send(message);
  expect(stream.isReady()).toBe(false);
  flush(1);
  expect(events).toEqual([]);
  flush();
  expect(events).toEqual(["onReady"]);
  expect(stream.isReady()).toBe(true);
});

test("accepts single messages while it is not ready, and none after its end", () => {
  const { open, context, events, outcomes } = start({ bytes: 5000 });
  const stream = open();
  stream.send(message);
  expect(stream.isReady()).toBe(false);
  stream.send(message);
  stream.end();
  stream.send(message);
  stream.end(new Error("late"));
  stream.interrupt();
  expect(stream.isReady()).toBe(false);
  context.end(true);
  expect(events).toEqual(["onEnd", "logged 2"]);
  expect(outcomes).toEqual([{ kind: "complete" }]);
});

describe("calls onEnd once", () => {
  test.each<[string, (stream: Stream) => void, StreamOutcome["kind"]]>([
    ["at its end", (stream) => stream.end(), "complete"],
    ["at an error", (stream) => stream.end(new Error("x")), "failed"],
    ["when it is interrupted", (stream) => stream.interrupt(), "interrupted"],
  ])("%s, during the operation and after it", (_, finish, kind) => {
    for (const isDuring of [true, false]) {
      const { open, context, events, outcomes } = start({ run: isDuring ? finish : () => {} });
      const stream = open();
      if (!isDuring) finish(stream);
      expect(events).toEqual(["onEnd"]);
      context.end(true);
      expect(events).toEqual(["onEnd", "logged 0"]);
      expect(outcomes).toMatchObject([{ kind }]);
    }
  });

  test("at the deadline of its caller, and keeps no timer beyond its end", () => {
    const late = start({ remainingMs: 5000 });
    late.open();
    vi.advanceTimersByTime(4999);
    expect(late.outcomes).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late.outcomes).toMatchObject([{ kind: "failed", error: { rawMessage: "the operation timed out" } }]);
    expect(late.events).toEqual(["onEnd"]);
    const early = start({ remainingMs: 5000 });
    early.open().end();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("but not for an operation that throws", () => {
    const error = new Error("bad request");
    const { open, events, outcomes } = start({ run: () => fail(error) });
    open();
    expect(events).toEqual([]);
    expect(outcomes).toEqual([{ kind: "failed", error }]);
  });
});

test("an error of a handler fails the stream", () => {
  const error = new Error("x");
  const { open, draining, events, outcomes } = start({ handlers: { onDrain: () => fail(error) } });
  open();
  draining.abort();
  expect(events).toEqual(["onDrain", "onEnd"]);
  expect(outcomes).toEqual([{ kind: "failed", error }]);
});

test("a message that does not serialise fails the stream", () => {
  const { calls, call, outcomes } = start({ run: (stream) => stream.send(message) });
  const error = new Error("not serialisable");
  const write = () => fail(error);
  calls.open({ ...call, transport: { ...call.transport, write } });
  expect(outcomes).toEqual([{ kind: "failed", error }]);
});

describe("when the server stops", () => {
  test("a stream gets its turn, and ends a second later if its operation does not end it", () => {
    const { open, draining, events, outcomes } = start();
    open();
    draining.abort();
    expect(events).toEqual(["onDrain"]);
    vi.advanceTimersByTime(999);
    expect(outcomes).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(outcomes).toEqual([{ kind: "interrupted" }]);
    expect(events).toEqual(["onDrain", "onEnd"]);
  });

  test("a stream that opens later is told at once", () => {
    const { open, draining, events, outcomes } = start({ handlers: { onDrain: (stream) => stream.interrupt() } });
    draining.abort();
    open();
    expect(events).toEqual(["onDrain", "onEnd"]);
    expect(outcomes).toEqual([{ kind: "interrupted" }]);
  });

  /** Opens streams of which each takes some time to end. */
  function openSlow(count: number, drainMs: number) {
    const clock = { ms: 0 };
    const onDrain = (): void => {
      clock.ms += drainMs;
    };
    const started = start({ handlers: { onDrain } });
    const calls = new StreamingCalls(started.draining.signal, () => clock.ms);
    for (let opened = 0; opened < count; opened += 1) calls.open(started.call);
    return { ...started, calls, clock };
  }

  test("a stream that opens later leaves the turns of the others as they are", () => {
    const { calls, call, draining, events } = openSlow(5, 100);
    draining.abort();
    expect(events).toHaveLength(2);
    calls.open(call);
    expect(events).toHaveLength(3);
    vi.advanceTimersByTime(1);
    expect(events).toEqual(Array.from({ length: 6 }, () => "onDrain"));
  });

  test("each stream gets its turn, some in each turn of the event loop", () => {
    const { draining, events, outcomes } = openSlow(250, 10);
    draining.abort();
    expect(events).toHaveLength(20);
    vi.runAllTimers();
    expect(outcomes).toEqual(Array.from({ length: 250 }, () => ({ kind: "interrupted" })));
  });

  test("streams come before what else takes the event loop", () => {
    const { draining, events, clock } = openSlow(5_000, 1);
    const workElse = (): void => {
      clock.ms += 100;
      if (events.length < 5_000) setImmediate(workElse);
    };
    setImmediate(workElse);
    draining.abort();
    while (events.length < 5_000) vi.advanceTimersToNextTimer();
    // 5 s of their own, in 25 turns.
    expect(clock.ms).toBeLessThanOrEqual(5_000 + 25 * 100);
  });

  test("the streams that are left are told at once when the time is nearly over", () => {
    const { calls, draining, events } = openSlow(50, 100);
    draining.abort();
    expect(events).toHaveLength(2);
    calls.drainRest();
    expect(events).toHaveLength(50);
    vi.runAllTimers();
    expect(events.filter((event) => event === "onDrain")).toHaveLength(50);
  });
});

describe("the messages for Connect", () => {
  test("are read one by one: the stream is ready when the next is asked for", async () => {
    const { calls, call, events } = start();
    let stream: Stream | undefined;
    const { operation } = call;
    const iterator = calls.iterate({
      ...call,
      operation: (request, given) => {
        stream = given;
        return operation(request, given);
      },
    });
    const first = iterator.next();
    stream?.send(message);
    expect(stream?.isReady()).toBe(false);
    expect((await first).value).toBe(message);
    expect(events).toEqual([]);
    const second = iterator.next();
    expect(events).toEqual(["onReady"]);
    stream?.send(message);
    stream?.end();
    expect((await second).value).toBe(message);
    expect((await iterator.next()).done).toBe(true);
  });

  test("end with the error of the stream", async () => {
    const error = new Error("x");
    const { calls, call } = start({ run: (stream) => stream.end(error) });
    await expect(calls.iterate(call).next()).rejects.toBe(error);
  });
});

test("a call whose deadline has passed before it opens ends at once, without its operation", async () => {
  const { calls, call, context, events, outcomes } = start();
  const late = new AbortController();
  const reason = new Error("too late");
  late.abort(reason);
  calls.open({ ...call, signal: late.signal });
  expect(outcomes).toEqual([{ kind: "failed", error: reason }]);
  context.end(true);
  expect(events).toEqual(["logged 0"]);
  const second = start();
  // Its caller is gone, too.
  second.context.end(false);
  const messages = second.calls.iterate({ ...second.call, signal: late.signal });
  await expect(messages.next()).rejects.toBe(reason);
});
