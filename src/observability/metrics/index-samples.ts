import type { DependencyStatus } from "../dependency-status.js";
import type { MetricSample } from "./instruments.js";

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
    indexDatabaseFailures: (): MetricSample[] =>
      Array.from(getStatus().indexDatabase?.failures ?? [], ([code, value]) => ({ labels: { code }, value })),
    indexLeasesHeld: (): MetricSample[] =>
      Object.entries(getStatus().indexDatabase?.leases ?? {}).map(([lease, value]) => ({ labels: { lease }, value })),
  };
}
