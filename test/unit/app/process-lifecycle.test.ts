import { expect, onTestFinished, test, vi } from "vitest";
import {
  describeListenError,
  describeStartupError,
  logStartupWarnings,
  stopOnSignals,
} from "../../../src/app/process-lifecycle.js";
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

test.each([
  [{ code: "EADDRINUSE", syscall: "listen" }, "port 8000 is in use: set PORT to another one, or to 0 for a free one"],
  [{ code: "EADDRINUSE", syscall: "bind" }, "port 8000 is in use: set PORT to another one, or to 0 for a free one"],
  [{ code: "EACCES" }, "port 8000 needs more rights than this user has: set PORT to another one"],
  [{ code: "EADDRNOTAVAIL" }, "192.0.2.1 is not an address of this machine: correct HOST"],
  [{ code: "EMFILE" }, "listen EMFILE"],
  [{ code: "ENOENT", syscall: "open" }, "listen EMFILE"],
])("a failed start names the variable that mends it: %o", (properties, description) => {
  const error = Object.assign(new Error("listen EMFILE"), { syscall: "listen", address: "192.0.2.1", port: 8_000 });
  expect(describeStartupError(Object.assign(error, properties))).toBe(description);
});

test("an address of the metrics has variables of its own", () => {
  const error = Object.assign(new Error("listen"), { code: "EADDRINUSE", address: "127.0.0.1", port: 9_464 });
  const description = "port 9464 is in use: set METRICS_PORT to another one, or to 0 for a free one";
  expect(describeListenError(error, { host: "METRICS_HOST", port: "METRICS_PORT" })).toBe(description);
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
