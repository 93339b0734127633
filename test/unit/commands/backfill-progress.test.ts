import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { createProgressDisplay } from "../../../src/commands/backfill-progress.js";

function displayOn(isTTY: boolean) {
  let text = "";
  const output = Object.assign(
    new Writable({
      write(chunk, _, done) {
        text += chunk;
        done();
      },
    }),
    // What a terminal has beside.
    { isTTY, columns: 80, cursorTo: () => true, moveCursor: () => true, clearLine: () => true },
  );
  const clock = { ms: 0 };
  return { ...createProgressDisplay({ output, now: () => clock.ms }), clock, said: () => text };
}

const at = (blocksDone: number, events = 0, chain = "base") => ({ chain, blocksDone, blocksTotal: 1_000_000, events });

describe("without a terminal", () => {
  test("each chain says now and then how far it is, and when it is done", () => {
    const { update, printLine, clock, said } = displayOn(false);
    update(at(0));
    clock.ms = 5_000;
    update(at(1_000, 1));
    update(at(7, 0, "linea"));
    clock.ms = 10_000;
    update(at(20_000, 30));
    clock.ms = 11_000;
    printLine("something happened");
    update(at(1_000_000, 99));
    expect(said().split("\n")).toEqual([
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
  ])("after %i blocks in 10 s: %s", (done, left) => {
    const { update, clock, said } = displayOn(false);
    update(at(0));
    clock.ms = 10_000;
    update(at(done));
    expect(said()).toContain(`, ${left}\n`);
  });
});

test("on a terminal each chain that has blocks to read has a bar", () => {
  const { update, stop, clock, said } = displayOn(true);
  update(at(0));
  update({ ...at(0, 0, "nova"), blocksTotal: 0 });
  clock.ms = 10_000;
  update(at(250_000, 12));
  stop();
  expect(said()).toMatch(/base .*25% \| 12 events \| 25000 blocks\/s \| 30 s left/);
  expect(said()).not.toContain("nova");
});

test.each([
  [true, "base      ■■■■■■■■■■ 100% | 2 events | 100 blocks/s | done"],
  [false, "base: 200/200 blocks, 2 events, 100 blocks/s, done"],
])("after a failure what is left begins anew; on a terminal: %s", (isTTY, last) => {
  const { update, stop, clock, said } = displayOn(isTTY);
  update({ ...at(0), blocksTotal: 1_000 });
  clock.ms = 8_000;
  update({ ...at(800, 8), blocksTotal: 1_000 });
  clock.ms = 20_000;
  update({ ...at(0), blocksTotal: 200 });
  clock.ms = 22_000;
  update({ ...at(200, 2), blocksTotal: 200 });
  stop();
  expect(said()).toContain(last);
});

test("a bar fits on a terminal of 80 columns, with the time that is left", () => {
  const { update, stop, clock, said } = displayOn(true);
  update(at(0, 0, "polygonzk"));
  clock.ms = 1_000_000;
  update({ chain: "polygonzk", blocksDone: 123_456_789, blocksTotal: 987_654_321, events: 1_234_567 });
  stop();
  expect(said()).toContain("| 1234567 events | 123457 blocks/s | 1 h 56 min left");
});
