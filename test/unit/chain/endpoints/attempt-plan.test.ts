import { describe, expect, test } from "vitest";
import {
  type AttemptPlan,
  createAttemptPlan,
  decideNextAttempt,
  excludeUpstream,
  onHedgeDecided,
  recordAttemptEnd,
  recordAttemptStart,
  type UpstreamCandidate,
} from "../../../../src/chain/endpoints/attempt-plan.js";

const healthy = (upstream: string): UpstreamCandidate<string> => ({
  upstream,
  isHealthy: true,
  hasRecentFailure: false,
});
const unhealthy = (upstream: string): UpstreamCandidate<string> => ({ ...healthy(upstream), isHealthy: false });
const failing = (upstream: string): UpstreamCandidate<string> => ({ ...healthy(upstream), hasRecentFailure: true });
const both = [healthy("a"), healthy("b")];
const read = createAttemptPlan<string>(false);
const search = createAttemptPlan<string>(true);
const attempt = (plan: AttemptPlan<string>, upstream: string) => recordAttemptEnd(recordAttemptStart(plan, upstream));
const start = (upstream: string, previousAttempts = 0) => ({ type: "start", upstream, previousAttempts });

describe("without a running attempt", () => {
  test("starts with the best candidate", () => {
    expect(decideNextAttempt(read, both, undefined)).toEqual(start("a"));
  });

  test("continues with the candidate that has had the fewest attempts", () => {
    expect(decideNextAttempt(attempt(read, "a"), both, undefined)).toEqual(start("b"));
    expect(decideNextAttempt(attempt(attempt(read, "a"), "b"), both, undefined)).toEqual(start("a", 1));
    expect(decideNextAttempt(attempt(attempt(read, "a"), "a"), [healthy("a")], undefined)).toEqual(start("a", 2));
  });

  test("skips exhausted upstreams", () => {
    const plan = excludeUpstream(attempt(read, "a"), "a");
    expect(decideNextAttempt(plan, [healthy("a")], undefined)).toEqual({ type: "fail" });
    expect(decideNextAttempt(attempt(plan, "b"), both, undefined)).toEqual(start("b", 1));
  });

  test("fails without candidates and after three attempts", () => {
    expect(decideNextAttempt(read, [], undefined)).toEqual({ type: "fail" });
    const spent = attempt(attempt(attempt(read, "a"), "b"), "a");
    expect(decideNextAttempt(spent, [...both, healthy("c")], undefined)).toEqual({ type: "fail" });
  });

  test("prefers upstreams without a recent failure for searches only", () => {
    const candidates = [failing("a"), healthy("b")];
    expect(decideNextAttempt(search, candidates, undefined)).toEqual(start("b"));
    expect(decideNextAttempt(read, candidates, undefined)).toEqual(start("a"));
    expect(decideNextAttempt(attempt(search, "b"), candidates, undefined)).toEqual(start("a"));
  });
});

describe("with a running attempt", () => {
  const running = recordAttemptStart(read, "a");

  test("waits until the hedge delay is over", () => {
    expect(decideNextAttempt(running, both, undefined)).toEqual({ type: "wait", untilHedge: true });
  });

  test("hedges with the first healthy upstream that has had no attempt", () => {
    const candidates = [healthy("a"), unhealthy("b"), healthy("c")];
    expect(decideNextAttempt(running, candidates, "hedge_delay_elapsed")).toEqual({ type: "hedge", upstream: "c" });
  });

  test("waits when no upstream is left for a hedge", () => {
    const wait = { type: "wait", untilHedge: false };
    expect(decideNextAttempt(running, [healthy("a"), unhealthy("b")], "hedge_delay_elapsed")).toEqual(wait);
    const third = recordAttemptStart(attempt(attempt(read, "b"), "b"), "b");
    expect(decideNextAttempt(third, both, "hedge_delay_elapsed")).toEqual(wait);
  });

  test("hedges at most once", () => {
    const hedged = onHedgeDecided(running);
    expect(decideNextAttempt(hedged, both, undefined)).toEqual({ type: "wait", untilHedge: false });
    expect(decideNextAttempt(hedged, both, "hedge_delay_elapsed")).toEqual({ type: "wait", untilHedge: false });
  });

  test("never hedges a search", () => {
    const searching = recordAttemptStart(search, "a");
    expect(decideNextAttempt(searching, both, undefined)).toEqual({ type: "wait", untilHedge: false });
  });

  test("waits for the other attempt when one of two has ended", () => {
    const one = recordAttemptEnd(recordAttemptStart(onHedgeDecided(running), "b"));
    expect(decideNextAttempt(one, both, undefined)).toEqual({ type: "wait", untilHedge: false });
  });
});

test("gives up when the request is aborted", () => {
  for (const plan of [read, recordAttemptStart(read, "a")])
    expect(decideNextAttempt(plan, both, "aborted")).toEqual({ type: "give_up" });
});

test("transitions never change the plan that they receive", () => {
  const plan = createAttemptPlan<string>(false);
  excludeUpstream(onHedgeDecided(recordAttemptStart(plan, "a")), "a");
  expect(plan).toEqual(createAttemptPlan(false));
});
