import { describe, expect, test } from "vitest";
import type { EndpointState } from "../../../src/chain/endpoints/endpoint-pool.js";
import type { ObservedHead } from "../../../src/chain/heads/head-tracker.js";
import type { DependencyStatus } from "../../../src/observability/dependency-status.js";
import { createProbes, describeReachability } from "../../../src/observability/probes.js";

const NOW = 1_795_000_000_000;
const MONOTONIC_NOW = 50_000;
type State = EndpointState["state"];

const head: ObservedHead = { number: 123, timestamp: NOW / 1000 - 2.14, observedAt: MONOTONIC_NOW - 4_200 };

function chain(
  name: string,
  states: readonly State[],
  fields: { network?: string; head?: ObservedHead; isStalled?: boolean; isChecked?: boolean } = {},
) {
  const endpoints = states.map((state, n) => ({ endpoint: `a1b2c${n}`, state, head: fields.head }));
  const unused = { isStalled: false, isChecked: true, lastUsedAt: undefined, head: undefined };
  return { network: "mainnet", chain: name, chainId: 10, ...unused, ...fields, endpoints };
}

interface Setup extends Partial<DependencyStatus> {
  readonly isDraining?: boolean;
}

function probe(path: string, { isDraining = false, ...state }: Setup = {}) {
  let probeCount = 0;
  const prices = { differences: [], distrustedTokens: [], refusedFeeds: [] };
  const nothing = { sources: [], index: undefined, prices, burnLimitsUsdc: new Map() };
  const read = () => ({ chains: [chain("optimism", ["ok"])], ...nothing, ...state });
  const probes = createProbes({
    version: "1.2.3",
    dependencies: { read, probe: () => (probeCount += 1) },
    isDraining: () => isDraining,
    now: () => NOW,
    monotonicNow: () => MONOTONIC_NOW,
  });
  const report = probes.get(path)?.();
  if (report === undefined) throw new Error(`no probe at ${path}`);
  return { status: report.status, body: JSON.parse(report.body), probeCount };
}

test("one line says which chains respond, and how the others fail", () => {
  const polygon = chain("polygon", ["failing", "cooldown", "failing"]);
  const failures = ["DNS lookup failed", "answered 429: too many requests", "DNS lookup failed"];
  const endpoints = polygon.endpoints.map((endpoint, index) => ({ ...endpoint, failure: failures[index] }));
  const chains = [
    chain("optimism", ["failing", "lagging"]),
    { ...polygon, endpoints },
    chain("base", ["failing"]),
    chain("ethereum", ["failing"], { network: "goerli" }),
  ];
  expect(describeReachability({ chains })).toBe(
    "1 of 3 chains reachable; polygon: DNS lookup failed, answered 429: too many requests; base: no answer",
  );
  expect(describeReachability({ chains: [chain("base", ["ok"])] })).toBe("1 of 1 chains reachable");
});

test("/readyz reports chains, sources and the index and omits unknown values", () => {
  const { status, body, probeCount } = probe("/readyz", {
    chains: [chain("optimism", ["ok", "cooldown"], { head }), chain("base", ["unknown"])],
    sources: [
      { source: "prices", state: "ok", ageMs: 12_340 },
      { source: "chainlink_ethereum", state: "failing", ageMs: undefined, failure: "connection refused" },
      { source: "explorer", state: "off", ageMs: undefined },
    ],
    index: [{ chain: "optimism", lagBlocks: 3 }],
    burnLimitsUsdc: new Map([["optimism", 12.5]]),
  });
  const reportedHead = { number: 123, ageSeconds: 2.1, seenSecondsAgo: 4.2 };
  expect(status).toBe(200);
  expect(body).toEqual({
    status: "ready",
    version: "1.2.3",
    chains: [
      {
        network: "mainnet",
        chain: "optimism",
        chainId: 10,
        state: "ok",
        head: reportedHead,
        cctpBurnLimitUsdc: 12.5,
        endpoints: [
          { endpoint: "a1b2c0", state: "ok", head: reportedHead },
          { endpoint: "a1b2c1", state: "cooldown", head: reportedHead },
        ],
      },
      {
        network: "mainnet",
        chain: "base",
        chainId: 10,
        state: "unknown",
        endpoints: [{ endpoint: "a1b2c0", state: "unknown" }],
      },
    ],
    sources: [
      { source: "prices", state: "ok", ageSeconds: 12.3 },
      { source: "chainlink_ethereum", state: "failing", failure: "connection refused" },
      { source: "explorer", state: "off" },
    ],
    index: [{ chain: "optimism", lagBlocks: 3 }],
  });
  expect(probeCount).toBe(1);
});

test.each<[State[], string]>([
  [["failing", "ok"], "ok"],
  [["lagging"], "ok"],
  [["failing", "cooldown"], "failing"],
  [["failing", "unknown"], "unknown"],
  [["unknown"], "unknown"],
])("a chain with endpoints %j is %s", (states, expected) => {
  expect(probe("/readyz", { chains: [chain("optimism", states)] }).body.chains[0].state).toBe(expected);
});

const working = chain("base", ["ok"]);
const failing = chain("optimism", ["failing"]);
const failingBase = chain("base", ["failing"]);
const unknown = chain("linea", ["unknown"]);
const stalled = chain("polygon", ["lagging"], { isStalled: true });
const source = (name: string, state: "ok" | "failing" | "unknown" | "off") => ({
  source: name,
  state,
  ageMs: undefined,
});
const withFeedsFailing = (state: "ok" | "failing" | "off") => ({
  chains: [working],
  sources: [source("prices", state), source("chainlink_arbitrum", "failing")],
});
const NO_CHAIN = [503, "unready", "no chain responds"];
const UNCHECKED = [503, "unready", "the first check of the chains has not ended"];
const onGoerli = (state: State, more: { isStalled?: boolean; isChecked?: boolean } = {}) =>
  chain("optimism", [state], { network: "goerli", ...more });

describe("/readyz is", () => {
  test.each<[string, Setup, (string | number | undefined)[]]>([
    [
      "ready while no failure is known",
      { chains: [working, unknown], sources: [source("prices", "unknown")] },
      [200, "ready", undefined],
    ],
    [
      "unready until the first check of every mainnet chain has ended",
      { chains: [working, { ...unknown, isChecked: false }] },
      UNCHECKED,
    ],
    [
      "ready before the first check of other networks, whose use callers decide",
      { chains: [working, onGoerli("unknown", { isChecked: false })] },
      [200, "ready", undefined],
    ],
    [
      "degraded when some chain or source fails",
      { chains: [working, failing], sources: [source("prices", "failing")] },
      [200, "degraded", "no response from optimism, prices"],
    ],
    ["unready when no chain responds", { chains: [failing, failingBase] }, NO_CHAIN],
    [
      "degraded where a chain in unknown state may respond",
      { chains: [failing, failingBase, unknown] },
      [200, "degraded", "no response from optimism, base"],
    ],
    [
      "ready while other networks fail, which callers can influence",
      { chains: [working, onGoerli("failing")], sources: [source("settings_goerli", "failing")] },
      [200, "ready", undefined],
    ],
    ["unready when only other networks respond", { chains: [failing, onGoerli("ok")] }, NO_CHAIN],
    ["ready without price feeds while there is the price document", withFeedsFailing("ok"), [200, "ready", undefined]],
    [
      "degraded without price feeds while the document fails",
      withFeedsFailing("failing"),
      [200, "degraded", "no response from prices, chainlink_arbitrum"],
    ],
    [
      "degraded without price feeds where the document is off",
      withFeedsFailing("off"),
      [200, "degraded", "no response from chainlink_arbitrum"],
    ],
    [
      "degraded while a chain of mainnet has no new blocks",
      { chains: [working, stalled, onGoerli("ok", { isStalled: true })] },
      [200, "degraded", "no new blocks on polygon"],
    ],
    [
      "degraded while the clock is wrong",
      { clock: { offsetMs: -600_040, evidence: "blocks" } },
      [200, "degraded", "the clock of this machine is wrong by 600 s"],
    ],
    ["unready while the service shuts down", { isDraining: true }, [503, "unready", "shutting down"]],
  ])("%s", (_, state, expected) => {
    const { status, body } = probe("/readyz", state);
    expect([status, body.status, body.reason]).toEqual(expected);
  });
});

test("/readyz says which chain is stalled, how wrong the clock is, and nothing about one that is right", () => {
  expect(probe("/readyz", { chains: [working, stalled] }).body.chains[1].state).toBe("stalled");
  const { clock } = probe("/readyz", { clock: { offsetMs: -600_040, evidence: "blocks" } }).body;
  expect(clock).toEqual({ evidence: "blocks", offsetSeconds: -600 });
  expect(probe("/readyz", { clock: { offsetMs: 0, evidence: undefined } }).body).not.toHaveProperty("clock");
});

test("/livez returns 200 until shutdown, /health always, as the older server did", () => {
  expect(probe("/livez")).toMatchObject({ status: 200, body: { status: "OK" }, probeCount: 0 });
  expect(probe("/livez", { isDraining: true })).toMatchObject({ status: 503, body: { status: "DRAINING" } });
  expect(probe("/health", { isDraining: true })).toMatchObject({ status: 200, body: { status: "OK" }, probeCount: 0 });
});
