import { describe, expect, test } from "vitest";
import {
  type Candidate,
  createRequestPlan,
  decideNextStep,
  onAttemptEnded,
  onAttemptStarted,
  onHedgeDecided,
  onUpstreamExhausted,
  type RequestPlan,
} from "../../../../src/chain/endpoints/request-plan.js";

const healthy = (upstream: string): Candidate<string> => ({ upstream, isHealthy: true, hasRecentFailure: false });
const unhealthy = (upstream: string): Candidate<string> => ({ ...healthy(upstream), isHealthy: false });
const failing = (upstream: string): Candidate<string> => ({ ...healthy(upstream), hasRecentFailure: true });
const both = [healthy("a"), healthy("b")];
const read = createRequestPlan<string>(false);
const search = createRequestPlan<string>(true);
const attempt = (plan: RequestPlan<string>, upstream: string) => onAttemptEnded(onAttemptStarted(plan, upstream));
const start = (upstream: string, previousAttempts = 0) => ({ type: "start", upstream, previousAttempts });

describe("without a running attempt", () => {
  test("starts with the best candidate", () => {
    expect(decideNextStep(read, both, undefined)).toEqual(start("a"));
  });

  test("continues with the candidate that has had the fewest attempts", () => {
    expect(decideNextStep(attempt(read, "a"), both, undefined)).toEqual(start("b"));
    expect(decideNextStep(attempt(attempt(read, "a"), "b"), both, undefined)).toEqual(start("a", 1));
    expect(decideNextStep(attempt(attempt(read, "a"), "a"), [healthy("a")], undefined)).toEqual(start("a", 2));
  });

  test("skips exhausted upstreams", () => {
    const plan = onUpstreamExhausted(attempt(read, "a"), "a");
    expect(decideNextStep(plan, [healthy("a")], undefined)).toEqual({ type: "fail" });
    expect(decideNextStep(attempt(plan, "b"), both, undefined)).toEqual(start("b", 1));
  });

  test("fails without candidates and after three attempts", () => {
    expect(decideNextStep(read, [], undefined)).toEqual({ type: "fail" });
    const spent = attempt(attempt(attempt(read, "a"), "b"), "a");
    expect(decideNextStep(spent, [...both, healthy("c")], undefined)).toEqual({ type: "fail" });
  });

  test("prefers upstreams without a recent failure for searches only", () => {
    const candidates = [failing("a"), healthy("b")];
    expect(decideNextStep(search, candidates, undefined)).toEqual(start("b"));
    expect(decideNextStep(read, candidates, undefined)).toEqual(start("a"));
    expect(decideNextStep(attempt(search, "b"), candidates, undefined)).toEqual(start("a"));
  });
});

describe("with a running attempt", () => {
  const running = onAttemptStarted(read, "a");

  test("waits until the hedge delay is over", () => {
    expect(decideNextStep(running, both, undefined)).toEqual({ type: "wait", untilHedge: true });
  });

  test("hedges with the first healthy upstream that has had no attempt", () => {
    const candidates = [healthy("a"), unhealthy("b"), healthy("c")];
    expect(decideNextStep(running, candidates, "hedge_delay_elapsed")).toEqual({ type: "hedge", upstream: "c" });
  });

  test("waits when no upstream is left for a hedge", () => {
    const wait = { type: "wait", untilHedge: false };
    expect(decideNextStep(running, [healthy("a"), unhealthy("b")], "hedge_delay_elapsed")).toEqual(wait);
    const third = onAttemptStarted(attempt(attempt(read, "b"), "b"), "b");
    expect(decideNextStep(third, both, "hedge_delay_elapsed")).toEqual(wait);
  });

  test("hedges at most once", () => {
    const hedged = onHedgeDecided(running);
    expect(decideNextStep(hedged, both, undefined)).toEqual({ type: "wait", untilHedge: false });
    expect(decideNextStep(hedged, both, "hedge_delay_elapsed")).toEqual({ type: "wait", untilHedge: false });
  });

  test("never hedges a search", () => {
    const searching = onAttemptStarted(search, "a");
    expect(decideNextStep(searching, both, undefined)).toEqual({ type: "wait", untilHedge: false });
  });

  test("waits for the other attempt when one of two has ended", () => {
    const one = onAttemptEnded(onAttemptStarted(onHedgeDecided(running), "b"));
    expect(decideNextStep(one, both, undefined)).toEqual({ type: "wait", untilHedge: false });
  });
});

test("gives up when the request is aborted", () => {
  for (const plan of [read, onAttemptStarted(read, "a")])
    expect(decideNextStep(plan, both, "aborted")).toEqual({ type: "give_up" });
});

test("transitions never change the plan that they receive", () => {
  const plan = createRequestPlan<string>(false);
  onUpstreamExhausted(onHedgeDecided(onAttemptStarted(plan, "a")), "a");
  expect(plan).toEqual(createRequestPlan(false));
});
