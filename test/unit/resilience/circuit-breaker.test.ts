import { describe, expect, test } from "vitest";
import {
  type CircuitBreakerState,
  computeLatencyP95,
  createCircuitBreaker,
  getUpstreamHealth,
  INITIAL_CIRCUIT_BREAKER_STATE,
  isCoolingDown,
  isOpen,
  onAttemptFailed,
  onAttemptIgnored,
  onAttemptStarted,
  onAttemptSucceeded,
  onCooldownRequested,
  onProbed,
} from "../../../src/resilience/circuit-breaker.js";

const OPEN_MS = 30_000;

function fail(state: CircuitBreakerState, now = 0, latencyMs?: number) {
  const started = onAttemptStarted(state, now);
  return onAttemptFailed(started.state, started.attempt, latencyMs, now);
}

function succeed(state: CircuitBreakerState, now = 0, latencyMs?: number): CircuitBreakerState {
  const started = onAttemptStarted(state, now);
  return onAttemptSucceeded(started.state, started.attempt, latencyMs, now);
}

function repeat(
  count: number,
  state: CircuitBreakerState,
  change: (state: CircuitBreakerState) => CircuitBreakerState,
): CircuitBreakerState {
  let last = state;
  for (let index = 0; index < count; index += 1) last = change(last);
  return last;
}

const opened = repeat(5, INITIAL_CIRCUIT_BREAKER_STATE, (state) => fail(state).state);

describe("transitions", () => {
  test("never change the state that they receive", () => {
    const state = Object.freeze({
      ...INITIAL_CIRCUIT_BREAKER_STATE,
      window: Object.freeze([]),
      latenciesMs: Object.freeze([]),
    });
    expect(fail(state).state).not.toBe(state);
    expect(succeed(state, 1, 5)).not.toBe(state);
    expect(onCooldownRequested(state, 5, 1)).not.toBe(state);
    expect(state).toEqual(INITIAL_CIRCUIT_BREAKER_STATE);
  });

  test("open after five failures in a row", () => {
    const four = repeat(4, INITIAL_CIRCUIT_BREAKER_STATE, (state) => fail(state).state);
    expect(isOpen(four, 0)).toBe(false);
    const fifth = fail(four, 7);
    expect(fifth.hasOpened).toBe(true);
    expect(fifth.state).toMatchObject({ openUntil: 7 + OPEN_MS, generation: 1, consecutiveFailures: 5 });
    expect(isOpen(fifth.state, 6 + OPEN_MS)).toBe(true);
    expect(isOpen(fifth.state, 7 + OPEN_MS)).toBe(false);
  });

  test("open after 20 failures among the last 80 attempts", () => {
    const mixed = repeat(19, INITIAL_CIRCUIT_BREAKER_STATE, (state) => succeed(fail(state).state));
    expect(fail(mixed).hasOpened).toBe(true);
    const forgotten = repeat(80, mixed, (state) => succeed(state));
    expect(forgotten.window).toHaveLength(80);
    expect(fail(forgotten).hasOpened).toBe(false);
  });

  test("reject every attempt but one probe when the open time is over", () => {
    const probe = onAttemptStarted(opened, OPEN_MS);
    expect(probe.attempt.isProbe).toBe(true);
    expect(isOpen(probe.state, OPEN_MS)).toBe(true);
    expect(onAttemptStarted(probe.state, OPEN_MS).attempt.isProbe).toBe(false);
  });

  test("close with a successful probe and forget earlier failures", () => {
    const closed = succeed(opened, OPEN_MS);
    expect(closed).toMatchObject({ openUntil: undefined, consecutiveFailures: 0, window: [false] });
  });

  test("open again with a failed probe", () => {
    expect(fail(opened, OPEN_MS)).toMatchObject({
      hasOpened: true,
      state: { generation: 2, openUntil: 2 * OPEN_MS },
    });
  });

  test("let the next attempt probe when a probe ends without a conclusion", () => {
    const probe = onAttemptStarted(opened, OPEN_MS);
    const ignored = onAttemptIgnored(probe.state, probe.attempt, OPEN_MS);
    expect(onAttemptStarted(ignored, OPEN_MS).attempt.isProbe).toBe(true);
    const other = onAttemptStarted(opened, 1);
    expect(onAttemptIgnored(other.state, other.attempt, 1)).toBe(other.state);
  });

  test("ignore results of attempts that started before the breaker opened", () => {
    const { attempt } = onAttemptStarted(INITIAL_CIRCUIT_BREAKER_STATE, 0);
    expect(onAttemptSucceeded(opened, attempt, 10, 1)).toMatchObject({ openUntil: OPEN_MS, consecutiveFailures: 5 });
    expect(onAttemptFailed(opened, attempt, undefined, 1)).toMatchObject({
      hasOpened: false,
      state: { generation: 1, openUntil: OPEN_MS },
    });
  });

  test("cap a cooldown at 30 seconds and never shorten it", () => {
    const cooling = onCooldownRequested(INITIAL_CIRCUIT_BREAKER_STATE, 3_600_000, 100);
    expect(cooling).toMatchObject({ cooldownStartedAt: 100, cooldownUntil: 30_100 });
    const again = onCooldownRequested(cooling, 1, 200);
    expect(again).toMatchObject({ cooldownStartedAt: 200, cooldownUntil: 30_100 });
    expect([isCoolingDown(again, 30_099), isCoolingDown(again, 30_100)]).toEqual([true, false]);
  });

  test("end a cooldown with a success, unless its attempt started before", () => {
    const early = onAttemptStarted(INITIAL_CIRCUIT_BREAKER_STATE, 0);
    const cooling = onCooldownRequested(early.state, 5_000, 1);
    expect(isCoolingDown(onAttemptSucceeded(cooling, early.attempt, 1, 2), 2)).toBe(true);
    expect(isCoolingDown(succeed(cooling, 2), 2)).toBe(false);
  });

  test("count an overtaken attempt as a failure without reporting one", () => {
    const { state } = fail(INITIAL_CIRCUIT_BREAKER_STATE, 0, 900);
    expect(state).toMatchObject({ consecutiveFailures: 1, lastOutcome: undefined, latenciesMs: [900] });
  });
});

test.each<[string, CircuitBreakerState, number]>([
  ["unknown", INITIAL_CIRCUIT_BREAKER_STATE, 0],
  ["ok", succeed(INITIAL_CIRCUIT_BREAKER_STATE), 0],
  ["failing", fail(INITIAL_CIRCUIT_BREAKER_STATE).state, 0],
  ["failing", opened, 0],
  ["failing", onProbed(succeed(INITIAL_CIRCUIT_BREAKER_STATE), false, 1), 1],
  ["ok", onProbed(fail(INITIAL_CIRCUIT_BREAKER_STATE).state, true, 1), 1],
  ["failing", onProbed(opened, true, 1), 1],
  ["cooldown", onCooldownRequested(opened, 10, 0), 9],
])("describes a state as %s", (expected, state, now) => {
  expect(getUpstreamHealth(state, now)).toBe(expected);
});

test("computes the 95th percentile of the last 64 latencies", () => {
  const withLatencies = (...latenciesMs: number[]): CircuitBreakerState => ({
    ...INITIAL_CIRCUIT_BREAKER_STATE,
    latenciesMs,
  });
  expect(computeLatencyP95(INITIAL_CIRCUIT_BREAKER_STATE)).toBeUndefined();
  expect(computeLatencyP95(withLatencies(3, 2, 1))).toBe(3);
  expect(computeLatencyP95(withLatencies(...Array.from({ length: 60 }, (_, index) => 600 - index)))).toBe(597);
  const many = repeat(100, INITIAL_CIRCUIT_BREAKER_STATE, (state) => succeed(state, 0, 200));
  expect(many.latenciesMs).toHaveLength(64);
});

test("is not failing because faster upstreams have opened it", () => {
  const overtaken = repeat(5, succeed(INITIAL_CIRCUIT_BREAKER_STATE), (state) => fail(state, 0, 900).state);
  expect(isOpen(overtaken, 0)).toBe(true);
  expect(getUpstreamHealth(overtaken, 0)).toBe("ok");
  expect(getUpstreamHealth(onProbed(fail(overtaken, OPEN_MS).state, true, OPEN_MS), OPEN_MS)).toBe("failing");
  const closed = succeed(fail(overtaken, OPEN_MS).state, 3 * OPEN_MS);
  const again = repeat(5, closed, (state) => fail(state, 3 * OPEN_MS, 900).state);
  expect(getUpstreamHealth(again, 3 * OPEN_MS)).toBe("ok");
});

describe("a breaker", () => {
  test("ignores results of attempts that started before it opened", () => {
    const breaker = createCircuitBreaker(() => 0);
    const late = breaker.beginAttempt();
    for (let count = 0; count < 5; count++) expect(breaker.beginAttempt().recordFailure()).toBe(count === 4);
    late.recordSuccess(10);
    expect(breaker.isOpen()).toBe(true);
    breaker.beginAttempt().recordSuccess(10);
    expect(breaker.isOpen()).toBe(false);
  });

  test("probes again after a probe without a conclusion", () => {
    let now = 0;
    const breaker = createCircuitBreaker(() => now);
    for (let count = 0; count < 5; count++) breaker.beginAttempt().recordFailure();
    now += 30_000;
    const probe = breaker.beginAttempt();
    expect(breaker.isOpen()).toBe(true);
    probe.ignore();
    expect(breaker.isOpen()).toBe(false);
    breaker.beginAttempt().recordSuccess(10);
    expect(breaker.isOpen()).toBe(false);
  });

  test("forgets earlier failures when it closes", () => {
    let now = 0;
    const breaker = createCircuitBreaker(() => now);
    for (let count = 0; count < 19; count++) {
      breaker.beginAttempt().recordFailure();
      breaker.beginAttempt().recordSuccess(10);
    }
    expect(breaker.beginAttempt().recordFailure()).toBe(true);
    now += 30_000;
    breaker.beginAttempt().recordSuccess(10);
    expect(breaker.beginAttempt().recordFailure()).toBe(false);
  });
});
