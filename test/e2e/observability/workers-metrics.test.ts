import { Agent, get } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { findPackageRoot } from "../../../src/app/package-files.js";
import { buildService } from "../../support/service/build-service.js";
import { listChildProcesses } from "../../support/service/child-processes.js";
import { type MetricsScrape, scrapeMetrics } from "../../support/service/metrics-scrape.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";

// Two workers share one port: either returns the metrics of both.

const start = async (environment = {}): Promise<ServiceProcess> =>
  startServiceProcess(await buildService(), { WORKERS: "2", ...environment });

async function stop(service: ServiceProcess): Promise<void> {
  service.signal("SIGTERM");
  expect(await service.exitCode).toBe(0);
}

/** Serves its metrics on a port of the primary. */
let service: ServiceProcess;
beforeAll(async () => {
  service = await start();
});
afterAll(() => stop(service));

/** Sends requests over separate connections, which are distributed to the workers in turn. */
async function sendRequests(url: string, path: string, times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    const status = await new Promise<number>((resolve, reject) => {
      get(`${url}${path}`, { agent: new Agent() }, (response) => {
        response.resume().once("end", () => resolve(response.statusCode ?? 0));
      }).once("error", reject);
    });
    expect(status).toBe(200);
  }
}

const routesCounted = (found: MetricsScrape): number =>
  found.sum("hop_gateway_requests_total", { operation: "ListAvailableRoutes", protocol: "rest", code: "ok" });

/** Waits until every worker has answered a scrape in time: the first one loads prom-client, which a busy machine delays. */
const untilCounted = (metricsUrl: string, count: number): Promise<void> =>
  vi.waitFor(async () => expect(routesCounted(await scrapeMetrics(metricsUrl))).toBe(count), { timeout: 60_000 });

test("returns the metrics of both workers from either", async () => {
  const sharing = await start({ METRICS_PORT: "same" });
  onTestFinished(() => stop(sharing));
  const { url } = sharing;
  await sendRequests(url, "/v1/available-routes", 40);
  await untilCounted(`${url}/metrics`, 40);
  // New connections reach both workers.
  for (let n = 0; n < 4; n++) expect(routesCounted(await scrapeMetrics(`${url}/metrics`))).toBe(40);
  const found = await scrapeMetrics(`${url}/metrics`);
  expect(found.value("hop_gateway_concurrency_limit")).toBe(128);
  expect(found.value("hop_gateway_build_info", { version: findPackageRoot().version, node: process.version })).toBe(1);
  // Each endpoint known to any worker has exactly one current state.
  const current = [...found.text.matchAll(/^hop_gateway_endpoint_state\{.*endpoint="(.+?)",state="\w+"\} 1$/gm)];
  const endpoints = current.map(([, endpoint]) => endpoint);
  expect(endpoints).toContainEqual(expect.stringMatching(/^polygon\[1\]/));
  expect(new Set(endpoints).size).toBe(endpoints.length);
});

test("the primary serves metrics on a separate port, including those of exited and stopped workers", async () => {
  const { url, metricsUrl: told } = service;
  await sendRequests(url, "/v1/available-routes", 20);
  await untilCounted(told, 20);
  expect((await fetch(`${url}/metrics`)).status).toBe(404);

  const workers = await listChildProcesses(service.pid);
  expect(workers).toHaveLength(2);
  const [stuck = 0, killed = 0] = workers;
  process.kill(stuck, "SIGSTOP");
  expect(routesCounted(await scrapeMetrics(told))).toBe(20);
  process.kill(stuck, "SIGCONT");

  process.kill(killed, "SIGKILL");
  await vi.waitFor(
    async () => {
      const now = await listChildProcesses(service.pid);
      expect(now.filter((pid) => pid !== killed)).toHaveLength(2);
    },
    { timeout: 60_000 },
  );
  // Prometheus would take a falling sum for a counter reset.
  expect(routesCounted(await scrapeMetrics(told))).toBe(20);
  await vi.waitFor(async () => sendRequests(url, "/v1/available-routes", 1), { timeout: 60_000 });
  await untilCounted(told, 21);
});

test("the primary answers /livez for its workers", async () => {
  const liveness = async () => {
    const response = await fetch(new URL("/livez", service.metricsUrl));
    return [response.status, await response.json()];
  };
  await vi.waitFor(async () => expect(await liveness()).toEqual([200, { status: "OK" }]), { timeout: 60_000 });
  const [stuck = 0, killed = 0] = await listChildProcesses(service.pid);

  // It still gets connections, and nothing restarts it.
  process.kill(stuck, "SIGSTOP");
  expect(await liveness()).toEqual([503, { status: "UNRESPONSIVE", unresponsiveWorkers: 1 }]);
  process.kill(stuck, "SIGCONT");
  await vi.waitFor(async () => expect(await liveness()).toEqual([200, { status: "OK" }]), { timeout: 60_000 });

  // The primary restarts it, and meanwhile the other one serves.
  process.kill(killed, "SIGKILL");
  await vi.waitFor(async () => expect(await liveness()).toEqual([200, { status: "OK" }]), { timeout: 60_000 });
});
