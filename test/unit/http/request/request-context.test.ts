import { expect, test } from "vitest";
import {
  createRequestId,
  RequestContext,
  type RequestContextOptions,
  type RequestSpan,
} from "../../../../src/http/request/request-context.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { UNLIMITED_CALLS } from "../support/test-server.js";

const OPTIONS: RequestContextOptions = {
  log() {},
  onInternalError() {},
  trustProxy: false,
  ...UNLIMITED_CALLS,
  eventLoop: new FairScheduler(),
};

/** A traced call, and how often its trace started and ended. */
function setup() {
  const told: string[] = [];
  const trace: RequestSpan = {
    run(work) {
      told.push("run");
      return work();
    },
    end: ({ code }) => void told.push(`end ${code}`),
  };
  const startTrace = () => {
    told.push("begin");
    return trace;
  };
  const call = new RequestContext({}, undefined, { ...OPTIONS, tracer: { startTrace } });
  return { call, told };
}

test("traces a call from its operation to its end", () => {
  const { call, told } = setup();
  expect(call.runTraced(() => 7)).toBe(7);
  call.code = "ok";
  call.end(true);
  expect(told).toEqual(["begin", "run", "end ok"]);
});

test("traces calls that are rejected before their operation", () => {
  const { call, told } = setup();
  call.code = "not_found";
  call.end(true);
  expect(told).toEqual(["begin", "end not_found"]);
});

test("starts and ends one trace for a call whose caller left before the operation", () => {
  const { call, told } = setup();
  call.end(false);
  expect(call.runTraced(() => 7)).toBe(7);
  expect(told).toEqual(["begin", "end canceled"]);
});

test.each([
  ["its call is answered", (call: RequestContext) => void call.run(() => 1, null, undefined), [true, false]],
  ["its caller is gone", (call: RequestContext) => call.end(false), [true, true]],
])("ends the work of a call when %s, whether its signal was read before or not", (_, end, expected) => {
  const { call } = setup();
  const early = [call.signal, call.callerSignal];
  end(call);
  const { call: unread } = setup();
  end(unread);
  for (const signals of [early, [unread.signal, unread.callerSignal]])
    expect(signals.map(({ aborted }) => aborted)).toEqual(expected);
});

test("creates distinct IDs of requests: UUIDs of version 4", () => {
  const ids = Array.from({ length: 1_000 }, createRequestId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  // Each of the other digits takes each value.
  for (const at of [0, 7, 9, 12, 15, 17, 20, 22, 24, 35]) {
    expect(new Set(ids.map((id) => id[at])).size).toBe(16);
  }
});

test.each([
  ["a-b_c.1", true],
  ["x".repeat(128), true],
  ["x".repeat(129), false],
  ["", false],
  ["a b", false],
  [["a"], false],
  [undefined, false],
])("keeps the id %j of a request: %s", (id, isKept) => {
  const headers = id === undefined ? {} : { "x-request-id": id };
  expect(new RequestContext(headers, undefined, OPTIONS).requestId === id).toBe(isKept);
});
