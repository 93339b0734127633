#!/usr/bin/env node
import { ConfigError, loadConfig } from "./config.js";
import { createGateway } from "./gateway.js";
import { stopOnSignals } from "./stop-on-signals.js";

try {
  const gateway = createGateway(loadConfig(process.env));
  stopOnSignals(() => gateway.stop());
  const { url } = await gateway.start();
  process.stdout.write(`hop-gateway listens on ${url}\n`);
} catch (error) {
  const isExpected = error instanceof ConfigError || (error as NodeJS.ErrnoException).syscall !== undefined;
  process.stderr.write(`hop-gateway: ${isExpected ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(1);
}
