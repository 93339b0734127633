import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createSemaphore } from "../../src/resilience/semaphore.js";
import { type Baseline, recordBaseline } from "./baseline.js";
import { expectedOutcomes, UPSTREAMS } from "./expected-outcomes.js";
import { type FaultName, faults } from "./faults.js";
import { formatSeconds, isUpdatingDocument, readTable, stripTimes, type Table, writeTable } from "./faults-document.js";
import {
  DOCUMENTED_RECOVERY_MS,
  MAX_RECOVERY_MS,
  runScenario,
  type Scenario,
  type ScenarioResult,
} from "./scenario.js";

// Every fault at every upstream, once where the upstream was well before and once where it never was. outcomes.ts says what
// is to come of each; docs/faults.md shows it.

/** Cells at a time; the first begin one after the other. */
const MAX_CONCURRENT = 16;
const START_INTERVAL_MS = 150;

const names = Object.keys(faults) as FaultName[];
const scenarios: readonly Scenario[] = names.flatMap((fault) =>
  UPSTREAMS.flatMap((upstream) => {
    const expected = expectedOutcomes[fault][upstream];
    if (expected === undefined) return [];
    return (["warm", "cold"] as const).map((state) => ({ fault, upstream, state, expected: expected[state] }));
  }),
);

let seen: ReadonlyMap<Scenario, Promise<ScenarioResult>>;

beforeAll(async () => {
  // The second is in the deliveries' deadlines, and a zero byte there costs less gas: one second for all quotes.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  seen = runAll(await recordBaseline());
});
afterAll(() => {
  vi.useRealTimers();
});

/** Runs all cells, some at a time. */
function runAll(truth: Baseline): ReadonlyMap<Scenario, Promise<ScenarioResult>> {
  const turns = createSemaphore(MAX_CONCURRENT);
  const never = new AbortController().signal;
  setMaxListeners(0, never);
  return new Map(
    scenarios.map((cell, index) => {
      const run = turns.acquire(never, async () => {
        if (index < MAX_CONCURRENT) await sleep(index * START_INTERVAL_MS);
        return runScenario(cell, truth);
      });
      // Its test says so when its turn comes.
      run.catch(() => {});
      return [cell, run];
    }),
  );
}

describe.each(scenarios)("$fault at $upstream, $state: $expected", (cell) => {
  test("is answered so, and over within five seconds", { timeout: 180_000 }, async () => {
    const { problems, recoveryMs } = (await seen.get(cell)) as ScenarioResult;
    expect(problems).toEqual([]);
    // What is shown was measured where nothing else runs; any other machine may be late.
    expect(recoveryMs).toBeLessThan(isUpdatingDocument ? DOCUMENTED_RECOVERY_MS : MAX_RECOVERY_MS);
  });
});

test("docs/faults.md shows what is held", { timeout: 180_000 }, async () => {
  const measured = new Map<Scenario, ScenarioResult>();
  for (const [cell, run] of seen) {
    const result = await run.catch(() => undefined);
    if (result !== undefined) measured.set(cell, result);
  }
  const table = tableOf(measured);
  if (isUpdatingDocument) writeTable("matrix", table);
  expect(readTable("matrix")).toEqual(stripTimes(table));
});

function tableOf(measured: ReadonlyMap<Scenario, ScenarioResult>): Table {
  const cellText = (fault: FaultName, upstream: (typeof UPSTREAMS)[number]): string => {
    if (expectedOutcomes[fault][upstream] === undefined) return "does not apply";
    const both = scenarios.filter((cell) => cell.fault === fault && cell.upstream === upstream);
    return both.map((cell) => `${cell.expected}${formatSeconds(measured.get(cell)?.maxLatencyMs)}`).join(" / ");
  };
  const healed = (fault: FaultName): string => {
    const all = [...measured].filter(([cell]) => cell.fault === fault).map(([, { recoveryMs }]) => recoveryMs);
    return formatSeconds(all.length === 0 ? undefined : Math.max(...all)).trim();
  };
  const rows = names.map((fault) => [fault, ...UPSTREAMS.map((upstream) => cellText(fault, upstream)), healed(fault)]);
  return [["fault", ...UPSTREAMS, "well again"], ...rows];
}
