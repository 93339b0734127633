import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import type { Writable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// A bench program forks itself for each server it measures, so that every server has a process of its own.

/** Resources of a process after garbage collection. */
export interface ResourceUsage {
  /** Used bytes of the JavaScript heap. */
  readonly heapBytes: number;
  readonly residentBytes: number;
  /** Most that was resident at any time. */
  readonly peakResidentBytes: number;
  readonly sockets: number;
  readonly timers: number;
  /** Open file descriptors; NaN where /proc is missing. */
  readonly descriptors: number;
}

/** A server in a process of its own. */
export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  /** Returns the CPU time of its process so far, in microseconds. */
  cpuUsage(): Promise<NodeJS.CpuUsage>;
  /** Collects garbage in its process and returns what is still in use. */
  resourceUsage(): Promise<ResourceUsage>;
  /** Kills the process and waits for its exit. */
  stop(): Promise<void>;
}

/** Starts a server and returns its URL. The input is that of {@link startServer}, passed as JSON. */
export type ServerRole = (input: never) => Promise<string>;

type ServerCommand = { readonly input: unknown } | "cpu" | "resources";
type ServerReply = { readonly url: string } | { readonly cpu: NodeJS.CpuUsage } | { readonly resources: ResourceUsage };

/** Runs this process in the role named by its first argument: as one of the servers or, without one, as the bench itself. */
export async function runBench(measure: () => Promise<void>, servers: Readonly<Record<string, ServerRole>> = {}) {
  const [, , role] = process.argv;
  const serve = role === undefined ? measure : servers[role];
  if (serve === undefined) throw new Error(`no server has the role ${role}`);
  if (serve === measure) await measure();
  else await serveCommands(serve as ServerRole);
}

/**
 * Starts a server in a child process.
 * @param stdout file descriptor, or stream that has one, for its standard output. Default: inherited
 * @param core number of the only core that it may use, where `taskset` is installed. Default: any
 */
export async function startServer(
  role: string,
  input: unknown,
  stdout?: number | Writable,
  core?: number,
): Promise<ServerProcess> {
  const pinned = core === undefined ? {} : { execPath: "taskset", execArgv: ["-c", `${core}`, process.execPath] };
  const stdio = ["ignore", stdout ?? "inherit", "inherit", "ipc"] as const;
  const child = fork(process.argv[1] ?? "", [role], { ...pinned, stdio: [...stdio] });
  const exited = once(child, "exit");
  async function sendCommand(command: ServerCommand): Promise<ServerReply> {
    const reply = once(child, "message") as Promise<[ServerReply]>;
    child.send(command);
    const failed = exited.then(([code]) => Promise.reject(new Error(`server ${role} exited with ${code}`)));
    const [message] = await Promise.race([reply, failed]);
    return message;
  }
  const started = await sendCommand({ input });
  if (!("url" in started)) throw new Error(`server ${role} sent no URL`);
  return {
    url: started.url,
    pid: child.pid ?? 0,
    async cpuUsage() {
      const reply = await sendCommand("cpu");
      if (!("cpu" in reply)) throw new Error(`server ${role} sent no CPU usage`);
      return reply.cpu;
    },
    async resourceUsage() {
      const reply = await sendCommand("resources");
      if (!("resources" in reply)) throw new Error(`server ${role} sent no resource usage`);
      return reply.resources;
    },
    async stop() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function serveCommands(serve: ServerRole): Promise<void> {
  const reply = (message: ServerReply): void => void process.send?.(message);
  process.on("disconnect", () => process.exit());
  process.on("message", (command: ServerCommand) => {
    if (command === "cpu") reply({ cpu: process.cpuUsage() });
    else if (command === "resources") reply({ resources: measureResourceUsage() });
    else void serve(command.input as never).then((url) => reply({ url }));
  });
}

function measureResourceUsage(): ResourceUsage {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  collectGarbage();
  const { heapUsed, rss } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  const count = (kind: RegExp): number => resources.filter((resource) => kind.test(resource)).length;
  return {
    heapBytes: heapUsed,
    residentBytes: rss,
    peakResidentBytes: process.resourceUsage().maxRSS * 1024,
    sockets: count(/^TCPSocketWrap$/),
    timers: count(/^Timeout$/),
    descriptors: process.platform === "linux" ? readdirSync("/proc/self/fd").length : Number.NaN,
  };
}
