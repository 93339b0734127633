import type { Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { beforeEach, expect, test, vi } from "vitest";
import { createWorkerLiveness } from "../../../src/observability/worker-liveness.js";

beforeEach(() => void vi.useFakeTimers());

/** Creates a worker that does with each ping what `onPing` does. */
function createWorker(onPing: (worker: Worker) => void) {
  const send = vi.fn(() => {
    setImmediate(onPing, worker);
    return true;
  });
  const worker = Object.assign(new EventEmitter(), { send }) as unknown as Worker;
  return { worker, send };
}

const reply = (worker: Worker): void => void worker.emit("message", { type: "pong" });
const ignore = (): void => {};
const exit = (worker: Worker): void => void worker.emit("exit", null, "SIGKILL");

/** Returns the status and the body once the longest check is over. */
async function check(...onPing: readonly ((worker: Worker) => void)[]) {
  const workers = onPing.map((each) => createWorker(each).worker);
  const report = createWorkerLiveness(() => workers)();
  await vi.advanceTimersByTimeAsync(2_000);
  const { status, body } = await report;
  for (const worker of workers) expect([worker.listenerCount("message"), worker.listenerCount("exit")]).toEqual([0, 0]);
  return [status, JSON.parse(body)];
}

const sendMetrics = (worker: Worker): void => void worker.emit("message", { type: "worker-metrics" });
const UNRESPONSIVE = { status: "UNRESPONSIVE", unresponsiveWorkers: 1 };

test.each([
  ["is alive when every worker replies", [reply, reply], 200, { status: "OK" }],
  ["is not alive when a worker does not reply within two seconds", [reply, ignore, reply], 503, UNRESPONSIVE],
  ["does not count other messages as a reply", [sendMetrics], 503, UNRESPONSIVE],
  ["is alive while one worker serves and another one exits, which is restarted", [exit, reply], 200, { status: "OK" }],
  ["is not alive without any worker", [], 503, { status: "NO_WORKER" }],
  ["is not alive when all workers exit", [exit, exit], 503, { status: "NO_WORKER" }],
])("%s", async (_, onPing, status, body) => {
  expect(await check(...onPing)).toEqual([status, body]);
});

test("sends one ping for concurrent probes", async () => {
  const { worker, send } = createWorker(reply);
  const readLiveness = createWorkerLiveness(() => [worker]);
  const reports = Array.from({ length: 1_000 }, readLiveness);
  await vi.advanceTimersByTimeAsync(1);
  expect((await Promise.all(reports)).every(({ status }) => status === 200)).toBe(true);
  expect(send).toHaveBeenCalledTimes(1);
  const next = readLiveness();
  await vi.advanceTimersByTimeAsync(1);
  expect((await next).status).toBe(200);
  expect(send).toHaveBeenCalledTimes(2);
});
