import { expect, test } from "vitest";
import { ProgressDisplay } from "../../../src/commands/backfill-progress.js";

/** A display, the time that it knows, and what it has printed. */
function setup() {
  const clock = { ms: 0 };
  const printed: string[] = [];
  const display = new ProgressDisplay({ write: (text) => printed.push(text) }, () => clock.ms);
  return { display, clock, printed };
}

const progress = (blocksDone: number, events = 0, { chain = "base", blocksTotal = 1_000_000 } = {}) => ({
  ...{ chain, blocksDone, blocksTotal, events },
});

test("prints a line per chain at intervals and on completion", () => {
  const { display, clock, printed } = setup();
  display.update(progress(0));
  clock.ms = 5_000;
  display.update(progress(1_000, 1));
  display.update(progress(7, 0, { chain: "linea" }));
  clock.ms = 10_000;
  display.update(progress(20_000, 30));
  clock.ms = 11_000;
  display.printLine("something happened");
  display.update(progress(1_000_000, 99));
  expect(printed).toEqual([
    "base: 0/1000000 blocks, 0 events, 0 blocks/s, time left unknown\n",
    "linea: 7/1000000 blocks, 0 events, 0 blocks/s, time left unknown\n",
    "base: 20000/1000000 blocks, 30 events, 2000 blocks/s, 8 min left\n",
    "something happened\n",
    "base: 1000000/1000000 blocks, 99 events, 90909 blocks/s, done\n",
  ]);
});

test.each([
  [500_000, "10 s left"],
  [100, "27 h 46 min left"],
])("estimates the remaining time after %i blocks in 10 s: %s", (done, left) => {
  const { display, clock, printed } = setup();
  display.update(progress(0));
  clock.ms = 10_000;
  display.update(progress(done));
  expect(printed.at(-1)).toContain(`, ${left}\n`);
});

test("restarts the progress with the remaining blocks after a failure", () => {
  const { display, clock, printed } = setup();
  for (const [ms, done, blocksTotal] of [
    [0, 0, 1_000],
    [8_000, 800, 1_000],
    [20_000, 0, 200],
    [22_000, 200, 200],
  ] as const) {
    clock.ms = ms;
    display.update(progress(done, 0, { blocksTotal }));
  }
  expect(printed.at(-1)).toBe("base: 200/200 blocks, 0 events, 100 blocks/s, done\n");
});
