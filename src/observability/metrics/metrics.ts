import type { ServiceState } from "../../app/dependency-status.js";
import type { ChainExchange } from "../../chain/chains.js";
import type { ExchangeObserver } from "../../chain/endpoints/endpoint.js";
import type { AccessLog } from "../../http/request/request-context.js";
import type { GateLoad } from "../../resilience/adaptive-limiter.js";
import { ageBuckets, catalogue, type MetricDescription, upstreamBuckets } from "./catalogue.js";
import type { Family, TakenMetrics } from "./exposition.js";
import { createTally, Distribution, type Sample } from "./instruments.js";
import { createRequestCounts } from "./request-metrics.js";

/** What the process counts and measures of itself. What the parts tell it costs them next to nothing. */
export interface Metrics {
  readonly onRequest: AccessLog;
  readonly onExchange: ExchangeObserver<ChainExchange>;
  readonly onSnapshotRead: (outcome: "ok" | "failed") => void;
  /** @param ageMs of the facts of a quote that is given */
  readonly onQuote: (ageMs: number) => void;
  readonly onVerdict: (verdict: "equal" | "different" | "failed") => void;
  /** Loads what writes metrics, and begins to watch the process. Called by the others too. */
  load(): Promise<void>;
  /** In the text form of Prometheus. */
  text(): Promise<string>;
  /** For another process. */
  take(): Promise<TakenMetrics>;
}

/** How much goes on now. */
export interface Load {
  readonly connections: number;
  readonly requests: number;
  readonly gate: GateLoad;
  readonly callsWaiting: number;
  readonly customEndpoints: number;
  readonly routesKept: number;
}

export interface MetricsOptions {
  readonly version: string;
  /** Asked at each scrape, as is the load. */
  readonly state: () => ServiceState;
  readonly load: () => Load;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a steady clock. */
  readonly steady: () => number;
}

/** Every metric of our own, for what stands on their names. */
export const metricDescriptions: readonly MetricDescription[] = Object.values(catalogue);

const endpointStates = ["ok", "failing", "resting", "lagging", "unknown"] as const;
const sourceStates = ["ok", "failing", "unknown", "off"] as const;

/** The methods that are sent here; what the SDK or a later version sends beside them is `other`. */
const rpcMethods: ReadonlySet<string> = new Set([
  ...["batch", "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_gasPrice", "eth_getBlockByHash"],
  ...["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionByHash", "eth_getTransactionReceipt"],
]);

export function createMetrics({ version, state, load, now, steady }: MetricsOptions): Metrics {
  const requests = createRequestCounts();
  const sessionFaults = createTally(catalogue.sessionFaults.labels);
  const exchanges = createTally(catalogue.upstreamRequests.labels);
  const exchangeTimes = new Map<string, { readonly labels: Sample["labels"]; readonly times: Distribution }>();
  const quoteAges = new Distribution(ageBuckets);
  const verdicts = createTally(catalogue.quoteVerifications.labels);
  const snapshotReads = createTally(catalogue.snapshotReads.labels);
  let registry: Promise<Registry> | undefined;

  function timesOf(network: string, chain: string): Distribution {
    const key = `${network} ${chain}`;
    const known = exchangeTimes.get(key) ?? { labels: { network, chain }, times: new Distribution(upstreamBuckets) };
    exchangeTimes.set(key, known);
    return known.times;
  }

  const one = (value: number): Sample[] => [{ labels: {}, value }];
  const headsOf = (valueFrom: (head: { readonly number: number; readonly time: number }) => number): Sample[] =>
    state().chains.flatMap(({ network, chain, head }) =>
      head === undefined ? [] : [{ labels: { network, chain }, value: valueFrom(head) }],
    );
  const collected: Readonly<Record<keyof typeof catalogue, () => Sample[]>> = {
    requests: requests.counts,
    requestDuration: requests.durations,
    requestsInProgress: () => one(load().requests),
    connections: () => one(load().connections),
    sessionFaults: sessionFaults.samples,
    upstreamRequests: exchanges.samples,
    upstreamDuration: () =>
      [...exchangeTimes.values()].flatMap(({ labels, times }) =>
        times.samples(catalogue.upstreamDuration.name, labels),
      ),
    endpointState: () =>
      state().chains.flatMap(({ network, chain, endpoints }) =>
        endpoints.flatMap(({ endpoint, state: own }) => oneOf(endpointStates, own, { network, chain, endpoint })),
      ),
    headAge: () => headsOf(({ time }) => Math.max(0, now() / 1000 - time)),
    headNumber: () => headsOf(({ number }) => number),
    sourceState: () => state().sources.flatMap(({ source, state: own }) => oneOf(sourceStates, own, { source })),
    sourceAge: () =>
      state().sources.flatMap(({ source, ageMs }) =>
        ageMs === undefined ? [] : [{ labels: { source }, value: ageMs / 1000 }],
      ),
    quoteFactsAge: () => quoteAges.samples(catalogue.quoteFactsAge.name, {}),
    quoteVerifications: verdicts.samples,
    snapshotReads: snapshotReads.samples,
    routesKeptFresh: () => one(load().routesKept),
    indexLag: () => (state().index ?? []).map(({ chain, lagBlocks }) => ({ labels: { chain }, value: lagBlocks })),
    gateLimit: () => one(load().gate.limit),
    gateInside: () => one(load().gate.inside),
    callsWaiting: () => one(load().callsWaiting),
    customEndpoints: () => one(load().customEndpoints),
    buildInfo: () => [{ labels: { version, node: process.version }, value: 1 }],
  };

  /** Loaded when it is wanted: a start is quicker without it. */
  function loaded(): Promise<Registry> {
    registry ??= import("./exposition.js").then(({ createRegistry }) => {
      const families = Object.entries(catalogue).map(([key, description]): Family => {
        return { ...description, collect: collected[key as keyof typeof catalogue] };
      });
      return createRegistry(families);
    });
    return registry;
  }

  return {
    onRequest(line, reason) {
      requests.note(line, reason);
      if (line.fault !== undefined) sessionFaults.add(String(line.fault));
    },
    onExchange({ network, chain, endpoint, method }) {
      const beganAt = steady();
      return (outcome) => {
        exchanges.add(network, chain, endpoint, rpcMethods.has(method) ? method : "other", outcome);
        if (outcome !== "aborted") timesOf(network, chain).observe((steady() - beganAt) / 1000);
      };
    },
    onSnapshotRead: (outcome) => snapshotReads.add(outcome),
    onQuote: (ageMs) => quoteAges.observe(ageMs / 1000),
    onVerdict: (verdict) => verdicts.add(verdict),
    load: async () => void (await loaded()),
    text: async () => (await loaded()).metrics(),
    take: async () => (await loaded()).getMetricsAsJSON(),
  };
}

type Registry = ReturnType<typeof import("./exposition.js").createRegistry>;

/** A sample for each state that there is: 1 for the one that holds. */
function oneOf(states: readonly string[], own: string, labels: Sample["labels"]): Sample[] {
  return states.map((state) => ({ labels: { ...labels, state }, value: state === own ? 1 : 0 }));
}
