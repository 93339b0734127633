import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { devNull, tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { buildGetRequest, runHttpLoad } from "./support/http-load-generator.js";
import { withLocalNetwork } from "./support/local-network.js";
import { recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { buildQuotePath, FULL_ROUTE } from "./support/routes.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// Sends quotes with distinct amounts at full load, and counts the lines of the access log that arrive at each kind of
// output: a file, a device, a pipe and a socket, with readers that keep up.

const CONNECTIONS = 32;
const ROUND_SECONDS = 2;
/** Longer than the flush interval of the log. */
const FLUSH_WAIT_MS = 1_000;
const requestCount = Number(process.env.LOG_REQUESTS ?? 150_000);
let nextAmount = 0;

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

/** Returns the CPU time per request, in microseconds, and the number of responses. */
async function load({
  url,
  cpuMicros,
}: ServerProcess): Promise<{ readonly micros: number; readonly completed: number }> {
  const send = (seconds: number) =>
    runHttpLoad({
      url,
      connections: CONNECTIONS,
      seconds,
      request: () => buildGetRequest(buildQuotePath(FULL_ROUTE, nextAmount++)),
    });
  let { completed } = await send(ROUND_SECONDS);
  const [warmUp, before] = [completed, await cpuMicros()];
  while (completed - warmUp < requestCount) completed += (await send(ROUND_SECONDS)).completed;
  return { micros: ((await cpuMicros()) - before) / (completed - warmUp), completed };
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const path = buildQuotePath(FULL_ROUTE, nextAmount++);
  const quiet = await startServer("gateway", environment);
  const raw = await startServer("raw", await recordResponse(`${quiet.url}${path}`));
  const [bareMicros, quietMicros] = [(await load(raw)).micros, (await load(quiet)).micros];
  for (const server of [quiet, raw]) await server.stop();
  console.log(`GET /v1/quote, ${CONNECTIONS} connections, at least ${requestCount} requests each; CPU per request:`);
  console.log(`  bare node:http ${bareMicros.toFixed(1)} us, hop-gateway without log ${quietMicros.toFixed(1)} us`);

  const folder = mkdtempSync(join(tmpdir(), "hop-gateway-log-"));
  const outputs = {
    file: () => createFileOutput(folder),
    [devNull]: createDeviceOutput,
    pipe: () => createPipeOutput(folder),
    socket: createSocketOutput,
  };
  try {
    for (const [name, create] of Object.entries(outputs)) await measureOutput(name, create(), environment, quietMicros);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureOutput(
  name: string,
  { stdout, release, countLines }: CountedOutput,
  environment: Readonly<Record<string, string>>,
  quietMicros: number,
): Promise<void> {
  const server = await startServer("gateway", { ...environment, LOG_LEVEL: "info" }, stdout);
  release();
  await recordResponse(`${server.url}${buildQuotePath(FULL_ROUTE, nextAmount++)}`);
  const { micros, completed } = await load(server);
  await sleep(FLUSH_WAIT_MS);
  const { peakResidentBytes } = await server.resourceUsage();
  await server.stop();
  const lines = await countLines();
  // Requests that were in progress when the load ended have a line, too.
  const lost = lines === undefined ? "lines not counted" : `${Math.max(0, completed + 1 - lines)} lines lost`;
  console.log(
    `  log to ${name.padEnd(9)} ${micros.toFixed(1)} us (a line: ${(micros - quietMicros).toFixed(1)} us), ${lost} of ` +
      `${completed + 1}, at most ${Math.round(peakResidentBytes / 2 ** 20)} MiB resident`,
  );
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway, raw: serveRecordedResponse });
