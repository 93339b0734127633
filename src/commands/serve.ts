import { stopOnSignals } from "../app/stop-on-signals.js";
import { loadConfig } from "../config/config.js";

/** Serves until a signal ends it; says on standard output where it listens. */
export async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = loadConfig(environment);
  // Neither the process over the workers loads what answers requests, nor a single process what runs workers.
  const createGateway = async () => (await import("../app/gateway.js")).createGateway(config);
  const workers = config.workerCount > 1 ? await import("../app/workers.js") : undefined;
  if (workers?.isWorker === true) return workers.serveAsWorker(createGateway);
  const service = workers === undefined ? await createGateway() : workers.createWorkerSupervisor(config);
  stopOnSignals(() => service.stop());
  const { url } = await service.start();
  process.stdout.write(`hop-gateway listens on ${url}\n`);
}
