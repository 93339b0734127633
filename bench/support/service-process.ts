import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The service, started as users start it. */
export interface ServiceProcess {
  readonly url: string;
  /** When it was started, by `performance.now()`. */
  readonly began: number;
  readonly listeningMs: number;
  /** Returns the resident memory of its first process. */
  memoryMb(): Promise<number>;
  /** Kills the process and waits for its exit; its workers follow. */
  stop(): Promise<void>;
}

const main = fileURLToPath(new URL("../../src/main.js", import.meta.url));

/** Starts the service by its command line, without log output unless the environment says otherwise. */
export async function startService(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  const began = performance.now();
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, LOG_LEVEL: "silent", ...environment, HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const exited = once(child, "exit");
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), "line"),
    exited.then(() => Promise.reject(new Error("the service exited"))),
  ])) as [string];
  const url = /http:\S+/.exec(line)?.[0] ?? "";
  return {
    url,
    began,
    listeningMs: performance.now() - began,
    memoryMb: () => readResidentMb(child.pid ?? 0),
    async stop() {
      process.off("exit", kill);
      kill();
      await exited;
    },
  };
}

async function readResidentMb(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", `${pid}`]);
  return Number(stdout) / 1024;
}
