import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { inject } from "vitest";
import { RESPONSES_FILE_PREFIX } from "../contract/contract-report.js";
import { createRecorderModule } from "../contract/response-recorder.js";
import { plantKeys } from "./planted-keys.js";
import { createOutputPath } from "./recorded-output.js";

/** Resources of a process after garbage collection. */
export interface ResourceUsage {
  /** Bytes of the JavaScript heap. */
  readonly heapBytes: number;
  /** What keeps the process alive, by kind: sockets, servers, timers. */
  readonly resources: readonly string[];
}

/** The service in a separate process, as an operator runs it. */
export interface ServiceProcess {
  readonly url: string;
  readonly metricsUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Returns whether the process is running. */
  isRunning(): boolean;
  /** Returns all of standard output (the log) and standard error so far. */
  output(): { readonly stdout: string; readonly stderr: string };
  resourceUsage(): Promise<ResourceUsage>;
  signal(name: NodeJS.Signals): void;
  /** Exit code; null if a signal ended the process. */
  readonly exitCode: Promise<number | null>;
}

/** Only a hang takes longer. */
const START_TIMEOUT_MS = 120_000;

/** Runs in the process before the service: reports resources on request, and exits with the parent. */
const OBSERVER_MODULE = `
process.on("disconnect", () => process.exit(1));
process.on("message", (message) => {
  // Workers inherit this module, and get other messages too.
  if (message !== "report") return;
  gc();
  setImmediate(() => {
    gc();
    process.send({ heapBytes: process.memoryUsage().heapUsed, resources: process.getActiveResourcesInfo() });
  });
});`;

/** Starts the service over the shared local network, with a key planted in every RPC URL, and waits for its address. */
export async function startServiceProcess(
  command: string,
  environment: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<ServiceProcess> {
  const files = { stdout: createOutputPath("stdout"), stderr: createOutputPath("stderr") };
  const preload = `data:text/javascript,${encodeURIComponent(OBSERVER_MODULE)}`;
  const recorder = createRecorderModule(createOutputPath(RESPONSES_FILE_PREFIX));
  const configured = {
    ...inject("network").environment,
    HOST: "127.0.0.1",
    PORT: "0",
    METRICS_PORT: "0",
    LOG_LEVEL: "trace",
    ...environment,
  };
  const child = spawn(process.execPath, ["--expose-gc", "--import", preload, "--import", recorder, command, ...args], {
    env: { PATH: process.env.PATH, ...plantKeys(configured) },
    stdio: ["ignore", openSync(files.stdout, "a"), openSync(files.stderr, "a"), "ipc"],
  });
  const exitCode = once(child, "exit").then(([code]) => code as number | null);
  const output = () => ({ stdout: readFileSync(files.stdout, "utf8"), stderr: readFileSync(files.stderr, "utf8") });
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;

  async function readUrls(): Promise<{ readonly url: string; readonly metricsUrl: string }> {
    for (const began = performance.now(); performance.now() - began < START_TIMEOUT_MS; ) {
      // Both lines are written at once.
      const { stdout } = output();
      const url = /^hop-gateway listens on (\S+)(?: and .*)?$/m.exec(stdout)?.[1];
      const metricsUrl = /^hop-gateway serves metrics at (\S+)$/m.exec(stdout)?.[1] ?? `${url}/metrics`;
      if (url !== undefined) return { url, metricsUrl };
      if (!isRunning()) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    child.kill("SIGKILL");
    throw new Error(`the service did not start: ${output().stderr}`);
  }

  const { url, metricsUrl } = await readUrls();
  return {
    url,
    metricsUrl,
    port: Number(new URL(url).port),
    pid: child.pid ?? 0,
    isRunning,
    output,
    async resourceUsage() {
      const report = once(child, "message") as Promise<[ResourceUsage]>;
      child.send("report");
      const exited = exitCode.then((code) => Promise.reject(new Error(`ended with ${code}: ${output().stderr}`)));
      exited.catch(() => {});
      const [usage] = await Promise.race([report, exited]);
      return usage;
    },
    signal: (name) => void child.kill(name),
    exitCode,
  };
}
