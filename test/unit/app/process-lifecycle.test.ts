import { expect, test, vi } from "vitest";
import { logStartupWarnings } from "../../../src/app/process-lifecycle.js";
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
