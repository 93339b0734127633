import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ReplicaProcess } from "../../test/replicas/support/replica-group.js";

const main = fileURLToPath(new URL("../../src/main.js", import.meta.url));

/** Starts a process of the service that can be stopped gracefully. It ends with the bench. */
export async function startReplica(
  port: number,
  environment: Readonly<Record<string, string>>,
): Promise<ReplicaProcess> {
  const child = spawn(process.execPath, [main], {
    env: {
      PATH: process.env.PATH,
      ...{ LOG_LEVEL: "silent", ...environment, HOST: "127.0.0.1", PORT: `${port}`, METRICS_PORT: "0" },
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const exitCode = once(child, "exit").then(([code]) => {
    process.off("exit", kill);
    return code as number | null;
  });
  const lines = createInterface(child.stdout);
  const metricsUrl = await Promise.race([
    new Promise<string>((resolve) => {
      lines.on("line", (line) => {
        const url = /serves metrics at (\S+)/.exec(line)?.[1];
        if (url !== undefined) resolve(url);
      });
    }),
    exitCode.then((code) => Promise.reject(new Error(`a replica exited with ${code}`))),
  ]);
  return {
    metricsUrl,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    signal: (name) => void child.kill(name),
    exitCode,
  };
}
