import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createTurns } from "../../src/resilience/semaphore.js";
import { learnTruth, type Truth } from "./baseline.js";
import { outcomes, upstreams } from "./expected-outcomes.js";
import { type FaultName, faults } from "./faults.js";
import { isUpdating, show, shown, type Table, time, withoutTimes } from "./faults-document.js";
import { type Cell, healMs, promisedHealMs, runCell, type Seen } from "./scenario.js";

// Every fault at every upstream, once where the upstream was well before and once where it never was. outcomes.ts says what
// is to come of each; docs/faults.md shows it.

/** Cells at a time; the first begin one after the other. */
const atOnce = 16;
const apartMs = 150;

const names = Object.keys(faults) as FaultName[];
const cells: readonly Cell[] = names.flatMap((fault) =>
  upstreams.flatMap((upstream) => {
    const expected = outcomes[fault][upstream];
    if (expected === undefined) return [];
    return (["warm", "cold"] as const).map((state) => ({ fault, upstream, state, expected: expected[state] }));
  }),
);

let seen: ReadonlyMap<Cell, Promise<Seen>>;

beforeAll(async () => {
  // The second is in the deliveries' deadlines, and a zero byte there costs less gas: one second for all quotes.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  seen = runAll(await learnTruth());
});
afterAll(() => {
  vi.useRealTimers();
});

/** Runs all cells, some at a time. */
function runAll(truth: Truth): ReadonlyMap<Cell, Promise<Seen>> {
  const turns = createTurns(atOnce);
  const never = new AbortController().signal;
  setMaxListeners(0, never);
  return new Map(
    cells.map((cell, index) => {
      const run = turns.take(never, async () => {
        if (index < atOnce) await sleep(index * apartMs);
        return runCell(cell, truth);
      });
      // Its test says so when its turn comes.
      run.catch(() => {});
      return [cell, run];
    }),
  );
}

describe.each(cells)("$fault at $upstream, $state: $expected", (cell) => {
  test("is answered so, and over within five seconds", { timeout: 180_000 }, async () => {
    const { problems, healedMs } = (await seen.get(cell)) as Seen;
    expect(problems).toEqual([]);
    // What is shown was measured where nothing else runs; any other machine may be late.
    expect(healedMs).toBeLessThan(isUpdating ? promisedHealMs : healMs);
  });
});

test("docs/faults.md shows what is held", { timeout: 180_000 }, async () => {
  const measured = new Map<Cell, Seen>();
  for (const [cell, run] of seen) {
    const result = await run.catch(() => undefined);
    if (result !== undefined) measured.set(cell, result);
  }
  const table = tableOf(measured);
  if (isUpdating) show("matrix", table);
  expect(shown("matrix")).toEqual(withoutTimes(table));
});

function tableOf(measured: ReadonlyMap<Cell, Seen>): Table {
  const cellText = (fault: FaultName, upstream: (typeof upstreams)[number]): string => {
    if (outcomes[fault][upstream] === undefined) return "does not apply";
    const both = cells.filter((cell) => cell.fault === fault && cell.upstream === upstream);
    return both.map((cell) => `${cell.expected}${time(measured.get(cell)?.worstMs)}`).join(" / ");
  };
  const healed = (fault: FaultName): string => {
    const all = [...measured].filter(([cell]) => cell.fault === fault).map(([, { healedMs }]) => healedMs);
    return time(all.length === 0 ? undefined : Math.max(...all)).trim();
  };
  const rows = names.map((fault) => [fault, ...upstreams.map((upstream) => cellText(fault, upstream)), healed(fault)]);
  return [["fault", ...upstreams, "well again"], ...rows];
}
