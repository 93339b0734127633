import { expect, test } from "vitest";
import { createStreamQuota } from "../../../../src/http/admission/stream-quota.js";
import { type AccessLogEntry, HttpRequestContext } from "../../../../src/http/request/request-context.js";
import { admitStream } from "../../../../src/http/stream/admit-stream.js";

function createCall() {
  const entries: AccessLogEntry[] = [];
  const context = new HttpRequestContext(
    {},
    { remoteAddress: "192.0.2.1" },
    {
      log: (entry) => entries.push(entry),
      onInternalError() {},
      trustProxy: false,
    },
  );
  return { context, entries };
}

test("a stream is logged as one, so that its time is not counted as that of an answer", () => {
  const quota = createStreamQuota({ total: 1 });
  const stream = createCall();
  admitStream(stream, quota);
  stream.context.end(true);
  const answer = createCall();
  answer.context.end(true);
  expect([...stream.entries, ...answer.entries]).toMatchObject([{ isStream: true }, { isStream: false }]);
});

test("a stream has its place until it is released or its request ends, and gives it back once", () => {
  const quota = createStreamQuota({ total: 4 });
  const [first, second] = [createCall(), createCall()];
  const release = admitStream(first, quota);
  admitStream(second, quota);
  expect(quota.openCount()).toBe(2);
  expect(() => admitStream(createCall(), quota)).toThrow("streams");
  release();
  release();
  expect(quota.openCount()).toBe(1);
  first.context.end(true);
  second.context.end(false);
  expect(quota.openCount()).toBe(0);
});

test("a stream that is refused counts as an answer", () => {
  const quota = createStreamQuota({ total: 0 });
  const { context, entries } = createCall();
  expect(() => admitStream({ context }, quota)).toThrow();
  context.end(true);
  expect(entries).toMatchObject([{ isStream: false }]);
});
