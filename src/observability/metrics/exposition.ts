import { setTimeout as sleep } from "node:timers/promises";
import type * as promClient from "prom-client";
import { createPackageLoader } from "../package-loader.js";
import type { MetricDescription, MetricSample } from "./catalogue.js";

/** Loads prom-client, for the first scrape: it costs 20 ms and 7 MB, also where nobody reads the metrics. */
const loadPromClient = createPackageLoader<typeof promClient>("prom-client");

/** Media type of the Prometheus text exposition format. */
export const PROMETHEUS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The cooldown after a scrape is this many times its duration: scrapes use at most a tenth of the process. */
const COOLDOWN_FACTOR = 9;
/** Upper limit of the cooldown: a slow scrape may only have waited for another process. */
const MAX_COOLDOWN_MS = 1_000;

/** The metrics of one process in the form that processes exchange. */
export type MetricsJson = Awaited<ReturnType<promClient.Registry["getMetricsAsJSON"]>>;

/** Creates a registry with the given metrics and prom-client's process metrics (CPU, memory, files, GC, event loop lag). */
export function createMetricsRegistry(
  families: readonly { readonly description: MetricDescription; readonly collect: () => readonly MetricSample[] }[],
): promClient.Registry {
  const registry = new (loadPromClient().Registry)();
  // The values are counted by our own instruments, so the registry gets collectors instead of prom-client's metrics.
  for (const { description, collect } of families) {
    const { name, help, type, aggregator } = description;
    const get = async () => ({ name, help, type, aggregator, values: collect() });
    registry.registerMetric({ name, help, type, aggregator, get } as unknown as promClient.Metric);
  }
  for (const metric of getProcessRegistry().getMetricsAsArray())
    registry.registerMetric(metric as unknown as promClient.Metric);
  return registry;
}

let processRegistry: promClient.Registry | undefined;

/** Returns the process metrics, created once: prom-client cannot stop their observers. */
function getProcessRegistry(): promClient.Registry {
  if (processRegistry !== undefined) return processRegistry;
  const { Registry, collectDefaultMetrics } = loadPromClient();
  processRegistry = new Registry();
  collectDefaultMetrics({ register: processRegistry });
  // Gauges whose names end in _total, which is reserved for counters. The same values exist by type under other names.
  for (const kind of ["handles", "requests", "resources"])
    processRegistry.removeSingleMetric(`nodejs_active_${kind}_total`);
  return processRegistry;
}

/** Aggregates the metrics of several processes and renders them as text. */
export function renderMetricsText(metricsByProcess: readonly MetricsJson[]): Promise<string> {
  return loadPromClient()
    .AggregatorRegistry.aggregate([...metricsByProcess])
    .metrics();
}

/** Aggregates the counters and histograms of several processes, which remain valid after a process has exited. */
export function mergeCumulativeMetrics(metricsByProcess: readonly MetricsJson[]): Promise<MetricsJson> {
  // prom-client's types declare `type` as a number, but its value is a string.
  const cumulative = metricsByProcess.map((metrics) =>
    metrics.filter(({ type }) => /^(counter|histogram)$/.test(String(type))),
  );
  return loadPromClient().AggregatorRegistry.aggregate(cumulative).getMetricsAsJSON();
}

/**
 * Limits how often metrics are rendered: rendering takes milliseconds, and anyone who reaches the port may ask for it. Runs
 * one scrape at a time. Callers that arrive before a scrape starts share its result, so no result is older than its request.
 */
export function createThrottledScrape(render: () => Promise<string>): () => Promise<string> {
  let cooldown: Promise<unknown> = Promise.resolve();
  /** The scrape that has not started yet. */
  let next: Promise<string> | undefined;

  async function startScrape(): Promise<string> {
    await cooldown;
    next = undefined;
    const startedAt = performance.now();
    const text = render();
    const coolDown = () =>
      sleep(Math.min(MAX_COOLDOWN_MS, COOLDOWN_FACTOR * (performance.now() - startedAt)), undefined, { ref: false });
    cooldown = text.then(coolDown, coolDown);
    return text;
  }

  return () => {
    next ??= startScrape();
    return next;
  };
}
