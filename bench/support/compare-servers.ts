import type { Load } from "./http-load-generator.js";
import type { ServerProcess } from "./server-process.js";

/** One of the servers that are compared, with the load that it gets. */
export interface Contestant {
  readonly name: string;
  readonly server: ServerProcess;
  load(server: ServerProcess, seconds: number): Promise<Load>;
}

export interface Measured {
  readonly perSecond: number;
  /** CPU time of the server for each request, in microseconds. */
  readonly cpuMicros: number;
  readonly generatorBusy: number;
}

export interface Rounds {
  readonly rounds: number;
  readonly seconds: number;
}

const warmUpSeconds = 1.5;

/**
 * Loads the servers in turn, round after round, since machines are noisy: what happens to one happens to all. Prints
 * the medians, with ratios to the first.
 */
export async function compare(
  title: string,
  contestants: readonly Contestant[],
  { rounds, seconds }: Rounds = { rounds: 5, seconds: 1.5 },
): Promise<void> {
  const results = new Map<Contestant, Measured[]>(contestants.map((each) => [each, []]));
  for (const { server, load } of contestants) await load(server, warmUpSeconds);
  for (let round = 0; round < rounds; round++) {
    for (const [contestant, measured] of results) measured.push(await measure(contestant, seconds));
  }
  console.log(`${title}: median of ${rounds} rounds of ${seconds} s`);
  const width = Math.max(...contestants.map(({ name }) => name.length));
  const medians = [...results].map(([{ name }, measured]) => ({ name, ...medianOf(measured) }));
  const baseline = medians[0];
  for (const { name, perSecond, cpuMicros, generatorBusy } of medians) {
    const rate = `${Math.round(perSecond).toString().padStart(7)} a second`;
    const cpu = `${cpuMicros.toFixed(1).padStart(7)} us of CPU each`;
    const isBaseline = baseline === undefined || name === baseline.name;
    const ratio = isBaseline
      ? "(what the ratios are to)"
      : `ratio ${(perSecond / baseline.perSecond).toFixed(2)}, in CPU ${(baseline.cpuMicros / cpuMicros).toFixed(2)}`;
    const busy = `  generator ${Math.round(generatorBusy * 100)} % busy`;
    console.log(`  ${name.padEnd(width)} ${rate} ${cpu}  ${ratio.padEnd(25)}${busy}`);
  }
}

async function measure({ server, load }: Contestant, seconds: number): Promise<Measured> {
  const before = await server.cpuMicros();
  const done = await load(server, seconds);
  const cpu = (await server.cpuMicros()) - before;
  return {
    perSecond: done.answered / done.seconds,
    cpuMicros: cpu / done.answered,
    generatorBusy: done.generatorBusy,
  };
}

function medianOf(all: readonly Measured[]): Measured {
  const middle = [...all].sort((a, b) => a.perSecond - b.perSecond)[Math.floor(all.length / 2)];
  if (middle === undefined) throw new Error("nothing was measured");
  return middle;
}
