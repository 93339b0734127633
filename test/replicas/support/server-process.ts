import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { chown } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { promisify } from "node:util";
import { listChildProcesses } from "../../support/service/child-processes.js";

/** A server in a process of its own that can be killed and started again. */
export interface ServerProcess {
  /** Starts the process and resolves when it answers. */
  start(): Promise<void>;
  /** Sends SIGKILL to the process and its children. */
  kill(): Promise<void>;
  /** Sends a signal and resolves when the process has ended. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /** Sends a signal to the process and its children: SIGSTOP, SIGCONT. */
  signalAll(signal: NodeJS.Signals): Promise<void>;
  isRunning(): boolean;
}

export interface ServerProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly user: { readonly uid?: number; readonly gid?: number };
  /** Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** File of its output. */
  readonly logFile: string;
  /** Rejects until the server answers. */
  readonly probe: () => Promise<unknown>;
}

const PROBE_INTERVAL_MS = 50;
/** Only a hang takes longer. */
const START_TIMEOUT_MS = 60_000;

export function createServerProcess(options: ServerProcessOptions): ServerProcess {
  const { command, args, user, env = process.env, logFile, probe } = options;
  let child: ChildProcess | undefined;
  const isRunning = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null;

  async function signalAll(signal: NodeJS.Signals): Promise<void> {
    const pid = child?.pid;
    if (pid === undefined || !isRunning()) return;
    for (const id of [pid, ...(await listChildProcesses(pid))]) {
      try {
        process.kill(id, signal);
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  /** Starts the process; false if it exits before it answers, as while children of a killed one are still there. */
  async function tryStart(): Promise<boolean> {
    const log = openSync(logFile, "a");
    child = spawn(command, args, { ...user, env, stdio: ["ignore", log, log] });
    closeSync(log);
    child.on("error", () => {});
    for (const began = performance.now(); performance.now() - began < START_TIMEOUT_MS; ) {
      if (!isRunning()) return false;
      const answered = await probe().then(
        () => true,
        () => false,
      );
      if (answered) return true;
      await new Promise((resolve) => setTimeout(resolve, PROBE_INTERVAL_MS));
    }
    return false;
  }

  return {
    isRunning,
    signalAll,
    async start() {
      for (let attempt = 0; attempt < 20; attempt++) {
        if (await tryStart()) return;
        await new Promise((resolve) => setTimeout(resolve, PROBE_INTERVAL_MS));
      }
      throw new Error(`${command} did not start: ${readFileSync(logFile, "utf8").slice(-2_000)}`);
    },
    async kill() {
      const exited = child && isRunning() ? once(child, "exit") : undefined;
      await signalAll("SIGKILL");
      await exited;
    },
    async stop(signal) {
      if (child === undefined || !isRunning()) return;
      const exited = once(child, "exit");
      child.kill(signal);
      await exited;
    },
  };
}

/** Runs a program to its end as another user. */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: { readonly uid?: number; readonly gid?: number; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { ...options, maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

/** Gives a folder to the user that a server runs as. */
export async function giveFolder(path: string, { uid, gid }: ServerProcessOptions["user"]): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid);
}

export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
