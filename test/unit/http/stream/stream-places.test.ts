import { expect, test } from "vitest";
import { type AccessLogEntry, RequestContext } from "../../../../src/http/request/request-context.js";
import { StreamPlaces } from "../../../../src/http/stream/stream-places.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { UNLIMITED_CALLS } from "../support/test-server.js";

const refusedWith = (reason: string) => expect.objectContaining({ reason, retryAfterSeconds: 5 });

function createCall() {
  const entries: AccessLogEntry[] = [];
  const context = new RequestContext(
    {},
    { remoteAddress: "192.0.2.1" },
    {
      log: (entry) => entries.push(entry),
      onInternalError() {},
      trustProxy: false,
      ...UNLIMITED_CALLS,
      eventLoop: new FairScheduler(),
    },
  );
  return { context, entries };
}

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

test("a stream gives its place back once, when it is released or its request ends", () => {
  const places = new StreamPlaces({ total: 4 });
  const first = createCall();
  const release = places.admit(first);
  places.admit(createCall());
  release();
  release();
  first.context.end(true);
  expect(places.openCount).toBe(1);
});

test("a stream that is refused counts as an answer", () => {
  const { context, entries } = createCall();
  expect(() => new StreamPlaces({ total: 0 }).admit({ context })).toThrow();
  context.end(true);
  expect(entries).toMatchObject([{ isStream: false }]);
});
