import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildGetRequest, runHttpLoad } from "./support/http-load-generator.js";
import { withLocalNetwork } from "./support/local-network.js";
import { buildQuotePath, FULL_ROUTE, fetchRoutes, type Route } from "./support/routes.js";
import { runBench } from "./support/server-process.js";
import { timedGet } from "./support/timed-get.js";

// Measures the time from process start to listening and to the first quote, and resident memory: idle, with every route
// warm, and after a million distinct quotes.

const main = fileURLToPath(new URL("../src/main.js", import.meta.url));
const STARTS = 7;
const QUOTES = 1_000_000;
const CONNECTIONS = 32;
/** The load runs in batches so that memory is sampled in between. */
const BATCH_SECONDS = 5;
const MAX_SECONDS = 75;

type Environment = Readonly<Record<string, string>>;

async function startService(environment: Environment) {
  const began = performance.now();
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, ...environment, HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0", LOG_LEVEL: "silent" },
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

async function measure(environment: Environment): Promise<void> {
  await measureStarts(environment);
  await measureMemory(environment);
}

async function measureStarts(environment: Environment): Promise<void> {
  const listening: number[] = [];
  const quoted: number[] = [];
  for (let count = 0; count < STARTS; count++) {
    const service = await startService(environment);
    const { completedAt } = await timedGet(`${service.url}${buildQuotePath(FULL_ROUTE, 0)}`);
    listening.push(service.listeningMs);
    quoted.push(completedAt - service.began);
    await service.stop();
  }
  console.log(`from process start, median of ${STARTS} (min, max)`);
  console.log(`  to listening       ${describe(listening)}`);
  console.log(`  to the first quote ${describe(quoted)}`);
}

async function measureMemory(environment: Environment): Promise<void> {
  const service = await startService(environment);
  const print = async (stage: string): Promise<void> =>
    console.log(`  ${stage.padEnd(40)} ${(await service.memoryMb()).toFixed(0).padStart(4)} MB`);
  console.log("resident memory");
  await print("listening");
  const routes = await fetchRoutes(service.url);
  for (const route of routes) await timedGet(`${service.url}${buildQuotePath(route, 0)}`);
  await print(`all ${routes.length} routes warm`);
  let sent = 0;
  let next = 1;
  const began = performance.now();
  while (sent < QUOTES && performance.now() - began < MAX_SECONDS * 1000) {
    const { completed } = await runHttpLoad({
      url: service.url,
      connections: CONNECTIONS,
      seconds: BATCH_SECONDS,
      request: (index) => buildGetRequest(buildQuotePath(routes[index % routes.length] as Route, next++)),
    });
    sent += completed;
    await print(`after ${sent} distinct quotes`);
  }
  await service.stop();
}

function describe(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  const [median, min, max] = [sorted[Math.floor(sorted.length / 2)], sorted[0], sorted.at(-1)].map((time) =>
    time?.toFixed(0),
  );
  return `${median} ms (${min}, ${max})`;
}

await runBench(() => withLocalNetwork(measure));
