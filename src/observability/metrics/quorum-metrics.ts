import { metricCatalogue } from "./catalogue.js";
import { createLabeledCounter, type MetricSample } from "./instruments.js";

/** What the votes of RPC endpoints (RPC_QUORUM) add to the metrics. */
export interface QuorumMetrics {
  readonly observer: {
    /** @param read what the outvoted endpoint was asked for */
    readonly onOutvoted: (network: string, chain: string, endpoint: string, read: string) => void;
    readonly onRead: (network: string, chain: string, outcome: string) => void;
    readonly onCalls: (network: string, chain: string, purpose: string, count: number) => void;
  };
  readonly samples: Readonly<Record<"outvotedEndpoints" | "quorumReads" | "quorumCalls", () => MetricSample[]>>;
}

export function createQuorumMetrics(): QuorumMetrics {
  const outvoted = createLabeledCounter(metricCatalogue.outvotedEndpoints.labels);
  const reads = createLabeledCounter(metricCatalogue.quorumReads.labels);
  const calls = createLabeledCounter(metricCatalogue.quorumCalls.labels);
  return {
    observer: {
      onOutvoted: (...labels) => outvoted.increment(...labels),
      onRead: (...labels) => reads.increment(...labels),
      onCalls: (network, chain, purpose, count) => calls.add(count, network, chain, purpose),
    },
    samples: { outvotedEndpoints: outvoted.toSamples, quorumReads: reads.toSamples, quorumCalls: calls.toSamples },
  };
}
