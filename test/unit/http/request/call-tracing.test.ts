import { expect, test } from "vitest";
import { HttpRequestContext, type RequestSpan } from "../../../../src/http/request/request-context.js";

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
  const call = new HttpRequestContext({}, undefined, {
    log() {},
    onInternalError() {},
    trustProxy: false,
    tracer: { startTrace },
  });
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
