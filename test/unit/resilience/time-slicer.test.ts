import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createTimeSlicer } from "../../../src/resilience/time-slicer.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setImmediate"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Steps take a millisecond each. */
function setup(sliceMs: number) {
  let time = 0;
  const order: string[] = [];
  const slicer = createTimeSlicer({ sliceMs, now: () => time });
  function start(caller: string, steps: number, name = caller): Promise<void> | undefined {
    let left = steps;
    return slicer.run(caller, () => {
      time += 1;
      left -= 1;
      order.push(name);
      return left > 0;
    });
  }
  const runTurn = () => vi.advanceTimersToNextTimer();
  return { slicer, start, order, runTurn };
}

test("does work at once that fits in the time of the turn", () => {
  const { start, order } = setup(3);
  expect(start("a", 3)).toBeUndefined();
  expect(order).toEqual(["a", "a", "a"]);
});

test("goes on in later turns, and resolves at the end", async () => {
  const { slicer, start, order, runTurn } = setup(2);
  let isDone = false;
  const work = start("a", 5)?.then(() => {
    isDone = true;
  });
  expect(order).toHaveLength(2);
  runTurn();
  expect(order).toHaveLength(4);
  expect([isDone, slicer.waitingCount()]).toEqual([false, 1]);
  runTurn();
  await work;
  expect([order.length, slicer.waitingCount()]).toEqual([5, 0]);
});

test("takes no more of a turn for many computations than for one", () => {
  const { start, order, runTurn } = setup(2);
  for (let index = 0; index < 50; index += 1) void start(`caller ${index}`, 10);
  expect(order).toHaveLength(2);
  runTurn();
  expect(order).toHaveLength(4);
});

test("lets callers take turns, and finishes the work of each in its order", async () => {
  const { start, order, runTurn } = setup(1);
  const works = [start("a", 3, "a1"), start("a", 2, "a2"), start("b", 2, "b1")];
  while (order.length < 7) runTurn();
  await Promise.all(works);
  expect(order).toEqual(["a1", "a1", "b1", "a1", "b1", "a2", "a2"]);
});

test("ends work whose step throws, and goes on with the others", async () => {
  const { slicer, start, order, runTurn } = setup(1);
  void start("a", 2);
  const failing = slicer.run("b", () => {
    throw new Error("mine");
  });
  failing?.catch(() => {});
  runTurn();
  runTurn();
  runTurn();
  await expect(failing).rejects.toThrow("mine");
  expect(order).toEqual(["a", "a"]);
});
