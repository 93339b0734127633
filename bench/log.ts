import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { devNull, tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { createHttpLoads } from "./support/load/create-loads.js";
import type { Load } from "./support/load/load.js";
import { withLocalNetwork } from "./support/local-network.js";
import { listPlacements, placeProcesses } from "./support/placement.js";
import { recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { buildQuotePath, describeQuotes, FULL_ROUTE } from "./support/routes.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// Sends quotes with distinct amounts at full load, and counts the lines of the access log that arrive at each kind of
// output: a file, a device, a pipe and a socket, with readers that keep up.

const ROUND_SECONDS = 2;
/** Longer than the flush interval of the log. */
const FLUSH_WAIT_MS = 1_000;
const requestCount = Number(process.env.LOG_REQUESTS ?? 150_000);

/** An output of a server, and the lines that arrive there. */
interface CountedOutput {
  readonly stdout: number | Writable;
  /** Closes this process's end of the output, once the server has its own. */
  release(): void;
  /** Returns the number of access log lines, once the server has exited; undefined: nobody can count them. */
  countLines(): Promise<number | undefined>;
}

/** Starts to count access log lines. What it prints must be read from the start: Node.js discards it at the exit. */
function countAccessLines(input: "pipe" | number) {
  const counter = spawn("grep", ["-c", '"msg":"request"'], { stdio: [input, "pipe", "inherit"] });
  return { stdin: counter.stdin, count: text(counter.stdout as Readable).then(Number) };
}

function createFileOutput(folder: string): CountedOutput {
  const path = join(folder, "log");
  const file = openSync(path, "w");
  return {
    stdout: file,
    release: () => closeSync(file),
    countLines: () => countAccessLines(openSync(path, "r")).count,
  };
}

function createDeviceOutput(): CountedOutput {
  const device = openSync(devNull, "w");
  return { stdout: device, release: () => closeSync(device), countLines: async () => undefined };
}

function createPipeOutput(folder: string): CountedOutput {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  // A pipe can be opened for writing only while it has a reader.
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, "w");
  const reader = openSync(path, "r");
  const { count } = countAccessLines(reader);
  for (const descriptor of [first, reader]) closeSync(descriptor);
  return { stdout: writer, release: () => closeSync(writer), countLines: () => count };
}

function createSocketOutput(): CountedOutput {
  // What Node.js calls a pipe of a child process is a socket.
  const { stdin, count } = countAccessLines("pipe");
  return { stdout: stdin as Writable, release: () => void stdin?.destroy(), countLines: () => count };
}

/** CPU time of a server per request, in microseconds. */
interface Cpu {
  readonly user: number;
  readonly total: number;
}

/** Sends at least `requestCount` requests after a warm-up. Returns the CPU time of one, and the number of responses. */
async function sendRequests({ url, cpuUsage }: ServerProcess, load: Load): Promise<{ cpu: Cpu; completed: number }> {
  const { completed: warmUp } = await load.run(url, ROUND_SECONDS);
  const before = await cpuUsage();
  let measured = 0;
  while (measured < requestCount) measured += (await load.run(url, ROUND_SECONDS)).completed;
  const after = await cpuUsage();
  const user = (after.user - before.user) / measured;
  return { cpu: { user, total: user + (after.system - before.system) / measured }, completed: warmUp + measured };
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  for (const placement of listPlacements()) {
    placeProcesses(placement);
    console.log(`server and generator on ${placement}`);
    await measureOutputs(environment);
  }
}

async function measureOutputs(environment: Readonly<Record<string, string>>): Promise<void> {
  const path = buildQuotePath(FULL_ROUTE, 0);
  const quiet = await startServer("gateway", environment);
  const raw = await startServer("raw", await recordResponse(`${quiet.url}${path}`));
  const [load] = createHttpLoads(describeQuotes());
  if (load === undefined) throw new Error("there is no load generator");
  const bare = (await sendRequests(raw, load)).cpu;
  const { cpu } = await sendRequests(quiet, load);
  for (const server of [quiet, raw]) await server.stop();
  console.log(`GET /v1/quote by ${load.generator}, at least ${requestCount} requests each\n`);
  console.log(
    "| log | user CPU | ratio to bare node:http | user + system CPU | ratio | lines lost | most memory resident |",
  );
  console.log("|---|---|---|---|---|---|---|");
  printRow("(bare node:http)", bare, bare, "", "");
  printRow("none", cpu, bare, "", "");

  const folder = mkdtempSync(join(tmpdir(), "hop-gateway-log-"));
  const outputs = {
    file: () => createFileOutput(folder),
    [devNull]: createDeviceOutput,
    pipe: () => createPipeOutput(folder),
    socket: createSocketOutput,
  };
  try {
    for (const [name, create] of Object.entries(outputs)) {
      await measureOutput(name, create(), environment, load, bare);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureOutput(
  name: string,
  { stdout, release, countLines }: CountedOutput,
  environment: Readonly<Record<string, string>>,
  load: Load,
  bare: Cpu,
): Promise<void> {
  const server = await startServer("gateway", { ...environment, LOG_LEVEL: "info" }, stdout);
  release();
  await recordResponse(`${server.url}${buildQuotePath(FULL_ROUTE, 0)}`);
  const { cpu, completed } = await sendRequests(server, load);
  await sleep(FLUSH_WAIT_MS);
  const { peakResidentBytes } = await server.resourceUsage();
  await server.stop();
  const lines = await countLines();
  // Requests that were in progress when the load ended have a line, too.
  const lost = lines === undefined ? "not counted" : `${Math.max(0, completed + 1 - lines)} of ${completed + 1}`;
  printRow(name, cpu, bare, lost, `${Math.round(peakResidentBytes / 1e6)} MB`);
}

function printRow(name: string, { user, total }: Cpu, bare: Cpu, lost: string, memory: string): void {
  const ratios = [user / bare.user, total / bare.total].map((ratio) => ratio.toFixed(2));
  const cells = [name, `${user.toFixed(1)} us`, ratios[0], `${total.toFixed(1)} us`, ratios[1], lost, memory];
  console.log(`| ${cells.join(" | ")} |`);
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway, raw: serveRecordedResponse });
