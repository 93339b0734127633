import { setMaxListeners } from "node:events";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { createJsonRpc } from "../../devnet/chain/json-rpc.js";
import { FairSemaphore } from "../../src/resilience/fair-semaphore.js";
import { type FaultName, faults } from "./faults.js";
import { type Baseline, recordBaseline } from "./matrix/baseline.js";
import { expectedOutcomes, UPSTREAMS } from "./matrix/expected-outcomes.js";
import {
  formatSeconds,
  isUpdatingDocument,
  readTable,
  stripTimes,
  type Table,
  writeTable,
} from "./matrix/faults-document.js";
import { ALL_SCENARIOS, selectScenarios } from "./matrix/matrix.js";
import { DOCUMENTED_RECOVERY_MS, runScenario, type Scenario, type ScenarioResult } from "./scenario.js";

// Every fault at every upstream, once where the upstream worked before and once where it never did. expected-outcomes.ts
// defines the outcomes; docs/internals/faults.md shows them. The short form runs a selection: see matrix.ts.

/** Sixteen at a time for the document's times; fewer elsewhere, so that the event loop is not late. */
const MAX_CONCURRENT = isUpdatingDocument ? 16 : 6;
/** Only a hang takes longer: all scenarios begin before the first test. */
const TIMEOUT_MS = 1_200_000;

/** Prices may be ten minutes old, and two minutes from the future. */
const AHEAD_MS = 5 * 60_000;

const scenarios = selectScenarios();
let results: ReadonlyMap<Scenario, Promise<ScenarioResult>>;

beforeAll(async () => {
  // The second is in the deliveries' deadlines, and a zero byte there costs less gas: one second for all quotes. It is ahead,
  // since prices of the chains must not come from the future, and the chains' clocks go on.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + AHEAD_MS });
  results = runAll(await recordBaseline());
});
afterAll(() => {
  vi.useRealTimers();
});

/** Starts all scenarios, some at a time; those without prices first, while the chains' prices are not from the future. */
function runAll(baseline: Baseline): ReadonlyMap<Scenario, Promise<ScenarioResult>> {
  const semaphore = new FairSemaphore(MAX_CONCURRENT);
  const never = new AbortController().signal;
  setMaxListeners(0, never);
  const ordered = scenarios.toSorted((a, b) => Number(b.upstream === "prices") - Number(a.upstream === "prices"));
  return new Map(
    ordered.map((scenario) => {
      const result = semaphore.acquire("", never, () => runUndisturbed(scenario, baseline));
      // Its test reports the failure.
      result.catch(() => {});
      return [scenario, result];
    }),
  );
}

/** Runs a scenario again if a block was mined meanwhile: each lowers the gas price, and so quotes, until it is set again. */
async function runUndisturbed(scenario: Scenario, baseline: Baseline): Promise<ScenarioResult> {
  for (;;) {
    const before = await readHeads();
    const result = await runScenario(scenario, baseline);
    if (result.problems.length === 0 || (await readHeads()) === before) return result;
  }
}

async function readHeads(): Promise<string> {
  const chains = Object.values(inject("network").chains);
  return (await Promise.all(chains.map(({ url }) => createJsonRpc(url)("eth_blockNumber")))).join();
}

describe.each(scenarios)("$fault at $upstream, $state: $expected", (scenario) => {
  test("gives the expected answers and recovers", { timeout: TIMEOUT_MS }, async () => {
    const { problems, recoveryMs } = (await results.get(scenario)) as ScenarioResult;
    expect(problems).toEqual([]);
    // Times are measured, and checked, only where nothing else runs.
    if (isUpdatingDocument) expect(recoveryMs).toBeLessThan(DOCUMENTED_RECOVERY_MS);
  });
});

test("docs/internals/faults.md shows the expected outcomes", { timeout: TIMEOUT_MS }, async () => {
  const measured = new Map<Scenario, ScenarioResult>();
  for (const [scenario, run] of results) {
    const result = await run.catch(() => undefined);
    if (result !== undefined) measured.set(scenario, result);
  }
  const table = createTable(measured);
  if (isUpdatingDocument) writeTable("matrix", table);
  expect(readTable("matrix")).toEqual(stripTimes(table));
});

test("the short form covers every fault and every upstream in both states, and every outcome", () => {
  const selected = selectScenarios(false);
  for (const state of ["warm", "cold"]) {
    const inState = selected.filter((scenario) => scenario.state === state);
    expect(new Set(inState.map(({ fault }) => fault))).toEqual(new Set(Object.keys(faults)));
    expect(new Set(inState.map(({ upstream }) => upstream))).toEqual(new Set(UPSTREAMS));
  }
  const outcomesOf = (all: readonly Scenario[]) =>
    new Set(all.map(({ upstream, state, expected }) => `${upstream}, ${state}: ${expected}`));
  expect(outcomesOf(selected)).toEqual(outcomesOf(ALL_SCENARIOS));
});

function createTable(measured: ReadonlyMap<Scenario, ScenarioResult>): Table {
  const cell = (fault: FaultName, upstream: (typeof UPSTREAMS)[number]): string => {
    if (expectedOutcomes[fault][upstream] === undefined) return "does not apply";
    const both = ALL_SCENARIOS.filter((scenario) => scenario.fault === fault && scenario.upstream === upstream);
    return both
      .map((scenario) => `${scenario.expected}${formatSeconds(measured.get(scenario)?.maxLatencyMs)}`)
      .join(" / ");
  };
  const recovery = (fault: FaultName): string => {
    const all = [...measured].filter(([scenario]) => scenario.fault === fault).map(([, { recoveryMs }]) => recoveryMs);
    return formatSeconds(all.length === 0 ? undefined : Math.max(...all)).trim();
  };
  const names = Object.keys(faults) as FaultName[];
  const rows = names.map((fault) => [fault, ...UPSTREAMS.map((upstream) => cell(fault, upstream)), recovery(fault)]);
  return [["fault", ...UPSTREAMS, "recovery"], ...rows];
}
