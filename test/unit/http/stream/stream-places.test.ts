import { expect, test } from "vitest";
import { type AccessLogEntry, RequestContext } from "../../../../src/http/request/request-context.js";
import { StreamPlaces } from "../../../../src/http/stream/stream-places.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";

const refusedWith = (reason: string) => expect.objectContaining({ reason, retryAfterSeconds: 5 });

const fill = (places: StreamPlaces, caller: string, count: number): (() => void)[] =>
  Array.from({ length: count }, () => places.acquire(caller));

function createCall() {
  const entries: AccessLogEntry[] = [];
  const context = new RequestContext(
    {},
    { remoteAddress: "192.0.2.1" },
    {
      log: (entry) => entries.push(entry),
      onInternalError() {},
      trustProxy: false,
      eventLoop: new FairScheduler(),
    },
  );
  return { context, entries };
}

test("refuses a caller with RATE_LIMITED at its share, while others still get streams", () => {
  const places = new StreamPlaces({ total: 10 });
  fill(places, "a", 5);
  expect(() => places.acquire("a")).toThrow(refusedWith("RATE_LIMITED"));
  fill(places, "b", 2);
  expect(places.openCount).toBe(7);
});

test("refuses everybody with OVERLOADED when no place is left", () => {
  const places = new StreamPlaces({ total: 3 });
  for (const caller of ["a", "b", "c"]) fill(places, caller, 1);
  for (const caller of ["a", "d"]) expect(() => places.acquire(caller)).toThrow(refusedWith("OVERLOADED"));
});

test("limits streams that take a connection to their share, and leaves the other places to the others", () => {
  const places = new StreamPlaces({ total: 100, connections: 4 });
  const release = places.acquire("a", true);
  places.acquire("a", true);
  expect(() => places.acquire("a", true)).toThrow(refusedWith("RATE_LIMITED"));
  places.acquire("b", true);
  places.acquire("c", true);
  expect(() => places.acquire("d", true)).toThrow(refusedWith("OVERLOADED"));
  expect(places.openCount).toBe(4);
  places.acquire("a");
  release();
  places.acquire("d", true);
  expect(places.openCount).toBe(5);
});

test("a stream is logged as one, so that its time is not counted as that of an answer", () => {
  const places = new StreamPlaces({ total: 1 });
  const [stream, answer] = [createCall(), createCall()];
  places.admit(stream);
  stream.context.end(true);
  answer.context.end(true);
  expect([...stream.entries, ...answer.entries]).toMatchObject([{ isStream: true }, { isStream: false }]);
});

test("a stream has its place until it is released or its request ends, and gives it back once", () => {
  const places = new StreamPlaces({ total: 4 });
  const [first, second] = [createCall(), createCall()];
  const release = places.admit(first);
  places.admit(second);
  expect(places.openCount).toBe(2);
  expect(() => places.admit(createCall())).toThrow("streams");
  release();
  release();
  expect(places.openCount).toBe(1);
  first.context.end(true);
  second.context.end(false);
  expect(places.openCount).toBe(0);
});

test("a stream that is refused counts as an answer", () => {
  const { context, entries } = createCall();
  expect(() => new StreamPlaces({ total: 0 }).admit({ context })).toThrow();
  context.end(true);
  expect(entries).toMatchObject([{ isStream: false }]);
});
