import { setFlagsFromString } from "node:v8";
import type { GatewayOptions } from "../app/gateway.js";
import { stopOnSignals } from "../app/stop-on-signals.js";
import { loadConfig } from "../config/config.js";

/**
 * By how much the old generation of the heap may grow beyond what was alive at the last collection. By default V8 lets it
 * double and more: under a flood of requests most of the resident memory was garbage (400 MB of which 70 were alive).
 */
const HEAP_GROWING_PERCENT = 20;

/** Serves until a signal stops the process. Prints its addresses to standard output once it listens. */
export async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = loadConfig(environment);
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  // Loaded on demand: the primary does not need the gateway, and a single process does not need the supervisor.
  const createGateway = async (options?: GatewayOptions) =>
    (await import("../app/gateway.js")).createGateway(config, undefined, options);
  const workers = config.workerCount > 1 ? await import("../app/workers.js") : undefined;
  if (workers?.isWorker === true) return workers.serveAsWorker(createGateway);
  const service = workers === undefined ? await createGateway() : workers.createWorkerSupervisor(config);
  stopOnSignals(() => service.stop());
  const { url, metricsUrl } = await service.start();
  const metricsLine = metricsUrl === undefined ? "" : `hop-gateway serves metrics at ${metricsUrl}\n`;
  process.stdout.write(`hop-gateway listens on ${url}\n${metricsLine}`);
}
