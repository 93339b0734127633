import { describe, expect, test } from "vitest";
import type { DependencyStatus } from "../../../src/app/dependency-status.js";
import type { EndpointState } from "../../../src/chain/endpoints/endpoint-pool.js";
import type { ObservedHead } from "../../../src/chain/endpoints/head-tracker.js";
import { createProbes } from "../../../src/observability/probes.js";

const now = 1_795_000_000_000;
const steady = 50_000;
type State = EndpointState["state"];

const head: ObservedHead = { number: 123, timestamp: now / 1000 - 2.14, observedAt: steady - 4_200 };

function chain(name: string, states: readonly State[], about: { network?: string; head?: ObservedHead } = {}) {
  const endpoints = states.map((state, n) => ({ endpoint: `a1b2c${n}`, state, head: about.head }));
  return { network: "mainnet", chain: name, chainId: 10, lastUsedAt: undefined, head: undefined, ...about, endpoints };
}

interface Setup extends Partial<DependencyStatus> {
  readonly isDraining?: boolean;
}

function probe(path: string, { isDraining = false, ...state }: Setup = {}) {
  let looks = 0;
  const read = () => ({ chains: [chain("optimism", ["ok"])], sources: [], index: undefined, ...state });
  const probes = createProbes({
    version: "1.2.3",
    dependencies: { read, probe: () => (looks += 1) },
    isDraining: () => isDraining,
    now: () => now,
    monotonicNow: () => steady,
  });
  const report = probes.get(path)?.();
  if (report === undefined) throw new Error(`no probe at ${path}`);
  return { status: report.status, body: JSON.parse(report.body), looks };
}

const readiness = (state: Setup) => {
  const { status, body } = probe("/readyz", state);
  return [status, body.status, body.reason];
};

test("/readyz tells what is known of chains, sources and the index, and leaves out what is not", () => {
  const { status, body, looks } = probe("/readyz", {
    chains: [chain("optimism", ["ok", "cooldown"], { head }), chain("base", ["unknown"])],
    sources: [
      { source: "prices", state: "ok", ageMs: 12_340 },
      { source: "explorer", state: "off", ageMs: undefined },
    ],
    index: [{ chain: "optimism", lagBlocks: 3 }],
  });
  const told = { number: 123, ageSeconds: 2.1, seenSecondsAgo: 4.2 };
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
        head: told,
        endpoints: [
          { endpoint: "a1b2c0", state: "ok", head: told },
          { endpoint: "a1b2c1", state: "cooldown", head: told },
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
      { source: "explorer", state: "off" },
    ],
    index: [{ chain: "optimism", lagBlocks: 3 }],
  });
  expect(looks).toBe(1);
});

test.each<[State[], string]>([
  [["failing", "ok"], "ok"],
  [["lagging"], "ok"],
  [["failing", "cooldown"], "failing"],
  [["failing", "unknown"], "unknown"],
  [["unknown"], "unknown"],
])("a chain whose endpoints are %j is %s", (states, expected) => {
  expect(probe("/readyz", { chains: [chain("optimism", states)] }).body.chains[0].state).toBe(expected);
});

describe("/readyz", () => {
  const well = chain("base", ["ok"]);
  const lost = chain("optimism", ["failing"]);
  const source = (name: string, state: "ok" | "failing" | "unknown") => ({ source: name, state, ageMs: undefined });

  test("is ready while nothing is known to fail", () => {
    expect(readiness({ chains: [well, chain("linea", ["unknown"])], sources: [source("prices", "unknown")] })).toEqual([
      ...[200, "ready", undefined],
    ]);
  });

  test("is degraded where some chain or source fails, and still takes requests", () => {
    expect(readiness({ chains: [well, lost], sources: [source("prices", "failing")] })).toEqual([
      ...[200, "degraded", "no answer from optimism, prices"],
    ]);
  });

  test("is unready where no chain answers", () => {
    const chains = [lost, chain("base", ["failing"])];
    expect(readiness({ chains })).toEqual([503, "unready", "no chain answers"]);
    // One of which nothing is known yet may.
    expect(readiness({ chains: [...chains, chain("linea", ["unknown"])] })[0]).toBe(200);
  });

  test("is not changed by what callers can bring about on another network", () => {
    const goerli = chain("optimism", ["failing"], { network: "goerli" });
    expect(readiness({ chains: [well, goerli], sources: [source("settings_goerli", "failing")] })[1]).toBe("ready");
    expect(readiness({ chains: [lost, chain("optimism", ["ok"], { network: "goerli" })] })[0]).toBe(503);
  });

  test("is unready while the service ends", () => {
    expect(readiness({ isDraining: true })).toEqual([503, "unready", "it ends: take no more requests here"]);
  });
});

test("/livez lives until the service ends; /health is what the older server said", () => {
  expect(probe("/livez")).toMatchObject({ status: 200, body: { status: "OK" }, looks: 0 });
  expect(probe("/livez", { isDraining: true })).toMatchObject({ status: 503, body: { status: "DRAINING" } });
  expect(probe("/health", { isDraining: true })).toMatchObject({ status: 200, body: { status: "OK" }, looks: 0 });
});
