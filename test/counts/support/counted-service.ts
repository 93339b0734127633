import { spawn } from "node:child_process";
import { once } from "node:events";
import { killService, readServiceUrl } from "../../support/service/loaded-scripts.js";

/** What requests cost the process of a service. */
interface Cost {
  /** Bytes allocated on the heap of JavaScript; buffers lie outside. */
  readonly allocatedBytes: number;
  /** Calls of `write` and `writev` by the main thread: other threads write to wake it up. */
  readonly writes: number;
}

/** The built service in a process that counts, and for which no time passes: no state gets too old while requests are counted. */
export interface CountedService {
  readonly url: string;
  /** Counts while a function runs. */
  count(run: () => Promise<void>): Promise<Cost>;
  stop(): Promise<void>;
}

/**
 * Runs in the service before it. What lies between the end of a collection and the start of the next was allocated: the sum,
 * between two that are forced, is exact, however long it takes. No count depends on the speed of the machine.
 */
const COUNTER = `
import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { GCProfiler } from "node:v8";
const [date, time] = [Date.now(), performance.now()];
Date.now = () => date;
performance.now = () => time;
const readWrites = () => Number(/syscw: (\\d+)/.exec(readFileSync("/proc/thread-self/io", "utf8"))[1]);
// What the service does in the background ends when counting begins: no timer fires from then on.
let isFrozen = false;
const { setTimeout } = globalThis;
globalThis.setTimeout = (run, ms, ...args) => setTimeout(() => isFrozen || run(...args), ms);
const sleep = timers.setTimeout;
timers.setTimeout = (...args) => sleep(...args).then((value) => (isFrozen ? new Promise(() => {}) : value));
syncBuiltinESMExports();
let [profiler, writes] = [undefined, 0];
function begin() {
  isFrozen = true;
  profiler = new GCProfiler();
  profiler.start();
  gc();
  process.send("began", () => { writes = readWrites(); });
}
function end() {
  writes = readWrites() - writes;
  gc();
  const { statistics } = profiler.stop();
  const allocatedBytes = statistics.slice(1).reduce((sum, { beforeGC }, index) =>
    sum + beforeGC.heapStatistics.usedHeapSize - statistics[index].afterGC.heapStatistics.usedHeapSize, 0);
  process.send({ allocatedBytes, writes });
}
process.on("message", (message) => (message === "begin" ? begin() : end()));`;

const V8_OPTIONS = [
  "--expose-gc",
  // A young generation that does not grow, with the size that deployments use, in MB.
  ...["--min-semi-space-size=16", "--max-semi-space-size=16"],
  // Each of its steps is posted to the event loop by a write.
  "--no-incremental-marking",
  // Functions are optimized after a number of calls, and not when a thread of the compiler has had its turn.
  ...["--no-concurrent-recompilation", "--no-concurrent-osr"],
];

/** Starts a built service, without log output unless the environment says otherwise. */
export async function startCountedService(
  main: string,
  environment: Readonly<Record<string, string>>,
): Promise<CountedService> {
  const preload = `data:text/javascript,${encodeURIComponent(COUNTER)}`;
  const child = spawn(process.execPath, [...V8_OPTIONS, "--import", preload, main], {
    env: {
      ...{ PATH: process.env.PATH, HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0", LOG_LEVEL: "silent" },
      ...environment,
    },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  async function send(message: "begin" | "end"): Promise<unknown> {
    const reply = once(child, "message") as Promise<[unknown]>;
    child.send(message);
    return (await reply)[0];
  }
  return {
    url: await readServiceUrl(child),
    async count(run) {
      await send("begin");
      await run();
      return (await send("end")) as Cost;
    },
    stop: () => killService(child),
  };
}
