import { expect, test } from "vitest";
import { createFairScheduler, createTurnQueue } from "../../../../src/http/connection/fair-scheduler.js";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("works a few milliseconds per turn, in order, and re-queued work waits for the others", async () => {
  let now = 0;
  const done: string[] = [];
  const schedule = createFairScheduler(
    () => 0,
    () => now,
  );
  const work = (name: string, pieces: number) => (): void => {
    now += 2;
    done.push(name);
    if (pieces > 1) schedule(work(name, pieces - 1));
  };
  schedule(work("a", 3));
  schedule(work("b", 1));
  schedule(work("c", 2));
  expect(done).toEqual([]);
  await nextTurn();
  expect(done).toEqual(["a", "b", "c"]);
  await nextTurn();
  expect(done).toEqual(["a", "b", "c", "a", "c"]);
  await nextTurn();
  expect(done).toEqual(["a", "b", "c", "a", "c", "a"]);
  for (const name of ["d", "e", "f", "g"]) schedule(work(name, 1));
  await nextTurn();
  expect(done.slice(6)).toEqual(["d", "e", "f"]);
  await nextTurn();
  expect(done.slice(6)).toEqual(["d", "e", "f", "g"]);
});

test("leaves turns to new connections first, but not for ever", async () => {
  let accepted = 0;
  let isDone = false;
  const schedule = createFairScheduler(
    () => accepted,
    () => 0,
  );
  accepted += 1;
  schedule(() => {
    isDone = true;
  });
  await nextTurn();
  accepted += 1;
  await nextTurn();
  expect(isDone).toBe(false);
  await nextTurn();
  expect(isDone).toBe(true);
  isDone = false;
  schedule(() => {
    isDone = true;
  });
  for (let turns = 0; turns < 100; turns++) {
    accepted += 1;
    await nextTurn();
  }
  expect(isDone).toBe(true);
});

test("a turn queue runs one piece of work per turn, in order", async () => {
  const done: number[] = [];
  const runInTurn = createTurnQueue();
  for (const piece of [1, 2, 3]) runInTurn(() => done.push(piece));
  expect(done).toEqual([]);
  for (const expected of [[1], [1, 2], [1, 2, 3]]) {
    await nextTurn();
    expect(done).toEqual(expected);
  }
  runInTurn(() => done.push(4));
  await nextTurn();
  expect(done).toEqual([1, 2, 3, 4]);
});
