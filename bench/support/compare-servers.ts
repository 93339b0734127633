import { cpus } from "node:os";
import type { Load } from "./load/load.js";
import { listPlacements, type Placement, placeProcesses } from "./placement.js";
import type { ServerProcess } from "./server-process.js";

/** A server under comparison and the load it gets, by one or several generators. */
export interface ServerUnderLoad {
  readonly name: string;
  readonly server: ServerProcess;
  readonly loads: readonly Load[];
}

/** One round. CPU times are those of the server per request, in microseconds. */
interface Measurement {
  readonly perSecond: number;
  readonly userMicros: number;
  readonly cpuMicros: number;
  readonly generatorUtilization: number;
  /** Cores that neither the server nor the generator used. */
  readonly otherCores: number;
}

interface Series {
  readonly name: string;
  readonly server: ServerProcess;
  readonly load: Load;
  readonly rounds: Measurement[];
}

const ROUNDS = 5;
const ROUND_SECONDS = 2;
/** By then V8 has optimized a server: its first 20,000 requests can take five times the CPU. */
const WARM_UP_REQUESTS = 40_000;
const MAX_WARM_UPS = 2;

/**
 * Loads the servers in turn, round after round, so that noise of the machine affects all of them. Prints a table of medians, and
 * of ratios to the first server under load by the same generator, with all of them and the generators on one core; with
 * UNPINNED=1 another one without.
 */
export async function compareServers(title: string, servers: readonly ServerUnderLoad[]): Promise<void> {
  for (const placement of listPlacements()) {
    placeProcesses(
      placement,
      servers.map(({ server }) => server),
    );
    await compareAt(placement, title, servers);
  }
}

async function compareAt(placement: Placement, title: string, servers: readonly ServerUnderLoad[]): Promise<void> {
  const all: readonly Series[] = servers.flatMap(({ name, server, loads }) =>
    loads.map((load) => ({ name, server, load, rounds: [] })),
  );
  for (const series of all) await warmUp(series);
  for (let round = 0; round < ROUNDS; round++) {
    for (const series of all) series.rounds.push(await measure(series));
  }
  const others = computeMedian(all.flatMap(({ rounds }) => rounds.map(({ otherCores }) => otherCores)));
  console.log(`\n${title}, server and generator on ${placement}: medians of ${ROUNDS} rounds of ${ROUND_SECONDS} s`);
  console.log(`(other processes used ${others.toFixed(1)} of ${cpus().length} cores)\n`);
  console.log("| server | generator (busy) | requests/s | ratio | user CPU | ratio | user + system CPU | ratio |");
  console.log("|---|---|---|---|---|---|---|---|");
  for (const series of all) {
    const baseline = all.find(({ load }) => load.generator === series.load.generator) ?? series;
    console.log(formatRow(series, baseline));
  }
}

async function warmUp({ server, load }: Series): Promise<void> {
  let completed = 0;
  for (let runs = 0; runs < MAX_WARM_UPS && completed < WARM_UP_REQUESTS; runs++) {
    completed += (await load.run(server.url, ROUND_SECONDS)).completed;
  }
}

async function measure({ server, load }: Series): Promise<Measurement> {
  const machineBefore = readMachineMicros();
  const before = await server.cpuUsage();
  const began = performance.now();
  const { completed, seconds, generatorUtilization } = await load.run(server.url, ROUND_SECONDS);
  const tookMicros = (performance.now() - began) * 1000;
  const after = await server.cpuUsage();
  const [user, system] = [after.user - before.user, after.system - before.system];
  const measuredMicros = user + system + generatorUtilization * seconds * 1e6;
  return {
    perSecond: completed / seconds,
    userMicros: user / completed,
    cpuMicros: (user + system) / completed,
    generatorUtilization,
    otherCores: Math.max(0, (readMachineMicros() - machineBefore - measuredMicros) / tookMicros),
  };
}

/** Returns the time that all cores have worked so far. */
function readMachineMicros(): number {
  return cpus().reduce((sum, { times }) => sum + (times.user + times.nice + times.sys + times.irq) * 1000, 0);
}

function formatRow(series: Series, baseline: Series): string {
  const median = (key: keyof Measurement): number => computeMedian(series.rounds.map((round) => round[key]));
  const cells = (key: keyof Measurement, text: string): readonly string[] => [
    text,
    series === baseline
      ? ""
      : computeMedian(series.rounds.map((round, i) => round[key] / (baseline.rounds[i]?.[key] ?? Number.NaN))).toFixed(
          2,
        ),
  ];
  return `| ${[
    series.name,
    `${series.load.generator} (${Math.round(median("generatorUtilization") * 100)} %)`,
    ...cells("perSecond", Math.round(median("perSecond")).toLocaleString("en")),
    ...cells("userMicros", `${median("userMicros").toFixed(1)} us`),
    ...cells("cpuMicros", `${median("cpuMicros").toFixed(1)} us`),
  ].join(" | ")} |`;
}

/** Returns the median, the upper one of two. */
export function computeMedian(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
