import type { Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { createClusterMetrics } from "../../../../src/observability/metrics/cluster-metrics.js";
import type { MetricsJson } from "../../../../src/observability/metrics/exposition.js";

const counted = (value: number): MetricsJson =>
  [
    { name: "some_total", help: "h", type: "counter", aggregator: "sum", values: [{ labels: {}, value }] },
  ] as unknown as MetricsJson;

/** A worker that has counted as much whenever it is asked. */
function workerWith(count: number): Worker {
  const worker = new EventEmitter();
  return Object.assign(worker, {
    isConnected: () => true,
    send(message: object) {
      if ("takeMetrics" in message) setImmediate(() => worker.emit("message", { metricsTaken: counted(count) }));
      return true;
    },
  }) as unknown as Worker;
}

test("what workers counted stays, also where several end at once", async () => {
  const metrics = createClusterMetrics();
  const workers = [1, 10, 100].map(workerWith);
  for (const worker of workers) metrics.addWorker(worker);
  expect(await metrics.renderText()).toContain("some_total 111");
  for (const worker of workers.slice(0, 2)) worker.emit("exit", 1, null);
  expect(await metrics.renderText()).toContain("some_total 111");
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await metrics.renderText()).toContain("some_total 111");
});
