import { setTimeout as sleep } from "node:timers/promises";
import { runHttpLoad } from "./support/load/http-load-generator.js";
import { buildGetRequest } from "./support/load/http-requests.js";
import { withLocalNetwork } from "./support/local-network.js";
import { buildQuotePath, FULL_ROUTE, fetchRoutes, type Route } from "./support/routes.js";
import { runBench } from "./support/server-process.js";
import { startService } from "./support/service-process.js";
import { timedGet } from "./support/timed-get.js";

// Measures the time from process start to listening and to the first quote, and resident memory: listening, at rest, with every
// route warm, and after a million distinct quotes.

const STARTS = 7;
const QUOTES = 1_000_000;
const CONNECTIONS = 32;
/** The load runs in batches so that memory is sampled in between. */
const BATCH_SECONDS = 5;
const MAX_SECONDS = 75;
/** V8 gives back memory of the start when the service has been idle for a while. */
const REST_MS = 30_000;

type Environment = Readonly<Record<string, string>>;

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
  await sleep(REST_MS);
  await print(`at rest, ${REST_MS / 1000} s later`);
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
