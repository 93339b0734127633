import { AggregatorRegistry, collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { MetricDescription } from "./catalogue.js";
import type { MetricSample } from "./instruments.js";

/** A metric with its values, which are collected when they are asked for. */
export interface MetricFamily extends MetricDescription {
  collect(): readonly MetricSample[];
}

/** What a process tells another of its metrics. */
export type MetricsJson = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** Our metrics, and those that prom-client knows of any process: CPU, memory, files, garbage, the event loop's delay. */
export function createMetricsRegistry(families: readonly MetricFamily[]): Registry {
  const registry = new Registry();
  // Values that are counted here already need none of prom-client's own places for them.
  for (const family of families) {
    const { name, help, type, aggregator } = family;
    const get = async () => ({ name, help, type, aggregator, values: family.collect() });
    registry.registerMetric({ name, help, type, aggregator, get } as unknown as Metric);
  }
  for (const metric of getProcessRegistry().getMetricsAsArray()) registry.registerMetric(metric as unknown as Metric);
  return registry;
}

let processRegistry: Registry | undefined;

/** Those of the process, whatever runs in it. What watches it cannot be ended, and so is begun once. */
function getProcessRegistry(): Registry {
  if (processRegistry !== undefined) return processRegistry;
  processRegistry = new Registry();
  collectDefaultMetrics({ register: processRegistry });
  // Sums of what others tell by type, under names that only counters should have.
  for (const of of ["handles", "requests", "resources"])
    processRegistry.removeSingleMetric(`nodejs_active_${of}_total`);
  return processRegistry;
}

/** The metrics of several processes as one text. */
export function renderMetricsText(taken: readonly MetricsJson[]): Promise<string> {
  return AggregatorRegistry.aggregate([...taken]).metrics();
}

/** What of the metrics of processes still counts when they have ended, as of one. */
export function mergeCumulativeMetrics(taken: readonly MetricsJson[]): Promise<MetricsJson> {
  // So does prom-client write a type, where its own types say that it is a number.
  const counts = taken.map((metrics) => metrics.filter(({ type }) => /^(counter|histogram)$/.test(String(type))));
  return AggregatorRegistry.aggregate(counts).getMetricsAsJSON();
}
