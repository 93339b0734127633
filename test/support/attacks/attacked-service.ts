import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listChildProcesses } from "../service/child-processes.js";
import { NODE_OPTIONS } from "../service/node-options.js";

/** The service in a process of its own, with what it takes from the machine. */
export interface AttackedService {
  readonly url: string;
  readonly port: number;
  /** Returns the port of the metrics; the public port if they are served there. */
  metricsPort(): number;
  isRunning(): boolean;
  /** Returns standard output and standard error so far. */
  output(): string;
  /** Returns the resident memory now, of child processes too, in MB (10^6 bytes). */
  residentMb(): Promise<number>;
  /** Returns the largest resident memory of the process so far, in MB; where the system does not tell it, that of now. */
  peakResidentMb(): Promise<number>;
  /** Returns the CPU time of the process so far, in seconds; NaN on a system without /proc. */
  cpuSeconds(): number;
  stop(): Promise<void>;
}

/** Only a hang takes longer. */
const START_TIMEOUT_MS = 120_000;
/** The address of the metrics follows the public one, unless both are the same. */
const METRICS_LINE_TIMEOUT_MS = 500;
const METRICS_LINE = /^hop-gateway serves metrics at http:\/\/\S+?:(\d+)/m;

const POLL_MS = 20;
const sleep = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, POLL_MS));

/**
 * Starts the service. `ATTACKED_MAIN` names the `main.js` of another build, to measure or test that one.
 * @param main path of the command of this build
 */
export async function startAttackedService(
  main: string,
  environment: Readonly<Record<string, string>>,
): Promise<AttackedService> {
  const folder = mkdtempSync(join(tmpdir(), "hop-gateway-attacked-"));
  const outputFile = join(folder, "output");
  const descriptor = openSync(outputFile, "a");
  const child = spawn(process.execPath, [...NODE_OPTIONS, process.env.ATTACKED_MAIN || main], {
    env: { PATH: process.env.PATH, HOST: "127.0.0.1", PORT: "0", ...environment },
    stdio: ["ignore", descriptor, descriptor],
  });
  closeSync(descriptor);
  const exited = once(child, "exit");
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const output = (): string => readFileSync(outputFile, "utf8");
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const pid = child.pid ?? 0;

  async function stop(): Promise<void> {
    process.off("exit", kill);
    kill();
    await exited;
    rmSync(folder, { recursive: true, force: true });
  }

  async function readUrl(): Promise<string> {
    for (const began = performance.now(); performance.now() - began < START_TIMEOUT_MS && isRunning(); ) {
      const url = /^hop-gateway listens on (\S+)$/m.exec(output())?.[1];
      if (url !== undefined) return url;
      await sleep();
    }
    const text = output();
    await stop();
    throw new Error(`the service did not start: ${text}`);
  }

  const url = await readUrl();
  for (let waited = 0; waited < METRICS_LINE_TIMEOUT_MS && !METRICS_LINE.test(output()); waited += POLL_MS)
    await sleep();
  const port = Number(new URL(url).port);
  return {
    url,
    port,
    metricsPort: () => Number(METRICS_LINE.exec(output())?.[1] ?? port),
    isRunning,
    output,
    async residentMb() {
      const sizes = [pid, ...(await listChildProcesses(pid))].map((each) => readMemoryMb(each, "VmRSS"));
      return sizes.reduce((sum, size) => sum + size, 0);
    },
    peakResidentMb: async () => readMemoryMb(pid, "VmHWM"),
    cpuSeconds: () => readCpuSeconds(pid),
    stop,
  };
}

/** Reads a line of /proc/PID/status, in MB; 0 for a process that is gone, NaN on a system without /proc. */
function readMemoryMb(pid: number, field: "VmRSS" | "VmHWM"): number {
  if (process.platform !== "linux") return Number.NaN;
  try {
    const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(
      readFileSync(`/proc/${pid}/status`, "utf8"),
    )?.[1];
    return (Number(kibibytes) * 1_024) / 1e6;
  } catch {
    return 0;
  }
}

/** Ticks of user and system time per second in /proc/PID/stat: the same on every Linux. */
const TICKS_PER_SECOND = 100;

function readCpuSeconds(pid: number): number {
  if (process.platform !== "linux") return Number.NaN;
  // After the name of the program, which may hold spaces: fields 3 to 52 (proc_pid_stat(5)), of which 14 and 15 are times.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
