import { describe, expect, test } from "vitest";
import {
  type AttemptPlan,
  computeHedgeDelayMs,
  computePatienceMs,
  computeWaitMs,
  createAttemptPlan,
  decideNextAttempt,
  excludeUpstream,
  onHedgeDecided,
  recordAttemptEnd,
  recordAttemptStart,
  recordProbeEnd,
  recordProbeStart,
  type UpstreamCandidate,
  type WaitLimit,
} from "../../../../src/chain/endpoints/attempt-plan.js";

const healthy = (upstream: string): UpstreamCandidate<string> => ({
  upstream,
  isHealthy: true,
  hasRecentFailure: false,
  isProbeDue: false,
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
  const hedged = onHedgeDecided(running);
  const wait = (until?: WaitLimit) => ({ type: "wait", until });

  test("waits until the hedge delay is over", () => {
    expect(decideNextAttempt(running, both, undefined)).toEqual(wait("hedge"));
  });

  test("hedges with the first healthy upstream that has had no attempt", () => {
    const candidates = [healthy("a"), unhealthy("b"), healthy("c")];
    expect(decideNextAttempt(running, candidates, "hedge_delay_elapsed")).toEqual({ type: "hedge", upstream: "c" });
  });

  test("waits longer when no upstream is healthy, and then tries any", () => {
    const candidates = [healthy("a"), unhealthy("b")];
    expect(decideNextAttempt(running, candidates, "hedge_delay_elapsed")).toEqual(wait("failover"));
    expect(decideNextAttempt(hedged, candidates, "patience_elapsed")).toEqual({ type: "hedge", upstream: "b" });
  });

  test("hedges at most once", () => {
    for (const event of [undefined, "hedge_delay_elapsed"] as const)
      expect(decideNextAttempt(hedged, both, event)).toEqual(wait("failover"));
  });

  test("repeats a late attempt where no upstream is left, the one with the fewest attempts first", () => {
    const alone = [healthy("a")];
    expect(decideNextAttempt(running, alone, "hedge_delay_elapsed")).toEqual(wait("repeat"));
    expect(decideNextAttempt(hedged, alone, "patience_elapsed")).toEqual({ type: "repeat", upstream: "a" });
    const repeated = recordAttemptStart(recordAttemptStart(hedged, "b"), "a", true);
    expect(decideNextAttempt(repeated, both, "patience_elapsed")).toEqual({ type: "repeat", upstream: "b" });
  });

  test("repeats four times at most, which costs no attempt", () => {
    let plan = hedged;
    for (let count = 0; count < 4; count += 1) {
      expect(decideNextAttempt(plan, [healthy("a")], "patience_elapsed").type).toBe("repeat");
      plan = recordAttemptStart(plan, "a", true);
    }
    expect(decideNextAttempt(plan, [healthy("a")], undefined)).toEqual(wait());
    expect(decideNextAttempt(plan, [healthy("a")], "patience_elapsed")).toEqual(wait());
    expect(decideNextAttempt(plan, both, "patience_elapsed")).toEqual({ type: "hedge", upstream: "b" });
  });

  test("repeats nothing at an upstream that would give the same response again", () => {
    const plan = excludeUpstream(hedged, "a");
    expect(decideNextAttempt(plan, [healthy("a")], "patience_elapsed")).toEqual(wait());
  });

  test("has nothing beside a search", () => {
    const searching = recordAttemptStart(search, "a");
    const probed = [healthy("a"), { ...unhealthy("b"), isProbeDue: true }];
    for (const event of [undefined, "hedge_delay_elapsed", "patience_elapsed"] as const)
      expect(decideNextAttempt(searching, probed, event)).toEqual(wait());
  });

  test("waits for the other attempt when one of two has ended", () => {
    const one = recordAttemptEnd(recordAttemptStart(hedged, "b"));
    expect(decideNextAttempt(one, both, undefined)).toEqual(wait("repeat"));
  });
});

describe("with an upstream whose probe is due", () => {
  const candidates = [healthy("a"), { ...unhealthy("b"), isProbeDue: true }, { ...unhealthy("c"), isProbeDue: true }];
  const running = recordAttemptStart(read, "a");
  const probing = recordProbeStart(running, "b");

  test("starts with another upstream and probes one beside it", () => {
    expect(decideNextAttempt(read, candidates, undefined)).toEqual(start("a"));
    expect(decideNextAttempt(running, candidates, undefined)).toEqual({ type: "probe", upstream: "b" });
    expect(decideNextAttempt(probing, candidates, undefined)).toEqual({ type: "wait", until: "hedge" });
  });

  test("does not wait for the probe when an attempt fails", () => {
    expect(decideNextAttempt(recordAttemptEnd(probing), candidates.slice(0, 2), undefined)).toEqual(start("a", 1));
  });

  test("waits for the probe when nothing else is left", () => {
    const plan = excludeUpstream(excludeUpstream(recordAttemptEnd(probing), "a"), "b");
    expect(decideNextAttempt(plan, candidates.slice(0, 2), undefined)).toEqual({ type: "wait", until: undefined });
    expect(decideNextAttempt(recordProbeEnd(plan), candidates.slice(0, 2), undefined)).toEqual({ type: "fail" });
  });
});

describe("times follow the latency of the endpoint", () => {
  test("the hedge delay: within bounds", () => {
    const delays = [undefined, 3, 597, 5_000].map((latencyMs) =>
      computeHedgeDelayMs({ latencyMs, requestTimeoutMs: 10_000 }),
    );
    expect(delays).toEqual([500, 100, 597, 1_000]);
  });

  test.each([
    // A faster peer, also one that is faster only after the delay.
    [2_000, 50, 1_000],
    [2_000, 999, 1_000],
    // A peer that would respond later.
    [2_000, 1_000, 2_000],
    [2_000, 2_000, 2_000],
    [200, 2_000, 200],
    [20, 2_000, 100],
    // The hedge must still end in time.
    [5_000, 5_000, 2_500],
    [9_000, 9_000, 1_000],
  ])("the hedge delay: at %i ms with a peer at %i ms it is %i ms", (latencyMs, peerLatencyMs, expected) => {
    expect(computeHedgeDelayMs({ latencyMs, peerLatencyMs, requestTimeoutMs: 10_000 })).toBe(expected);
  });

  test("the patience: twice the latency, at least 1.5 seconds", () => {
    expect([undefined, 50, 2_000, 4_000].map(computePatienceMs)).toEqual([1_500, 1_500, 4_000, 8_000]);
  });

  test.each<[WaitLimit, number | undefined, number, number, number | undefined]>([
    [undefined, 50, 10_000, 10_000, undefined],
    ["hedge", 200, 10_000, 10_000, 200],
    ["failover", 50, 10_000, 10_000, 1_500],
    ["failover", 2_000, 10_000, 10_000, 4_000],
    // At most four repeats in any request time, and none that would be too late.
    ["repeat", 50, 10_000, 10_000, 3_000],
    ["repeat", 2_000, 10_000, 10_000, 4_000],
    ["repeat", 50, 30_000, 30_000, 6_000],
    ["repeat", 50, 10_000, 4_500, 3_000],
    ["repeat", 50, 10_000, 4_499, undefined],
    ["repeat", 4_000, 10_000, 10_000, undefined],
  ])(
    "the wait %s with %s ms of latency, in %i ms of which %i are left",
    (until, latencyMs, timeout, left, expected) => {
      const conditions = { latencyMs, requestTimeoutMs: timeout, remainingMs: left };
      expect(computeWaitMs(until, conditions)).toBe(expected);
    },
  );
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
