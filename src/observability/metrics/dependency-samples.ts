import type { DependencyStatus } from "../dependency-status.js";
import { type MetricSample, toLabeledSamples } from "./instruments.js";

type ChainStatus = DependencyStatus["chains"][number];

const ENDPOINT_STATES = ["ok", "failing", "cooldown", "lagging", "outvoted", "unknown"] as const;
const SOURCE_STATES = ["ok", "failing", "unknown", "off"] as const;

/**
 * Returns the functions that collect the metrics of the chains, by their keys in the catalogue.
 * @param now milliseconds since 1970
 */
export function createChainSamples(
  getStatus: () => Pick<DependencyStatus, "chains" | "clock" | "burnLimitsUsdc">,
  now: () => number,
) {
  const collectHeads = (getValue: (head: NonNullable<ChainStatus["head"]>) => number): MetricSample[] =>
    getStatus().chains.flatMap(({ network, chain, head }) =>
      head === undefined ? [] : [{ labels: { network, chain }, value: getValue(head) }],
    );
  return {
    endpointState: (): MetricSample[] =>
      getStatus().chains.flatMap(({ network, chain, endpoints }) =>
        endpoints.flatMap(({ endpoint, state }) =>
          createStateSamples(ENDPOINT_STATES, state, { network, chain, endpoint }),
        ),
      ),
    headAge: () => collectHeads(({ timestamp }) => Math.max(0, now() / 1000 - timestamp)),
    headNumber: () => collectHeads(({ number }) => number),
    chainStalled: (): MetricSample[] =>
      getStatus().chains.map(({ network, chain, isStalled }) => {
        return { labels: { network, chain }, value: isStalled ? 1 : 0 };
      }),
    cctpBurnLimit: () => toLabeledSamples("chain", getStatus().burnLimitsUsdc),
    clockOffset(): MetricSample[] {
      const { clock } = getStatus();
      return clock === undefined ? [] : [{ labels: {}, value: clock.offsetMs / 1000 }];
    },
  };
}

/** Returns the functions that collect the metrics of the off-chain sources, by their keys in the catalogue. */
export function createSourceSamples(getStatus: () => Pick<DependencyStatus, "sources" | "prices">) {
  return {
    sourceState: (): MetricSample[] =>
      getStatus().sources.flatMap(({ source, state }) => createStateSamples(SOURCE_STATES, state, { source })),
    sourceAge: (): MetricSample[] =>
      getStatus().sources.flatMap(({ source, ageMs }) =>
        ageMs === undefined ? [] : [{ labels: { source }, value: ageMs / 1000 }],
      ),
    priceDifference: (): MetricSample[] =>
      getStatus().prices.differences.map(({ token, difference }) => ({ labels: { token }, value: difference })),
    priceDistrusted: (): MetricSample[] =>
      getStatus().prices.distrustedTokens.map((token) => ({ labels: { token }, value: 1 })),
    priceFeedRefused: (): MetricSample[] =>
      getStatus().prices.refusedFeeds.map((labels) => ({ labels: { ...labels }, value: 1 })),
  };
}

/** Returns the functions that collect the metrics of the index, by their keys in the catalogue. */
export function createIndexSamples(getStatus: () => Pick<DependencyStatus, "index" | "indexDatabase">) {
  return {
    indexLag: (): MetricSample[] =>
      (getStatus().index ?? []).map(({ chain, lagBlocks }) => ({ labels: { chain }, value: lagBlocks })),
    indexDatabaseUp(): MetricSample[] {
      const { indexDatabase } = getStatus();
      return indexDatabase === undefined ? [] : [{ labels: {}, value: indexDatabase.isAvailable ? 1 : 0 }];
    },
    indexDatabaseConnections: (): MetricSample[] =>
      Object.entries(getStatus().indexDatabase?.connections ?? {}).flatMap(([pool, usage]) =>
        Object.entries(usage).map(([state, value]) => ({ labels: { pool, state }, value })),
      ),
    indexDatabaseFailures: (): MetricSample[] => toLabeledSamples("code", getStatus().indexDatabase?.failures),
    indexLeasesHeld: (): MetricSample[] =>
      toLabeledSamples("lease", Object.entries(getStatus().indexDatabase?.leases ?? {})),
  };
}

/** Returns one sample per state: 1 for the current state, 0 for the others. */
function createStateSamples(
  states: readonly string[],
  current: string,
  labels: MetricSample["labels"],
): MetricSample[] {
  return states.map((state) => ({ labels: { ...labels, state }, value: state === current ? 1 : 0 }));
}
