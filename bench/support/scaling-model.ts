// What a load takes, computed from measured inputs. docs/scaling.md contains both tables; bench/scaling.ts computes the bill of other loads.

/** A measured number and the program that measures it. */
interface Input {
  readonly value: number;
  readonly unit: string;
  readonly meaning: string;
  readonly source: string;
}

const define = (value: number, unit: string, meaning: string, source: string): Input => ({
  value,
  unit,
  meaning,
  source,
});

/** CPU includes system time, and the access log for quotes. */
export const INPUTS = {
  quoteCpu: define(24, "us", "CPU of a quote over GET with the default log", "`bench:get`"),
  cachedStatusCpu: define(32, "us", "CPU of a status from the cache", "`bench:status`"),
  indexedStatusCpu: define(
    220,
    "us",
    "CPU of a status from PostgreSQL: 200 for the statement, 20 for the request",
    "`bench:index-postgres`, `bench:get`",
  ),
  statementTime: define(
    0.23,
    "ms",
    "time of a look-up by ID in PostgreSQL, at most that is CPU of the server",
    "`bench:index-postgres`",
  ),
  statementBlocks: define(17, "blocks", "blocks of 8 KB that a look-up by ID touches", "`explain (analyze, buffers)`"),
  watcherCpu: define(2.6, "us per s", "CPU of an idle watch", "`bench:watch`"),
  watcherMemory: define(20, "KB", "memory of a watch over HTTP/1.1, 15 over HTTP/2", "`bench:watch`"),
  processMemory: define(116, "MB", "memory of a process after a million quotes on all routes", "`bench:start`"),
  transferCpu: define(
    722,
    "us",
    "CPU of a new transfer that is written twice, in polls of 15",
    "`bench:index-postgres`",
  ),
  pollCpu: define(550, "us", "CPU of a poll of the index that finds nothing", "`bench:index-postgres`"),
  pollRate: define(4, "per s", "polls of the nine chains by the index, and their requests", "`bench:status-cost`"),
  transferBytes: define(983, "bytes", "size of a transfer with its indexes", "`bench:index-postgres`"),
  quoteRequests: define(
    5.5,
    "per s",
    "requests to the chains for quotes on all routes, whatever the number of quotes and replicas that share",
    "`bench:steady`",
  ),
  lookupRequests: define(
    13,
    "requests",
    "requests to the chains of a status that is not indexed",
    "`bench:status-cost`",
  ),
  redisCommands: define(67, "per s", "commands in Redis of a process, those in scripts included", "`bench:replicas`"),
} as const satisfies Record<string, Input>;

/** A load. What a program cannot know is assumed. */
export interface Load {
  readonly quotesPerSecond: number;
  readonly watchers: number;
  readonly statusesPerQuote: number;
  /** Share of the statuses that are read from PostgreSQL, and of those that only the chains know. */
  readonly uncachedShare: number;
  readonly unindexedShare: number;
  readonly transfersPerDay: number;
  readonly years: number;
  /** Share of a core that is used at the peak. */
  readonly utilization: number;
}

export const ASSUMED = {
  statusesPerQuote: 0.1,
  uncachedShare: 0.1,
  unindexedShare: 0.001,
  transfersPerDay: 30_000,
  years: 3,
  utilization: 0.6,
} as const satisfies Partial<Load>;

/** WATCH_MAX_STREAMS. */
const WATCHES_PER_PROCESS = 20_000;
/** So that one of them may be away. */
const MIN_PROCESSES = 3;
/** Connections of a process to PostgreSQL: INDEX_POOL_SIZE, 4 that write, 1 that listens. */
const CONNECTIONS = 15;
const SECONDS_PER_MONTH = 30 * 86_400;

export function computeBill(load: Load) {
  const { quotesPerSecond, watchers, transfersPerDay, utilization } = load;
  const cost = (name: keyof typeof INPUTS): number => INPUTS[name].value;
  const statuses = quotesPerSecond * load.statusesPerQuote;
  const statements = statuses * load.uncachedShare;
  const seconds = (us: number): number => us / 1e6;
  const cores =
    quotesPerSecond * seconds(cost("quoteCpu")) +
    (statuses - statements) * seconds(cost("cachedStatusCpu")) +
    statements * seconds(cost("indexedStatusCpu")) +
    watchers * seconds(cost("watcherCpu")) +
    (transfersPerDay / 86_400) * seconds(cost("transferCpu")) +
    cost("pollRate") * seconds(cost("pollCpu"));
  const processes = Math.max(
    MIN_PROCESSES,
    Math.ceil(cores / utilization),
    // With one process away.
    Math.ceil(watchers / WATCHES_PER_PROCESS) + 1,
  );
  const chainRequests =
    cost("quoteRequests") + cost("pollRate") + statuses * load.unindexedShare * cost("lookupRequests");
  return {
    cores,
    processes,
    memoryGb: (processes * cost("processMemory")) / 1e3 + (watchers * cost("watcherMemory")) / 1e6,
    redisCommands: processes * cost("redisCommands"),
    statements,
    postgresCores: (statements * cost("statementTime")) / 1e3,
    blocks: statements * cost("statementBlocks"),
    connections: processes * CONNECTIONS,
    databaseGb: (transfersPerDay * 365 * load.years * cost("transferBytes")) / 1e9,
    requestsPerMonth: chainRequests * SECONDS_PER_MONTH,
  };
}

const LOADS: readonly (readonly [name: string, load: Pick<Load, "quotesPerSecond" | "watchers">])[] = [
  ["1,000 quotes/s", { quotesPerSecond: 1_000, watchers: 0 }],
  ["10,000 quotes/s", { quotesPerSecond: 10_000, watchers: 0 }],
  ["100,000 quotes/s", { quotesPerSecond: 100_000, watchers: 0 }],
  ["1,000 quotes/s, 1,000,000 watchers", { quotesPerSecond: 1_000, watchers: 1_000_000 }],
];

/** Rounds to two digits. */
const round = (value: number): string => Number(value.toPrecision(2)).toLocaleString("en-US");
type Bill = ReturnType<typeof computeBill>;
const BILL_ROWS: readonly (readonly [name: string, print: (bill: Bill) => string])[] = [
  ["CPU of the processes, cores", ({ cores }) => round(cores)],
  ["processes", ({ processes }) => processes.toLocaleString("en-US")],
  ["memory of the processes", ({ memoryGb }) => `${round(memoryGb)} GB`],
  ["Redis: commands per second", ({ redisCommands }) => round(redisCommands)],
  ["PostgreSQL: look-ups per second", ({ statements }) => round(statements)],
  ["cores of PostgreSQL, at most", ({ postgresCores }) => round(postgresCores)],
  ["blocks per second: reads of the disk if nothing is in memory", ({ blocks }) => round(blocks)],
  ["connections without a pooler, at most", ({ connections }) => connections.toLocaleString("en-US")],
  ["size of the database", ({ databaseGb }) => `${round(databaseGb)} GB`],
  ["requests to the chains per month", ({ requestsPerMonth }) => `${round(requestsPerMonth / 1e6)} million`],
];

/** Prints the bills of several loads as Markdown. */
export function printBills(loads: readonly (readonly [string, Load])[]): string {
  const bills = loads.map(([, load]) => computeBill(load));
  return [
    `| | ${loads.map(([name]) => name).join(" | ")} |`,
    `|---|${loads.map(() => "---|").join("")}`,
    ...BILL_ROWS.map(([name, print]) => `| ${name} | ${bills.map(print).join(" | ")} |`),
  ].join("\n");
}

/** Prints what docs/scaling.md says: the inputs and the bills. */
export function printScaling(): { readonly inputs: string; readonly bills: string } {
  const inputs = Object.values(INPUTS).map(
    ({ value, unit, meaning, source }) => `| ${meaning} | ${value} ${unit} | ${source} |`,
  );
  return {
    inputs: ["| what | measured | by |", "|---|---|---|", ...inputs].join("\n"),
    bills: printBills(LOADS.map(([name, load]) => [name, { ...ASSUMED, ...load }])),
  };
}
