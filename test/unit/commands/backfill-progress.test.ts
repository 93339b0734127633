import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { createProgressDisplay } from "../../../src/commands/backfill-progress.js";

function createTestDisplay(isTTY: boolean) {
  let text = "";
  const output = Object.assign(
    new Writable({
      write(chunk, _, done) {
        text += chunk;
        done();
      },
    }),
    // The methods of a terminal stream.
    { isTTY, columns: 80, cursorTo: () => true, moveCursor: () => true, clearLine: () => true },
  );
  const clock = { ms: 0 };
  return { ...createProgressDisplay(output, () => clock.ms), clock, printed: () => text };
}

const progress = (blocksDone: number, events = 0, chain = "base") => ({
  chain,
  blocksDone,
  blocksTotal: 1_000_000,
  events,
});

describe("without a terminal", () => {
  test("prints a line per chain at intervals and on completion", () => {
    const { update, printLine, clock, printed } = createTestDisplay(false);
    update(progress(0));
    clock.ms = 5_000;
    update(progress(1_000, 1));
    update(progress(7, 0, "linea"));
    clock.ms = 10_000;
    update(progress(20_000, 30));
    clock.ms = 11_000;
    printLine("something happened");
    update(progress(1_000_000, 99));
    expect(printed().split("\n")).toEqual([
      "base: 0/1000000 blocks, 0 events, 0 blocks/s, time left unknown",
      "linea: 7/1000000 blocks, 0 events, 0 blocks/s, time left unknown",
      "base: 20000/1000000 blocks, 30 events, 2000 blocks/s, 8 min left",
      "something happened",
      "base: 1000000/1000000 blocks, 99 events, 90909 blocks/s, done",
      "",
    ]);
  });

  test.each([
    [500_000, "10 s left"],
    [100, "27 h 46 min left"],
  ])("estimates the remaining time after %i blocks in 10 s: %s", (done, left) => {
    const { update, clock, printed } = createTestDisplay(false);
    update(progress(0));
    clock.ms = 10_000;
    update(progress(done));
    expect(printed()).toContain(`, ${left}\n`);
  });
});

test("shows a bar for each chain with blocks to read on a terminal", () => {
  const { update, stop, clock, printed } = createTestDisplay(true);
  update(progress(0));
  update({ ...progress(0, 0, "nova"), blocksTotal: 0 });
  clock.ms = 10_000;
  update(progress(250_000, 12));
  stop();
  expect(printed()).toMatch(/base .*25% \| 12 events \| 25000 blocks\/s \| 30 s left/);
  expect(printed()).not.toContain("nova");
});

test.each([
  [true, "base      ■■■■■■■■■■ 100% | 2 events | 100 blocks/s | done"],
  [false, "base: 200/200 blocks, 2 events, 100 blocks/s, done"],
])("restarts the progress with the remaining blocks after a failure; on a terminal: %s", (isTTY, last) => {
  const { update, stop, clock, printed } = createTestDisplay(isTTY);
  update({ ...progress(0), blocksTotal: 1_000 });
  clock.ms = 8_000;
  update({ ...progress(800, 8), blocksTotal: 1_000 });
  clock.ms = 20_000;
  update({ ...progress(0), blocksTotal: 200 });
  clock.ms = 22_000;
  update({ ...progress(200, 2), blocksTotal: 200 });
  stop();
  expect(printed()).toContain(last);
});

test("fits a bar with the remaining time into 80 columns", () => {
  const { update, stop, clock, printed } = createTestDisplay(true);
  update(progress(0, 0, "polygonzk"));
  clock.ms = 1_000_000;
  update({ chain: "polygonzk", blocksDone: 123_456_789, blocksTotal: 987_654_321, events: 1_234_567 });
  stop();
  expect(printed()).toContain("| 1234567 events | 123457 blocks/s | 1 h 56 min left");
});
