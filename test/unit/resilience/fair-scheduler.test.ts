import { expect, test } from "vitest";
import type { WorkOwner } from "../../../src/resilience/caller-ring.js";
import { FairScheduler } from "../../../src/resilience/fair-scheduler.js";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A scheduler whose work takes as long as it says. */
function setup(turnMs = 5) {
  const clock = { ms: 0 };
  const done: string[] = [];
  const scheduler = new FairScheduler({ turnMs, now: () => clock.ms });
  const work =
    (name: string, tookMs = 1) =>
    (): void => {
      clock.ms += tookMs;
      done.push(name);
    };
  /** Starts a piece that takes longer than what may begin at once in a turn, so that further work waits. */
  const occupy = () => scheduler.schedule({ caller: "first" }, work("first", 0));
  async function runAll(): Promise<void> {
    while (scheduler.waitingCount > 0) await nextTurn();
  }
  /** Keeps a piece of work of this caller waiting, one after the other, for as long as it goes on. */
  function flood(caller: string, tookMs: number, goesOn: () => boolean): void {
    scheduler.schedule({ caller }, () => {
      work("flood", tookMs)();
      if (goesOn()) flood(caller, tookMs, goesOn);
    });
  }
  return { scheduler, clock, done, work, occupy, runAll, flood };
}

test("does work at once while nothing waits, but only so much in each turn", async () => {
  const { scheduler, done, work, runAll } = setup();
  const anonymous = {
    get caller(): string {
      throw new Error("read although there is nothing to divide");
    },
  };
  for (let count = 0; count < 8; count++) scheduler.begin(anonymous, work("a"));
  expect(done).toHaveLength(8);
  scheduler.begin({ caller: "a" }, work("a"));
  scheduler.continue({ caller: "a" }, work("a"));
  expect([done.length, scheduler.waitingCount]).toEqual([8, 2]);
  await runAll();
  expect(done).toHaveLength(10);
  scheduler.begin(anonymous, work("a"));
  expect(done).toHaveLength(11);
});

test("works a few milliseconds per turn, and leaves the rest to later turns", async () => {
  const { scheduler, done, work } = setup(5);
  for (const name of ["a1", "a2", "a3", "a4"]) scheduler.schedule({ caller: "a" }, work(name, 2));
  expect(done).toEqual([]);
  await nextTurn();
  expect(done).toEqual(["a1", "a2", "a3"]);
  await nextTurn();
  expect(done).toEqual(["a1", "a2", "a3", "a4"]);
});

test("begins nothing else in a turn that ends early", async () => {
  const { scheduler, done, work } = setup(5);
  scheduler.schedule({ caller: "a" }, () => {
    work("a1")();
    scheduler.endTurn();
  });
  scheduler.schedule({ caller: "a" }, work("a2"));
  scheduler.schedule({ caller: "b" }, work("b"));
  await nextTurn();
  expect(done).toEqual(["a1"]);
  await nextTurn();
  expect(done).toHaveLength(3);
});

test("does one piece of work per turn if it has no time for more", async () => {
  const { scheduler, done, work } = setup(0);
  for (const name of ["1", "2", "3"]) scheduler.schedule({ caller: "a" }, work(name, 0));
  for (const count of [0, 1, 2, 3]) {
    expect(done).toHaveLength(count);
    await nextTurn();
  }
});

test("divides time, not pieces: expensive work of one caller leaves as much time to another", async () => {
  const { scheduler, done, work, occupy } = setup(5);
  occupy();
  for (let count = 0; count < 50; count++) scheduler.begin({ caller: "slow" }, work("slow", 4));
  for (let count = 0; count < 500; count++) scheduler.begin({ caller: "fast" }, work("fast", 1));
  while (done.filter((name) => name === "fast").length < 200) await nextTurn();
  expect(done.filter((name) => name === "slow").length).toBeGreaterThanOrEqual(45);
  expect(done.filter((name) => name === "slow").length).toBeLessThanOrEqual(50);
});

test("a caller of short requests owes little for a pause of the process in the midst of one", async () => {
  const { scheduler, done, work, occupy, runAll } = setup(5);
  occupy();
  scheduler.begin({ caller: "honest" }, work("paused", 200));
  scheduler.begin({ caller: "honest" }, work("honest", 0.1));
  for (let count = 0; count < 500; count++) scheduler.begin({ caller: "flood" }, work("flood", 0.1));
  await runAll();
  expect(done.indexOf("honest")).toBeLessThan(60);
});

test("works for a fifth of the time where the rest of a turn of the event loop takes long, up to a limit", async () => {
  const { scheduler, clock, done, work } = setup(5);
  const runTurn = async (otherMs: number): Promise<number> => {
    const before = done.length;
    clock.ms += otherMs;
    await nextTurn();
    return done.length - before;
  };
  for (let count = 0; count < 200; count++) scheduler.schedule({ caller: "a" }, work("a"));
  expect(await runTurn(1_000)).toBe(5);
  expect(await runTurn(100)).toBe(25);
  expect(await runTurn(10)).toBe(5);
  expect(await runTurn(1_000)).toBe(50);
});

test("a caller alone gets all the time, and owes nothing afterwards", async () => {
  const { scheduler, done, work, occupy, runAll } = setup(5);
  occupy();
  for (let count = 0; count < 100; count++) scheduler.begin({ caller: "a" }, work("a", 10));
  await runAll();
  occupy();
  for (let count = 0; count < 4; count++) {
    scheduler.begin({ caller: "b" }, work("b", 1));
    scheduler.begin({ caller: "a" }, work("a", 1));
  }
  await runAll();
  expect(done.slice(-8).filter((_, index) => index < 4)).toContain("a");
});

test("who asks for little at a time is not behind a hundred others who never stop", async () => {
  const { scheduler, clock, runAll, flood } = setup(5);
  let isOver = false;
  for (let count = 0; count < 100; count++) flood(`flood ${count}`, 3, () => !isOver && clock.ms < 5_000);
  while (clock.ms < 1_000) await nextTurn();
  const waits: number[] = [];
  for (let count = 0; count < 50; count++) {
    const since = clock.ms;
    scheduler.begin({ caller: "honest" }, () => {
      waits.push(clock.ms - since);
      clock.ms += 1;
    });
    while (waits.length === count && scheduler.waitingCount > 0) await nextTurn();
    while (clock.ms < since + 20 && scheduler.waitingCount > 0) await nextTurn();
  }
  isOver = true;
  await runAll();
  expect(Math.max(...waits)).toBeLessThan(20);
});

test("serves short requests of one caller at once beside a hundred callers of long ones", async () => {
  const { scheduler, clock, work } = setup(5);
  for (let count = 0; count < 100; count++)
    scheduler.runSteps({ caller: `batch ${count}` }, () => {
      work("step", 0.2)();
      return clock.ms < 2_000;
    });
  while (clock.ms < 1_000) await nextTurn();
  const waits: number[] = [];
  while (clock.ms < 2_000) {
    const since = clock.ms;
    const { length } = waits;
    scheduler.begin({ caller: "quotes" }, () => {
      waits.push(clock.ms - since);
      clock.ms += 1;
    });
    while (waits.length === length) await nextTurn();
    while (clock.ms < since + 10) await nextTurn();
  }
  // Ten times his part of a hundred and one.
  expect(waits.length).toBeGreaterThan(90);
  expect(Math.max(...waits)).toBeLessThan(10);
});

test("leaves a fifth of the time to long requests, however many short ones wait", async () => {
  const { scheduler, clock, work, flood } = setup(5);
  let longMs = 0;
  scheduler.runSteps({ caller: "batch" }, () => {
    work("step", 1)();
    longMs += clock.ms > 1_000 ? 1 : 0;
    return clock.ms < 2_000;
  });
  for (let count = 0; count < 100; count++) flood(`flood ${count}`, 0.5, () => clock.ms < 2_000);
  while (clock.ms < 2_000) await nextTurn();
  expect(longMs).toBeGreaterThan(180);
  expect(longMs).toBeLessThan(220);
});

test("a request that is expected to take long waits for short ones before it has begun", async () => {
  const { scheduler, done, work, occupy, runAll } = setup(5);
  occupy();
  for (const caller of ["a", "b", "c"]) scheduler.continue({ caller, takenMs: 2 }, work("long", 4));
  for (const caller of ["d", "e"]) scheduler.begin({ caller }, work("short"));
  await runAll();
  expect(done.slice(1)).toEqual(["short", "long", "short", "long", "long"]);
});

test("a turn of short requests does not include what the same caller expects to take long", async () => {
  const { scheduler, done, work } = setup(5);
  scheduler.schedule({ caller: "a" }, () => {
    scheduler.continue({ caller: "a", takenMs: 2 }, work("long"));
    scheduler.continue({ caller: "a" }, work("short"));
    work("end")();
  });
  while (done.length < 3) await nextTurn();
  expect(done).toEqual(["short", "end", "long"]);
});

test("serves one caller beside a thousand who each have more waiting than he", async () => {
  const { scheduler, clock, runAll, flood } = setup(5);
  let isServed = false;
  const goesOn = (): boolean => !isServed && clock.ms < 5_000;
  for (let count = 0; count < 1_000; count++)
    for (let each = 0; each < 20; each++) flood(`flood ${count}`, 0.1, goesOn);
  await nextTurn();
  const since = clock.ms;
  let waitMs = Number.POSITIVE_INFINITY;
  scheduler.begin({ caller: "honest" }, () => {
    waitMs = clock.ms - since;
    isServed = true;
  });
  await runAll();
  // One round of all callers takes 100 ms, and two seconds if each had 2 ms in it.
  expect(waitMs).toBeLessThan(250);
});

test("does not leave out one caller for a flood of others who come once each", async () => {
  const { scheduler, done, work, occupy } = setup(5);
  occupy();
  for (let count = 0; count < 20; count++) scheduler.begin({ caller: "loyal" }, work("loyal", 0.1));
  let newcomers = 0;
  for (let turns = 0; turns < 20; turns++) {
    for (let count = 0; count < 20; count++)
      scheduler.begin({ caller: `newcomer ${newcomers++}` }, work("newcomer", 1));
    await nextTurn();
  }
  expect(done.filter((name) => name === "loyal").length).toBeGreaterThan(10);
});

test("a caller of quiet times does not wait behind a thousand new ones", async () => {
  const { scheduler, clock, done, work } = setup(5);
  for (let count = 0; count < 16; count++) {
    scheduler.begin({ caller: "regular" }, () => {});
    await nextTurn();
  }
  for (let count = 0; count < 1_000; count++) scheduler.schedule({ caller: `new ${count}` }, work("new"));
  scheduler.begin({ caller: "regular" }, work("regular"));
  while (!done.includes("regular")) await nextTurn();
  expect(clock.ms).toBeLessThan(10);
});

/** Does a request of five steps and begins another one of the same caller. Returns what is done, in its order. */
async function beginBesideSteps(stepMs: number): Promise<readonly string[]> {
  const { scheduler, done, work, occupy, runAll } = setup(5);
  occupy();
  scheduler.begin({ caller: "a" }, () => {
    work("begins")();
    scheduler.runSteps({ caller: "a" }, () => {
      work("goes on", stepMs)();
      return done.filter((name) => name === "goes on").length < 5;
    });
  });
  scheduler.begin({ caller: "a" }, work("next"));
  await runAll();
  return done.slice(1);
}

test("finishes a short request before it begins another one of the same caller", async () => {
  expect(await beginBesideSteps(0.1)).toEqual(["begins", ...Array(5).fill("goes on"), "next"]);
});

test("begins a request although a long one of the same caller is not finished", async () => {
  expect((await beginBesideSteps(2)).slice(0, 4)).toContain("next");
});

test("refuses no quote of a caller who also asks for batches, beside others who flood and batch", async () => {
  const { scheduler, clock } = setup(5);
  const refused: string[] = [];
  const open = new Map<string, number>();
  const countOpen = (caller: string): number => open.get(caller) ?? 0;
  const end = (caller: string, tookMs: number): void => {
    clock.ms += tookMs;
    open.set(caller, countOpen(caller) - 1);
  };
  const begin = (caller: string, owner: WorkOwner, work: () => void): void => {
    open.set(caller, countOpen(caller) + 1);
    scheduler.begin(owner, work, () => {
      refused.push(caller);
      end(caller, 0.02);
    });
  };
  const quote = (caller: string): void => begin(caller, { caller }, () => end(caller, 0.3));
  const batch = (caller: string): void => {
    const owner = { caller };
    let left = 100;
    const step = (): boolean => {
      clock.ms += 0.15;
      left -= 1;
      if (left === 0) end(caller, 0);
      return left > 0;
    };
    begin(caller, owner, () => scheduler.runSteps(owner, step));
  };
  for (let quotes = 0, batches = 0; clock.ms < 5_000; await nextTurn()) {
    for (let index = 0; index < 5; index += 1) while (countOpen(`flood ${index}`) < 5) quote(`flood ${index}`);
    for (let index = 0; index < 20; index += 1) if (countOpen(`batches ${index}`) === 0) batch(`batches ${index}`);
    for (; quotes * 20 <= clock.ms; quotes += 1) quote("both");
    for (; batches * 1_000 <= clock.ms; batches += 1) batch("both");
  }
  expect(refused).not.toContain("both");
  // Of 250 quotes and 5 batches.
  expect(countOpen("both")).toBeLessThan(5);
});

test("does all steps at once that fit in the time of the turn, and the others later", async () => {
  const { scheduler, done, work, runAll } = setup(3);
  let left = 10;
  const step = () => {
    work("step")();
    left -= 1;
    return left > 0;
  };
  scheduler.runSteps({ caller: "a" }, step);
  expect([done.length, scheduler.waitingCount]).toEqual([3, 1]);
  await runAll();
  expect(done).toHaveLength(10);
});

test("does at once what work of the same caller asks for, and not what is for another", async () => {
  const { scheduler, done, work } = setup(1);
  scheduler.schedule({ caller: "a" }, () => {
    scheduler.begin({ caller: "a" }, work("a"));
    scheduler.begin({ caller: "b" }, work("b"));
    work("end")();
  });
  await nextTurn();
  expect(done).toEqual(["a", "end"]);
  await nextTurn();
  expect(done).toEqual(["a", "end", "b"]);
});

test("refuses the requests of a caller that have waited for more than five seconds", async () => {
  const { scheduler, clock, done, work, occupy, runAll } = setup(5);
  occupy();
  for (let count = 0; count < 30; count++) scheduler.begin({ caller: "a" }, work("a", 500), work("refused", 0.1));
  while (scheduler.waitingCount > 0) {
    scheduler.begin({ caller: "b" }, work("b", 0.1), work("b refused", 0.1));
    await nextTurn();
  }
  await runAll();
  expect(clock.ms).toBeLessThan(6_000);
  expect(done.filter((name) => name === "a").length).toBeGreaterThanOrEqual(8);
  expect(done.filter((name) => name === "a").length).toBeLessThanOrEqual(11);
  expect(done).toContain("refused");
  expect(done).not.toContain("b refused");
});

test("refuses what begins in the turn of work that has waited too long", async () => {
  const { scheduler, clock, done, work, occupy, runAll } = setup(5);
  occupy();
  scheduler.schedule({ caller: "a" }, () => scheduler.begin({ caller: "a" }, work("a"), work("refused")));
  clock.ms += 5_001;
  scheduler.schedule({ caller: "b" }, work("b"));
  await runAll();
  expect(done).toEqual(["first", "refused", "b"]);
});

test("leaves turns to new connections first, but not for ever", async () => {
  const { scheduler, done, work } = setup();
  scheduler.noteAccepted();
  scheduler.schedule({ caller: "a" }, work("1"));
  await nextTurn();
  scheduler.noteAccepted();
  await nextTurn();
  expect(done).toEqual([]);
  await nextTurn();
  expect(done).toEqual(["1"]);
  scheduler.schedule({ caller: "a" }, work("2"));
  for (let turns = 0; turns < 100; turns++) {
    scheduler.noteAccepted();
    await nextTurn();
  }
  expect(done).toEqual(["1", "2"]);
});
