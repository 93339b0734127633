import { stat } from "node:fs/promises";
import { expect, test } from "vitest";
import { createTurnClock, createTurnClocks } from "../../../src/resilience/clock.js";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("reads the clock once per turn of the event loop", async () => {
  let time = 0;
  const now = createTurnClock(() => ++time);
  expect([now(), now()]).toEqual([1, 1]);
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(now()).toBe(1);
  await nextTurn();
  expect([now(), now()]).toEqual([2, 2]);
});

test("reads both clocks of a pair at the same time", async () => {
  let time = 0;
  const clocks = createTurnClocks({ now: () => 1000 + ++time, monotonicNow: () => ++time });
  expect([clocks.now(), clocks.monotonicNow(), clocks.now()]).toEqual([1001, 2, 1001]);
  await nextTurn();
  expect([clocks.monotonicNow(), clocks.now()]).toEqual([4, 1003]);
});

test("forgets the time before the process waits for events", async () => {
  let time = 0;
  const now = createTurnClock(() => ++time);
  // Continues where the event loop polls for events. Immediates, which end the turn, come before timers from there: a
  // timer set while timers run may be due in the same turn.
  await stat(".");
  now();
  await new Promise((resolve) => setTimeout(resolve, 1));
  expect(now()).toBe(2);
});

test("several clocks share the end of a turn", async () => {
  const [first, second] = [0, 10].map((start) => createTurnClock(() => ++start));
  expect([first?.(), second?.()]).toEqual([1, 11]);
  await nextTurn();
  expect([second?.(), first?.(), second?.()]).toEqual([12, 2, 12]);
});
