import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// A bench program forks itself for each server that it measures, so that a server shares its process with nothing else.

/** What a process holds once its garbage is collected. */
export interface ResourceUsage {
  /** Bytes of JavaScript's heap. */
  readonly heapBytes: number;
  readonly residentBytes: number;
  readonly sockets: number;
  readonly timers: number;
  /** File descriptors, where the system tells. */
  readonly descriptors: number;
}

/** A server in a process of its own. */
export interface ServerProcess {
  readonly url: string;
  /** CPU time that its process has used so far, in microseconds. */
  cpuMicros(): Promise<number>;
  /** Collects the garbage of its process first. */
  resourceUsage(): Promise<ResourceUsage>;
  /** Ends the process and waits until it is gone. */
  stop(): Promise<void>;
}

/** Starts a server and gives its address. It gets what {@link startServer} is given, as JSON carries it. */
export type ServerRole = (input: never) => Promise<string>;

type ServerCommand = { readonly input: unknown } | "cpu" | "held";
type ServerReply = { readonly url: string } | { readonly cpuMicros: number } | { readonly held: ResourceUsage };

/** Runs this process in its role: as one of the servers, or as what starts and measures them. */
export async function runBench(measure: () => Promise<void>, servers: Readonly<Record<string, ServerRole>> = {}) {
  const [, , role] = process.argv;
  const serve = role === undefined ? measure : servers[role];
  if (serve === undefined) throw new Error(`no server is called ${role}`);
  if (serve === measure) await measure();
  else await serveCommands(serve as ServerRole);
}

/** @param stdout a file descriptor for the server's standard output; default: ours */
export async function startServer(role: string, input: unknown, stdout?: number): Promise<ServerProcess> {
  const child = fork(process.argv[1] ?? "", [role], { stdio: ["ignore", stdout ?? "inherit", "inherit", "ipc"] });
  const exited = once(child, "exit");
  async function ask(question: ServerCommand): Promise<ServerReply> {
    const answer = once(child, "message") as Promise<[ServerReply]>;
    child.send(question);
    const ended = exited.then(([code]) => Promise.reject(new Error(`server ${role} ended with ${code}`)));
    const [given] = await Promise.race([answer, ended]);
    return given;
  }
  const started = await ask({ input });
  if (!("url" in started)) throw new Error(`server ${role} gives no address`);
  return {
    url: started.url,
    async cpuMicros() {
      const answer = await ask("cpu");
      return "cpuMicros" in answer ? answer.cpuMicros : Number.NaN;
    },
    async resourceUsage() {
      const answer = await ask("held");
      if (!("held" in answer)) throw new Error(`server ${role} does not tell what it holds`);
      return answer.held;
    },
    async stop() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function serveCommands(serve: ServerRole): Promise<void> {
  const tell = (answer: ServerReply): void => void process.send?.(answer);
  process.on("disconnect", () => process.exit());
  process.on("message", (question: ServerCommand) => {
    if (question === "cpu") {
      const { user, system } = process.cpuUsage();
      tell({ cpuMicros: user + system });
    } else if (question === "held") {
      tell({ held: measureResourceUsage() });
    } else void serve(question.input as never).then((url) => tell({ url }));
  });
}

function measureResourceUsage(): ResourceUsage {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  collectGarbage();
  const { heapUsed, rss } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  const count = (kind: RegExp): number => resources.filter((each) => kind.test(each)).length;
  return {
    heapBytes: heapUsed,
    residentBytes: rss,
    sockets: count(/^TCPSocketWrap$/),
    timers: count(/^Timeout$/),
    descriptors: process.platform === "linux" ? readdirSync("/proc/self/fd").length : Number.NaN,
  };
}
