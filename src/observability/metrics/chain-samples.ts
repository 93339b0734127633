import type { DependencyStatus } from "../dependency-status.js";
import type { MetricSample } from "./instruments.js";

type ChainStatus = DependencyStatus["chains"][number];

const ENDPOINT_STATES = ["ok", "failing", "cooldown", "lagging", "outvoted", "unknown"] as const;

/**
 * Returns the functions that collect the metrics of the chains, by their keys in the catalogue.
 * @param now milliseconds since 1970
 */
export function createChainSamples(getStatus: () => Pick<DependencyStatus, "chains" | "clock">, now: () => number) {
  const collectHeads = (getValue: (head: NonNullable<ChainStatus["head"]>) => number): MetricSample[] =>
    getStatus().chains.flatMap(({ network, chain, head }) =>
      head === undefined ? [] : [{ labels: { network, chain }, value: getValue(head) }],
    );
  return {
    endpointState: (): MetricSample[] =>
      getStatus().chains.flatMap(({ network, chain, endpoints }) =>
        endpoints.flatMap(({ endpoint, state: current }) =>
          createStateSamples(ENDPOINT_STATES, current, { network, chain, endpoint }),
        ),
      ),
    headAge: () => collectHeads(({ timestamp }) => Math.max(0, now() / 1000 - timestamp)),
    headNumber: () => collectHeads(({ number }) => number),
    chainStalled: (): MetricSample[] =>
      getStatus().chains.map(({ network, chain, isStalled }) => {
        return { labels: { network, chain }, value: isStalled ? 1 : 0 };
      }),
    clockOffset(): MetricSample[] {
      const { clock } = getStatus();
      return clock === undefined ? [] : [{ labels: {}, value: clock.offsetMs / 1000 }];
    },
  };
}

/** Returns one sample per state: 1 for the current state, 0 for the others. */
export function createStateSamples(
  states: readonly string[],
  current: string,
  labels: MetricSample["labels"],
): MetricSample[] {
  return states.map((state) => ({ labels: { ...labels, state }, value: state === current ? 1 : 0 }));
}
