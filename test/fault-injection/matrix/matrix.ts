import { isFullEffort } from "../../support/effort.js";
import { type FaultName, faults } from "../faults.js";
import type { Scenario } from "../scenario.js";
import { expectedOutcomes, UPSTREAMS } from "./expected-outcomes.js";
import { isUpdatingDocument } from "./faults-document.js";

const FAULT_NAMES = Object.keys(faults) as FaultName[];
const STATES = ["warm", "cold"] as const;

export const ALL_SCENARIOS: readonly Scenario[] = FAULT_NAMES.flatMap((fault) =>
  UPSTREAMS.flatMap((upstream) => {
    const expected = expectedOutcomes[fault][upstream];
    return expected === undefined ? [] : STATES.map((state) => ({ fault, upstream, state, expected: expected[state] }));
  }),
);

/** Takes all scenarios in .ci/run, and for the times in the document. */
const isWholeMatrix = isFullEffort || isUpdatingDocument;

/**
 * Selects the scenarios of a run: all, or in the short form a fixed selection. That one has each fault once warm and
 * once cold, at upstreams that change from fault to fault, and then the first scenario of each upstream, state and
 * outcome that is still missing.
 */
export function selectScenarios(isWhole: boolean = isWholeMatrix): readonly Scenario[] {
  if (isWhole) return ALL_SCENARIOS;
  const selected = new Set<Scenario>();
  for (const [index, fault] of FAULT_NAMES.entries()) {
    for (const [offset, state] of STATES.entries()) {
      const possible = ALL_SCENARIOS.filter((scenario) => scenario.fault === fault && scenario.state === state);
      const scenario = possible[(index + offset * Math.floor(possible.length / 2)) % possible.length];
      if (scenario !== undefined) selected.add(scenario);
    }
  }
  const outcome = ({ upstream, state, expected }: Scenario): string => `${upstream} ${state} ${expected}`;
  const covered = new Set([...selected].map(outcome));
  for (const scenario of ALL_SCENARIOS) {
    if (covered.has(outcome(scenario))) continue;
    covered.add(outcome(scenario));
    selected.add(scenario);
  }
  return [...selected];
}
