import type { LoadResult } from "./http-load-generator.js";
import type { ServerProcess } from "./server-process.js";

/** One of the servers that are compared, with the load that it gets. */
export interface ServerUnderLoad {
  readonly name: string;
  readonly server: ServerProcess;
  load(server: ServerProcess, seconds: number): Promise<LoadResult>;
}

export interface Measurement {
  readonly perSecond: number;
  /** CPU time of the server for each request, in microseconds. */
  readonly cpuMicros: number;
  readonly generatorUtilization: number;
}

export interface RoundOptions {
  readonly rounds: number;
  readonly seconds: number;
}

const WARM_UP_SECONDS = 1.5;

/**
 * Loads the servers in turn, round after round, since machines are noisy: what happens to one happens to all. Prints
 * the medians, with ratios to the first.
 */
export async function compareServers(
  title: string,
  contestants: readonly ServerUnderLoad[],
  { rounds, seconds }: RoundOptions = { rounds: 5, seconds: 1.5 },
): Promise<void> {
  const results = new Map<ServerUnderLoad, Measurement[]>(contestants.map((each) => [each, []]));
  for (const { server, load } of contestants) await load(server, WARM_UP_SECONDS);
  for (let round = 0; round < rounds; round++) {
    for (const [contestant, measured] of results) measured.push(await measure(contestant, seconds));
  }
  console.log(`${title}: median of ${rounds} rounds of ${seconds} s`);
  const width = Math.max(...contestants.map(({ name }) => name.length));
  const medians = [...results].map(([{ name }, measured]) => ({ name, ...computeMedian(measured) }));
  const baseline = medians[0];
  for (const { name, perSecond, cpuMicros, generatorUtilization } of medians) {
    const rate = `${Math.round(perSecond).toString().padStart(7)} a second`;
    const cpu = `${cpuMicros.toFixed(1).padStart(7)} us of CPU each`;
    const isBaseline = baseline === undefined || name === baseline.name;
    const ratio = isBaseline
      ? "(what the ratios are to)"
      : `ratio ${(perSecond / baseline.perSecond).toFixed(2)}, in CPU ${(baseline.cpuMicros / cpuMicros).toFixed(2)}`;
    const busy = `  generator ${Math.round(generatorUtilization * 100)} % busy`;
    console.log(`  ${name.padEnd(width)} ${rate} ${cpu}  ${ratio.padEnd(25)}${busy}`);
  }
}

async function measure({ server, load }: ServerUnderLoad, seconds: number): Promise<Measurement> {
  const before = await server.cpuMicros();
  const done = await load(server, seconds);
  const cpu = (await server.cpuMicros()) - before;
  return {
    perSecond: done.completed / done.seconds,
    cpuMicros: cpu / done.completed,
    generatorUtilization: done.generatorUtilization,
  };
}

function computeMedian(all: readonly Measurement[]): Measurement {
  const middle = [...all].sort((a, b) => a.perSecond - b.perSecond)[Math.floor(all.length / 2)];
  if (middle === undefined) throw new Error("nothing was measured");
  return middle;
}
