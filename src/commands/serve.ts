import cluster from "node:cluster";
import { setFlagsFromString } from "node:v8";
import type { GatewayOptions } from "../app/gateway.js";
import { stopOnSignals } from "../app/process-lifecycle.js";
import { loadConfig } from "../config/config.js";
import type { LogLevel } from "../config/environment-table.js";

/**
 * By how much the old generation of the heap may grow beyond what was alive at the last collection. By default V8 lets it
 * double and more: under a flood of requests most of the resident memory was garbage (400 MB of which 70 were alive).
 */
const HEAP_GROWING_PERCENT = 20;

/** At these, the state of the chains after the start is printed. */
const ANNOUNCING_LEVELS: ReadonlySet<LogLevel> = new Set(["trace", "debug", "info"]);

/** Serves until a signal stops the process. Prints its addresses to standard output once it listens. */
export async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = loadConfig(environment);
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  // As an address, not through the log, whose package is loaded with its first event. Workers would all say the same.
  const isAnnounced = ANNOUNCING_LEVELS.has(config.logLevel) && (!cluster.isWorker || cluster.worker?.id === 1);
  const announceChains = (summary: string): void => void process.stdout.write(`hop-gateway: ${summary}\n`);
  // Checked in any case: before, the service is not ready.
  const onChainsChecked = isAnnounced ? announceChains : () => {};
  // Loaded on demand: the primary does not need the gateway, and a single process does not need the supervisor.
  const createGateway = async (options?: GatewayOptions) =>
    (await import("../app/gateway.js")).createGateway(config, undefined, { ...options, onChainsChecked });
  const workers = config.workerCount > 1 ? await import("../app/workers.js") : undefined;
  if (workers?.isWorker === true) return workers.serveAsWorker(createGateway);
  const service = workers === undefined ? await createGateway() : new workers.WorkerSupervisor(config);
  stopOnSignals(() => service.stop());
  const { url, metricsUrl } = await service.start();
  const metricsLine = metricsUrl === undefined ? "" : `hop-gateway serves metrics at ${metricsUrl}\n`;
  process.stdout.write(`hop-gateway listens on ${url}${describeOtherAddresses(config.host)}\n${metricsLine}`);
}

/** Completes the report of an address that can be called, where the service listens on more than that. */
function describeOtherAddresses(host: string): string {
  return /^(?:0\.0\.0\.0|::)$/.test(host) ? ` and all other addresses of this machine (HOST=${host})` : "";
}
