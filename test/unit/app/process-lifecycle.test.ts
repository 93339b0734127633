import { expect, onTestFinished, test, vi } from "vitest";
import { logStartupWarnings, stopOnSignals } from "../../../src/app/process-lifecycle.js";
import { loadConfig } from "../../../src/config/config.js";
import { createLogger } from "../../../src/observability/log.js";

test.each([
  ["several workers without Redis", { WORKERS: "3" }, true],
  ["several workers with Redis", { WORKERS: "3", SHARED_STATE: "redis://127.0.0.1" }, false],
  ["one process", {}, false],
])("the start says that each worker reads for itself: %s", (_, environment, isSaid) => {
  const logger = createLogger("silent", { write: () => {} });
  const info = vi.spyOn(logger, "info");
  logStartupWarnings(loadConfig(environment), logger);
  const message = "each worker reads the chains for itself; SHARED_STATE lets them share";
  if (isSaid) expect(info).toHaveBeenCalledExactlyOnceWith({ workers: 3 }, message);
  else expect(info).not.toHaveBeenCalled();
});

test("a signal that npm passes on beside the terminal does not end the stop, a later one does", () => {
  const exit = vi.spyOn(process, "exit").mockImplementation((() => {}) as never);
  const listeners: (() => void)[] = [];
  const on = vi.spyOn(process, "on").mockImplementation((_, listener) => {
    listeners.push(listener as () => void);
    return process;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const stop = vi.fn(() => new Promise<void>(() => {}));
  let now = 1_000;
  stopOnSignals(stop, () => now);
  expect(on.mock.calls.map(([signal]) => signal)).toEqual(["SIGTERM", "SIGINT"]);
  const [onTerm, onInt] = listeners;
  onInt?.();
  onInt?.();
  now += 499;
  onTerm?.();
  expect([stop.mock.calls.length, exit.mock.calls]).toEqual([1, []]);
  now += 1;
  onInt?.();
  expect([stop.mock.calls.length, exit.mock.calls]).toEqual([1, [[1]]]);
});
