import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { getRequest, loadHttp } from "./support/http-load-generator.js";
import { overNetwork } from "./support/local-network.js";
import { fullRoute, quotePath, type Route, routesOf } from "./support/routes.js";
import { runBench } from "./support/server-process.js";
import { ask } from "./support/timed-get.js";

// How long the service takes from the start of its process to listening and to its first quote, and how much memory it
// has: at rest, with every route warm, and after a million quotes of which no two are the same.

const main = fileURLToPath(new URL("../src/main.js", import.meta.url));
const starts = 7;
const quotes = 1_000_000;
const connections = 32;
/** The load comes in parts, so that memory can be watched in between. */
const partSeconds = 5;
const longestSeconds = 75;

type Environment = Readonly<Record<string, string>>;

async function startService(environment: Environment) {
  const began = performance.now();
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, ...environment, HOST: "127.0.0.1", PORT: "0", LOG_LEVEL: "silent" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const exited = once(child, "exit");
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), "line"),
    exited.then(() => Promise.reject(new Error("the service ended"))),
  ])) as [string];
  const url = /http:\S+/.exec(line)?.[0] ?? "";
  return {
    url,
    began,
    listeningMs: performance.now() - began,
    memoryMb: () => residentMb(child.pid ?? 0),
    async stop() {
      process.off("exit", kill);
      kill();
      await exited;
    },
  };
}

async function residentMb(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", `${pid}`]);
  return Number(stdout) / 1024;
}

async function measure(environment: Environment): Promise<void> {
  await measureStarts(environment);
  await measureMemory(environment);
}

async function measureStarts(environment: Environment): Promise<void> {
  const listening: number[] = [];
  const quoted: number[] = [];
  for (let count = 0; count < starts; count++) {
    const service = await startService(environment);
    const { at } = await ask(`${service.url}${quotePath(fullRoute, 0)}`);
    listening.push(service.listeningMs);
    quoted.push(at - service.began);
    await service.stop();
  }
  console.log(`from the start of the process, median of ${starts} (least, most)`);
  console.log(`  to listening       ${describe(listening)}`);
  console.log(`  to the first quote ${describe(quoted)}`);
}

async function measureMemory(environment: Environment): Promise<void> {
  const service = await startService(environment);
  const print = async (what: string): Promise<void> =>
    console.log(`  ${what.padEnd(40)} ${(await service.memoryMb()).toFixed(0).padStart(4)} MB`);
  console.log("resident memory");
  await print("listening");
  const routes = await routesOf(service.url);
  for (const route of routes) await ask(`${service.url}${quotePath(route, 0)}`);
  await print(`all ${routes.length} routes warm`);
  let asked = 0;
  let next = 1;
  const began = performance.now();
  while (asked < quotes && performance.now() - began < longestSeconds * 1000) {
    const { answered } = await loadHttp({
      url: service.url,
      connections,
      seconds: partSeconds,
      request: (index) => getRequest(quotePath(routes[index % routes.length] as Route, next++)),
    });
    asked += answered;
    await print(`after ${asked} different quotes`);
  }
  await service.stop();
}

function describe(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  const [median, least, most] = [sorted[Math.floor(sorted.length / 2)], sorted[0], sorted.at(-1)].map((time) =>
    time?.toFixed(0),
  );
  return `${median} ms (${least}, ${most})`;
}

await runBench(() => overNetwork(measure));
