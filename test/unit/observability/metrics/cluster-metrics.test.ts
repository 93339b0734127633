import type { Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { ClusterMetrics } from "../../../../src/observability/metrics/cluster-metrics.js";

/** Creates a worker that reports the same counter value at every collection. */
function createWorkerStub(value: number): Worker {
  const worker = new EventEmitter();
  const counter = {
    name: "some_total",
    help: "h",
    type: "counter",
    aggregator: "sum",
    values: [{ labels: {}, value }],
  };
  return Object.assign(worker, {
    isConnected: () => true,
    send({ type }: { readonly type: string }) {
      const reply = { type: "worker-metrics", metrics: [counter] };
      if (type === "collect-metrics") setImmediate(() => worker.emit("message", reply));
      return true;
    },
  }) as unknown as Worker;
}

test("keeps the counters of workers that have exited, even when several exit at once", async () => {
  const metrics = new ClusterMetrics();
  const workers = [1, 10, 100].map(createWorkerStub);
  for (const worker of workers) metrics.addWorker(worker);
  expect(await metrics.renderText()).toContain("some_total 111");
  for (const worker of workers.slice(0, 2)) worker.emit("exit", 1, null);
  expect(await metrics.renderText()).toContain("some_total 111");
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await metrics.renderText()).toContain("some_total 111");
});
