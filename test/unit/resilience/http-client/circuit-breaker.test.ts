import { describe, expect, test } from "vitest";
import { CircuitBreaker, type CircuitBreakerAttempt } from "../../../../src/resilience/http-client/circuit-breaker.js";

const OPEN_MS = 30_000;

function setup() {
  const clock = { now: 0 };
  const breaker = new CircuitBreaker(() => clock.now);
  const repeat = (count: number, act: () => unknown): void => {
    for (let index = 0; index < count; index += 1) act();
  };
  const fail = (latencyMs?: number): boolean => breaker.beginAttempt().recordFailure(latencyMs);
  const succeed = (latencyMs?: number): void => breaker.beginAttempt().recordSuccess(latencyMs);
  return { clock, breaker, repeat, fail, succeed };
}

function setupOpen() {
  const opened = setup();
  opened.repeat(5, opened.fail);
  return opened;
}

describe("the breaker", () => {
  test("opens after five failures in a row", () => {
    const { clock, breaker, repeat, fail } = setup();
    repeat(4, fail);
    expect(breaker.isOpen()).toBe(false);
    clock.now = 7;
    expect(fail()).toBe(true);
    clock.now = 6 + OPEN_MS;
    expect([breaker.isOpen(), breaker.isProbeDue(), breaker.isClosed()]).toEqual([true, false, false]);
    clock.now = 7 + OPEN_MS;
    expect([breaker.isOpen(), breaker.isProbeDue(), breaker.isClosed()]).toEqual([false, true, false]);
  });

  test.each([
    [41, true],
    [42, false],
  ])("opens after 20 failures among the last 80 attempts: 19, %i successes and one more", (successes, opens) => {
    const { repeat, fail, succeed } = setup();
    repeat(19, () => [fail(), succeed()]);
    repeat(successes, succeed);
    expect(fail()).toBe(opens);
  });

  test("rejects every attempt but one probe when the open time is over", () => {
    const { clock, breaker } = setupOpen();
    clock.now = OPEN_MS;
    expect(breaker.isProbeDue()).toBe(true);
    breaker.beginAttempt();
    expect([breaker.isOpen(), breaker.isProbeDue()]).toEqual([true, false]);
  });

  test("closes with a successful probe and forgets earlier failures", () => {
    const { clock, breaker, repeat, fail, succeed } = setup();
    repeat(19, () => [succeed(), fail()]);
    expect(fail()).toBe(true);
    clock.now = OPEN_MS;
    succeed();
    expect([breaker.isClosed(), breaker.hasRecentFailure()]).toEqual([true, false]);
    expect(fail()).toBe(false);
  });

  test("opens again with a failed probe", () => {
    const { clock, breaker, fail } = setupOpen();
    clock.now = OPEN_MS;
    expect(fail()).toBe(true);
    clock.now = 2 * OPEN_MS - 1;
    expect(breaker.isOpen()).toBe(true);
    clock.now = 2 * OPEN_MS;
    expect(breaker.isOpen()).toBe(false);
  });

  test("lets the next attempt probe when a probe ends without a conclusion", () => {
    const { clock, breaker } = setupOpen();
    clock.now = OPEN_MS;
    breaker.beginAttempt().ignore();
    expect(breaker.isProbeDue()).toBe(true);
  });

  test("stays open when another attempt than the probe ends without a conclusion", () => {
    const { clock, breaker } = setupOpen();
    clock.now = 1;
    breaker.beginAttempt().ignore();
    expect(breaker.isOpen()).toBe(true);
  });

  test.each<[string, (attempt: CircuitBreakerAttempt) => unknown]>([
    ["a success", (attempt) => attempt.recordSuccess(10)],
    ["a failure", (attempt) => expect(attempt.recordFailure()).toBe(false)],
  ])("ignores %s of an attempt that started before it opened", (_, end) => {
    const { clock, breaker, repeat, fail } = setup();
    const early = breaker.beginAttempt();
    repeat(5, fail);
    clock.now = 1;
    end(early);
    expect([breaker.isClosed(), breaker.hasRecentFailure()]).toEqual([false, true]);
    clock.now = OPEN_MS;
    expect(breaker.isProbeDue()).toBe(true);
  });

  test("counts an overtaken attempt as a failure without reporting one", () => {
    const { breaker, fail } = setup();
    fail(900);
    expect(breaker.hasRecentFailure()).toBe(true);
    expect(breaker.state()).toBe("unknown");
    expect(breaker.latencyP95Ms()).toBe(900);
  });
});

describe("a cooldown", () => {
  test("lasts 30 seconds at most and is never shortened", () => {
    const { clock, breaker } = setup();
    clock.now = 100;
    breaker.startCooldown(3_600_000);
    clock.now = 200;
    breaker.startCooldown(1);
    clock.now = 30_099;
    expect([breaker.isCoolingDown(), breaker.cooldownElapsedMs()]).toEqual([true, 29_899]);
    clock.now = 30_100;
    expect(breaker.isCoolingDown()).toBe(false);
  });

  test("ends with a success, unless its attempt started before", () => {
    const { clock, breaker, succeed } = setup();
    const early = breaker.beginAttempt();
    clock.now = 1;
    breaker.startCooldown(5_000);
    early.recordSuccess(1);
    expect(breaker.isCoolingDown()).toBe(true);
    succeed();
    expect(breaker.isCoolingDown()).toBe(false);
  });
});

test.each<[string, string, (all: ReturnType<typeof setup>) => unknown]>([
  ["unknown", "no attempt", () => {}],
  ["ok", "a success", ({ succeed }) => succeed()],
  ["failing", "a failure", ({ fail }) => fail()],
  ["failing", "five failures", ({ repeat, fail }) => repeat(5, fail)],
  ["failing", "a success and a failed probe", ({ succeed, breaker }) => [succeed(), breaker.recordProbe(false)]],
  ["ok", "a failure and a successful probe", ({ fail, breaker }) => [fail(), breaker.recordProbe(true)]],
  [
    "failing",
    "five failures and a successful probe",
    ({ repeat, fail, breaker }) => [repeat(5, fail), breaker.recordProbe(true)],
  ],
  [
    "cooldown",
    "five failures and a cooldown",
    ({ repeat, fail, breaker }) => [repeat(5, fail), breaker.startCooldown(10)],
  ],
])("an upstream is %s after %s", (expected, _, act) => {
  const all = setup();
  act(all);
  expect(all.breaker.state()).toBe(expected);
});

test("knows when the upstream last responded, also to a probe", () => {
  const { clock, breaker, succeed, fail } = setup();
  expect(breaker.lastSuccessAt()).toBeUndefined();
  clock.now = 5;
  succeed();
  clock.now = 6;
  fail();
  breaker.recordProbe(false);
  expect(breaker.lastSuccessAt()).toBe(5);
  breaker.recordProbe(true, 40);
  expect([breaker.lastSuccessAt(), breaker.latencyP95Ms()]).toEqual([6, 40]);
});

test("computes the 95th percentile of the last 64 latencies", () => {
  const { breaker, succeed } = setup();
  expect(breaker.latencyP95Ms()).toBeUndefined();
  for (const latencyMs of [3, 2, 1]) succeed(latencyMs);
  expect(breaker.latencyP95Ms()).toBe(3);
  for (let index = 0; index < 60; index += 1) succeed(600 - index);
  // The 60th of 63: the largest three are not counted.
  expect(breaker.latencyP95Ms()).toBe(597);
  for (let index = 0; index < 64; index += 1) succeed(2);
  expect(breaker.latencyP95Ms()).toBe(2);
});

test("is not failing because faster upstreams have opened it", () => {
  const { clock, breaker, repeat, fail, succeed } = setup();
  succeed();
  repeat(5, () => fail(900));
  expect(breaker.isOpen()).toBe(true);
  expect(breaker.state()).toBe("ok");
  clock.now = OPEN_MS;
  fail();
  breaker.recordProbe(true);
  expect(breaker.state()).toBe("failing");
  clock.now = 3 * OPEN_MS;
  succeed();
  repeat(5, () => fail(900));
  expect([breaker.isOpen(), breaker.state()]).toEqual([true, "ok"]);
});
