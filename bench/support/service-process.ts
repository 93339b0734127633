import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The service, started as users start it. */
export interface ServiceProcess {
  readonly url: string;
  /** Of its first process. */
  readonly pid: number;
  /** When it was started, by `performance.now()`. */
  readonly began: number;
  readonly listeningMs: number;
  /** Returns the resident memory of its first process. */
  memoryMb(): Promise<number>;
  /** Returns the CPU time of its first process so far, user and system, where /proc has it. */
  cpuSeconds(): number;
  /** Kills the process and waits for its exit; its workers follow. */
  stop(): Promise<void>;
}

const main = fileURLToPath(new URL("../../src/main.js", import.meta.url));

/**
 * Starts the service by its command line, without log output and on a free port unless the environment says otherwise.
 * @param core number of the only core that it may use, where `taskset` is installed. Default: any
 */
export async function startService(
  environment: Readonly<Record<string, string>>,
  core?: number,
): Promise<ServiceProcess> {
  const began = performance.now();
  const [command, ...prefix] = core === undefined ? [] : ["taskset", "-c", `${core}`, process.execPath];
  const child = spawn(command ?? process.execPath, [...prefix, main], {
    env: { ...process.env, LOG_LEVEL: "silent", HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0", ...environment },
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
    pid: child.pid ?? 0,
    began,
    listeningMs: performance.now() - began,
    memoryMb: () => readResidentMb(child.pid ?? 0),
    cpuSeconds: () => readCpuSeconds(child.pid ?? 0),
    async stop() {
      process.off("exit", kill);
      kill();
      await exited;
    },
  };
}

/** Returns the resident memory of a process. */
export async function readResidentMb(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", `${pid}`]);
  return Number(stdout) / 1024;
}

/** Clock ticks of /proc/<pid>/stat, on every Linux. */
const TICKS_PER_SECOND = 100;

function readCpuSeconds(pid: number): number {
  // The name, in brackets, may have spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  const [userTicks, systemTicks] = [fields[11], fields[12]];
  return (Number(userTicks) + Number(systemTicks)) / TICKS_PER_SECOND;
}
