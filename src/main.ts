#!/usr/bin/env node
import { loadConfig } from "./config.js";
import { describeFailure } from "./start-failure.js";
import { stopOnSignals } from "./stop-on-signals.js";

// Whoever started us may not read what we say.
process.stdout.on("error", () => {});
try {
  const config = loadConfig(process.env);
  // Neither the process over the workers loads what answers requests, nor a single process what runs workers.
  const createGateway = async () => (await import("./gateway.js")).createGateway(config);
  const workers = config.workers > 1 ? await import("./workers.js") : undefined;
  if (workers?.isWorker === true) await workers.serveAsWorker(createGateway);
  else {
    const service = workers === undefined ? await createGateway() : workers.createWorkers(config);
    stopOnSignals(() => service.stop());
    const { url } = await service.start();
    process.stdout.write(`hop-gateway listens on ${url}\n`);
  }
} catch (error) {
  process.stderr.write(`hop-gateway: ${describeFailure(error)}\n`);
  process.exit(1);
}
