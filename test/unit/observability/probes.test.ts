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
  return {
    network: "mainnet",
    chain: name,
    chainId: 10,
    isStalled: false,
    isChecked: true,
    lastUsedAt: undefined,
    head: undefined,
    ...fields,
    endpoints,
  };
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

const readReadiness = (state: Setup) => {
  const { status, body } = probe("/readyz", state);
  return [status, body.status, body.reason];
};

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

describe("/readyz", () => {
  test("is degraded while a chain of mainnet has no new blocks", () => {
    const stalled = chain("polygon", ["lagging"], { isStalled: true });
    const state = { chains: [working, stalled, chain("optimism", ["ok"], { network: "goerli", isStalled: true })] };
    expect(readReadiness(state)).toEqual([200, "degraded", "no new blocks on polygon"]);
    expect(probe("/readyz", state).body.chains[1].state).toBe("stalled");
  });

  test("is degraded while the clock is wrong", () => {
    const clock = { offsetMs: -600_040, evidence: "blocks" } as const;
    const state = { chains: [working], clock };
    expect(readReadiness(state)).toEqual([200, "degraded", "the clock of this machine is wrong by 600 s"]);
    expect(probe("/readyz", state).body.clock).toEqual({ evidence: "blocks", offsetSeconds: -600 });
  });

  test("says nothing about a clock that is right", () => {
    const { body } = probe("/readyz", { clock: { offsetMs: 0, evidence: undefined } });
    expect(body).toMatchObject({ status: "ready" });
    expect(body).not.toHaveProperty("clock");
  });

  const working = chain("base", ["ok"]);
  const failing = chain("optimism", ["failing"]);
  const source = (name: string, state: "ok" | "failing" | "unknown" | "off") => ({
    source: name,
    state,
    ageMs: undefined,
  });

  test("is ready while no failure is known", () => {
    expect(
      readReadiness({ chains: [working, chain("linea", ["unknown"])], sources: [source("prices", "unknown")] }),
    ).toEqual([...[200, "ready", undefined]]);
  });

  test("is unready until the first check of every mainnet chain has ended", () => {
    const unchecked = chain("linea", ["unknown"], { isChecked: false });
    expect(readReadiness({ chains: [working, unchecked] })).toEqual([
      ...[503, "unready", "the first check of the chains has not ended"],
    ]);
    const goerli = chain("linea", ["unknown"], { isChecked: false, network: "goerli" });
    expect(readReadiness({ chains: [working, goerli] })[0]).toBe(200);
  });

  test("is degraded but returns 200 when some chain or source fails", () => {
    expect(readReadiness({ chains: [working, failing], sources: [source("prices", "failing")] })).toEqual([
      ...[200, "degraded", "no response from optimism, prices"],
    ]);
  });

  test("is unready when no chain responds", () => {
    const chains = [failing, chain("base", ["failing"])];
    expect(readReadiness({ chains })).toEqual([503, "unready", "no chain responds"]);
    // A chain in unknown state may respond.
    expect(readReadiness({ chains: [...chains, chain("linea", ["unknown"])] })[0]).toBe(200);
  });

  test("ignores the state of networks other than mainnet, which callers can influence", () => {
    const goerli = chain("optimism", ["failing"], { network: "goerli" });
    expect(readReadiness({ chains: [working, goerli], sources: [source("settings_goerli", "failing")] })[1]).toBe(
      "ready",
    );
    expect(readReadiness({ chains: [failing, chain("optimism", ["ok"], { network: "goerli" })] })[0]).toBe(503);
  });

  test("ignores price feeds that fail while there is the price document, but not without it", () => {
    const feeds = source("chainlink_arbitrum", "failing");
    const readWith = (state: "ok" | "failing" | "off") =>
      readReadiness({ chains: [working], sources: [source("prices", state), feeds] });
    expect(readWith("ok")).toEqual([200, "ready", undefined]);
    expect(readWith("failing")).toEqual([200, "degraded", "no response from prices, chainlink_arbitrum"]);
    expect(readWith("off")).toEqual([200, "degraded", "no response from chainlink_arbitrum"]);
  });

  test("is unready while the service shuts down", () => {
    expect(readReadiness({ isDraining: true })).toEqual([503, "unready", "shutting down"]);
  });
});

test("/livez returns 200 until shutdown, /health always, as the older server did", () => {
  expect(probe("/livez")).toMatchObject({ status: 200, body: { status: "OK" }, probeCount: 0 });
  expect(probe("/livez", { isDraining: true })).toMatchObject({ status: 503, body: { status: "DRAINING" } });
  expect(probe("/health", { isDraining: true })).toMatchObject({ status: 200, body: { status: "OK" }, probeCount: 0 });
});
