import { AggregatorRegistry, collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { MetricDescription } from "./catalogue.js";
import type { Sample } from "./instruments.js";

/** A metric with its values, which are collected when they are asked for. */
export interface Family extends MetricDescription {
  collect(): readonly Sample[];
}

/** What a process tells another of its metrics. */
export type TakenMetrics = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** Our metrics, and those that prom-client knows of any process: CPU, memory, files, garbage, the event loop's delay. */
export function createRegistry(families: readonly Family[]): Registry {
  const registry = new Registry();
  // Values that are counted here already need none of prom-client's own places for them.
  for (const family of families) {
    const { name, help, type, aggregator } = family;
    const get = async () => ({ name, help, type, aggregator, values: family.collect() });
    registry.registerMetric({ name, help, type, aggregator, get } as unknown as Metric);
  }
  for (const metric of ofProcess().getMetricsAsArray()) registry.registerMetric(metric as unknown as Metric);
  return registry;
}

let known: Registry | undefined;

/** Those of the process, whatever runs in it. What watches it cannot be ended, and so is begun once. */
function ofProcess(): Registry {
  if (known !== undefined) return known;
  known = new Registry();
  collectDefaultMetrics({ register: known });
  // Sums of what others tell by type, under names that only counters should have.
  for (const of of ["handles", "requests", "resources"]) known.removeSingleMetric(`nodejs_active_${of}_total`);
  return known;
}

/** The metrics of several processes as one text. */
export function toText(taken: readonly TakenMetrics[]): Promise<string> {
  return AggregatorRegistry.aggregate([...taken]).metrics();
}

/** What of the metrics of processes still counts when they have ended, as of one. */
export function countsOf(taken: readonly TakenMetrics[]): Promise<TakenMetrics> {
  // So does prom-client write a type, where its own types say that it is a number.
  const counts = taken.map((metrics) => metrics.filter(({ type }) => /^(counter|histogram)$/.test(String(type))));
  return AggregatorRegistry.aggregate(counts).getMetricsAsJSON();
}
