import type { LoadResult } from "./http-load-generator.js";
import type { ServerProcess } from "./server-process.js";

/** A server under comparison and the load it gets. */
export interface ServerUnderLoad {
  readonly name: string;
  readonly server: ServerProcess;
  load(server: ServerProcess, seconds: number): Promise<LoadResult>;
}

export interface Measurement {
  readonly perSecond: number;
  /** CPU time of the server per request, in microseconds. */
  readonly cpuMicros: number;
  readonly generatorUtilization: number;
}

export interface RoundOptions {
  readonly rounds: number;
  readonly seconds: number;
}

const WARM_UP_SECONDS = 1.5;

/**
 * Loads the servers in turn, round after round, so that noise of the machine affects all of them. Prints medians and the
 * ratios to the first server.
 */
export async function compareServers(
  title: string,
  servers: readonly ServerUnderLoad[],
  { rounds, seconds }: RoundOptions = { rounds: 5, seconds: 1.5 },
): Promise<void> {
  const results = new Map<ServerUnderLoad, Measurement[]>(servers.map((candidate) => [candidate, []]));
  for (const { server, load } of servers) await load(server, WARM_UP_SECONDS);
  for (let round = 0; round < rounds; round++) {
    for (const [candidate, measured] of results) measured.push(await measure(candidate, seconds));
  }
  console.log(`${title}: median of ${rounds} rounds of ${seconds} s`);
  const width = Math.max(...servers.map(({ name }) => name.length));
  const medians = [...results].map(([{ name }, measured]) => ({ name, ...computeMedian(measured) }));
  const baseline = medians[0];
  for (const { name, perSecond, cpuMicros, generatorUtilization } of medians) {
    const rate = `${Math.round(perSecond).toString().padStart(7)} per second`;
    const cpu = `${cpuMicros.toFixed(1).padStart(7)} us CPU per request`;
    const isBaseline = baseline === undefined || name === baseline.name;
    const ratio = isBaseline
      ? "(baseline)"
      : `ratio ${(perSecond / baseline.perSecond).toFixed(2)}, CPU ratio ${(baseline.cpuMicros / cpuMicros).toFixed(2)}`;
    const busy = `  generator ${Math.round(generatorUtilization * 100)} % busy`;
    console.log(`  ${name.padEnd(width)} ${rate} ${cpu}  ${ratio.padEnd(25)}${busy}`);
  }
}

async function measure({ server, load }: ServerUnderLoad, seconds: number): Promise<Measurement> {
  const before = await server.cpuMicros();
  const result = await load(server, seconds);
  const cpu = (await server.cpuMicros()) - before;
  return {
    perSecond: result.completed / result.seconds,
    cpuMicros: cpu / result.completed,
    generatorUtilization: result.generatorUtilization,
  };
}

function computeMedian(measurements: readonly Measurement[]): Measurement {
  const middle = [...measurements].sort((a, b) => a.perSecond - b.perSecond)[Math.floor(measurements.length / 2)];
  if (middle === undefined) throw new Error("no measurements");
  return middle;
}
