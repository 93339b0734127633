import { fork } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import { loadConfig } from "../src/config.js";
import { createGateway } from "../src/gateway.js";

// How many GET /v1/available-routes a second one process answers, filtered and printed anew each time, against a bare node:http
// server that writes the same bytes. Both run as processes of their own and are asked in turn in the same run, since
// the machines are noisy: what counts is the ratio. CPU time per request says it without the load generator's share.

const path = "/v1/available-routes";
const rounds = 5;
const seconds = 2;
const connections = 32;

interface Measured {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

if (process.argv[2] === "serve-gateway") await serveGateway();
else if (process.argv[2] === "serve-raw") serveRaw(process.argv[3] ?? "");
else await measure();

async function measure(): Promise<void> {
  const gateway = await startServer("serve-gateway");
  const body = await (await fetch(`${gateway.url}${path}`)).text();
  const raw = await startServer("serve-raw", body);
  try {
    const results: Record<"gateway" | "raw", Measured[]> = { gateway: [], raw: [] };
    await load(gateway);
    await load(raw);
    for (let round = 0; round < rounds; round++) {
      results.raw.push(await load(raw));
      results.gateway.push(await load(gateway));
    }
    const [ours, bare] = [median(results.gateway), median(results.raw)];
    console.log(
      `GET ${path}: ${Buffer.byteLength(body)} bytes, ${connections} connections, median of ${rounds} rounds`,
    );
    console.log(`  bare node:http  ${describe(bare)}`);
    console.log(`  hop-gateway     ${describe(ours)}`);
    console.log(
      `  ratio           ${(ours.perSecond / bare.perSecond).toFixed(2)} in requests a second, ${(bare.cpuMicros / ours.cpuMicros).toFixed(2)} in CPU`,
    );
  } finally {
    gateway.stop();
    raw.stop();
  }
}

interface Server {
  readonly url: string;
  /** CPU time used so far, in microseconds. */
  cpu(): Promise<number>;
  stop(): void;
}

async function startServer(...args: string[]): Promise<Server> {
  const child = fork(fileURLToPath(import.meta.url), args);
  const next = <T>(): Promise<T> => new Promise((resolve) => child.once("message", (message) => resolve(message as T)));
  const url = await next<string>();
  return {
    url,
    async cpu() {
      const answer = next<number>();
      child.send("cpu");
      return answer;
    },
    stop: () => void child.kill(),
  };
}

async function load(server: Server): Promise<Measured> {
  const before = await server.cpu();
  const { requests, errors, non2xx } = await autocannon({
    url: `${server.url}${path}`,
    connections,
    duration: seconds,
  });
  if (errors > 0 || non2xx > 0) throw new Error(`${errors} errors, ${non2xx} wrong answers`);
  return { perSecond: requests.average, cpuMicros: ((await server.cpu()) - before) / requests.total };
}

async function serveGateway(): Promise<void> {
  const gateway = createGateway(loadConfig({ HOST: "127.0.0.1", PORT: "0", ASSETS_URL: "off", LOG_LEVEL: "silent" }));
  announce((await gateway.start()).url);
}

function serveRaw(text: string): void {
  const body = Buffer.from(text);
  const headers = { "content-type": "application/json; charset=utf-8", "content-length": body.length };
  const server = createServer((_, response) => response.writeHead(200, headers).end(body));
  server.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
}

function announce(url: string): void {
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.on("disconnect", () => process.exit());
  process.send?.(url);
}

function median(all: readonly Measured[]): Measured {
  const middle = [...all].sort((a, b) => a.perSecond - b.perSecond)[Math.floor(all.length / 2)];
  if (middle === undefined) throw new Error("nothing was measured");
  return middle;
}

function describe({ perSecond, cpuMicros }: Measured): string {
  return `${Math.round(perSecond).toString().padStart(7)} requests a second, ${cpuMicros.toFixed(1).padStart(6)} us of CPU each`;
}
