import type { Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createWorkerLiveness } from "../../../src/observability/worker-liveness.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

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

test("is alive when every worker replies", async () => {
  expect(await check(reply, reply)).toEqual([200, { status: "OK" }]);
});

test("is not alive when a worker does not reply within two seconds", async () => {
  expect(await check(reply, ignore, reply)).toEqual([503, { status: "UNRESPONSIVE", unresponsiveWorkers: 1 }]);
});

test("does not count other messages as a reply", async () => {
  const sendMetrics = (worker: Worker): void => void worker.emit("message", { type: "worker-metrics" });
  expect(await check(sendMetrics)).toEqual([503, { status: "UNRESPONSIVE", unresponsiveWorkers: 1 }]);
});

test("is alive while one worker serves and another one exits, which is restarted", async () => {
  expect(await check(exit, reply)).toEqual([200, { status: "OK" }]);
});

test("is not alive without any worker", async () => {
  expect(await check()).toEqual([503, { status: "NO_WORKER" }]);
  expect(await check(exit, exit)).toEqual([503, { status: "NO_WORKER" }]);
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
