import { randomBytes, randomInt } from "node:crypto";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetQuoteRequestSchema } from "../gen/hop/bridge/v1/bridge_pb.js";
import {
  createHttpConnections,
  type HttpConnections,
  type HttpResult,
  type RawHttpRequest,
} from "../test/support/service/http-connections.js";
import { findResponseProblem } from "../test/support/service/response-invariants.js";
import { type RpcProxy, type RpcProxyBehaviour, startRpcProxy } from "../test/support/stubs/rpc-proxy.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { fitSlope } from "./support/linear-regression.js";
import { withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { buildQuotePath, fetchRoutes, type Route } from "./support/routes.js";
import { type ResourceUsage, runBench, type ServerProcess, startServer } from "./support/server-process.js";

// What a process still holds of requests that are over: every protocol at a moderate rate, hardly a key twice, callers'
// endpoints and faults that come and go, connections that are dropped. SOAK_MINUTES says how long.

const minutes = Number(process.env.SOAK_MINUTES ?? 10);
const REQUESTS_PER_SECOND = 300;
const TICK_MS = 20;
const SAMPLE_INTERVAL_MS = 10_000;
/** Share of the time in which caches fill and code is compiled. */
const WARM_UP_SHARE = 0.25;
/** Each fault: so long it stays, after so long a time without one. */
const FAULT_MS = 3_000;
const FAULT_FREE_MS = 4_000;
const ENDPOINT_LIFETIME_MS = 7_000;
/** The run fails where the heap certainly grows faster, in bytes a minute. */
const MAX_HEAP_GROWTH_BYTES = 2 ** 20;
/** After this time without a request nothing is open any more: what is kept for the next ones has run out. */
const SETTLE_MS = 75_000;

const FAULTS: readonly (readonly [string, Partial<RpcProxyBehaviour>])[] = [
  ["hangs", { isHanging: true }],
  ["answers 500", { errorStatus: 500 }],
  ["answers 429", { errorStatus: 429 }],
  ["takes 400 ms", { latencyMs: 400 }],
  ["refuses batches", { batchErrorStatus: 400 }],
  ["lags 40 blocks", { lagBlocks: 40 }],
];
const HEALTHY: Partial<RpcProxyBehaviour> = {
  isHanging: false,
  errorStatus: undefined,
  latencyMs: 0,
  batchErrorStatus: undefined,
  lagBlocks: 0,
};

const SERVICE_PATH = "/hop.bridge.v1.BridgeService";
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const pickRandom = <T>(all: readonly T[]): T => all[randomInt(all.length)] as T;

let amounts = 0;

function buildGet(target: string, isHttp2: boolean): RawHttpRequest {
  return { isHttp2, method: "GET", target, headers: [], body: undefined };
}

function buildPost(isHttp2: boolean, type: string, body: Uint8Array): RawHttpRequest {
  const headers = [["content-type", type] as const, ["te", "trailers"] as const];
  return { isHttp2, method: "POST", target: `${SERVICE_PATH}/GetQuote`, headers, body: Buffer.from(body) };
}

/** A quote over any of the protocols, with an amount that was not asked for before. */
function buildQuoteRequest(route: Route): RawHttpRequest {
  amounts += 1;
  const query = new URLSearchParams(buildQuotePath(route, amounts).split("?")[1]);
  const fields = { ...Object.fromEntries(query), slippage: 0.5 };
  const binary = toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, fields));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(binary.length, 1);
  const enveloped = Buffer.concat([head, binary]);
  switch (randomInt(7)) {
    case 0:
      return buildPost(false, "application/json", Buffer.from(JSON.stringify(fields)));
    case 1:
      return buildPost(true, "application/proto", binary);
    case 2:
      return buildPost(true, "application/grpc", enveloped);
    case 3:
      return buildPost(false, "application/grpc-web+proto", enveloped);
    case 4:
      return buildGet(buildQuotePath(route, amounts), true);
    default:
      return buildGet(buildQuotePath(route, amounts), false);
  }
}

/** Reading and changing what goes on while the load runs. */
interface SoakState {
  /** How many answers of each kind there were. */
  readonly outcomes: Map<string, number>;
  readonly problems: string[];
  isOver: boolean;
}

function classifyOutcome(answer: HttpResult): string {
  if (answer.kind !== "answer") return answer.kind;
  const { status, headers, trailers, body } = answer;
  const grpc =
    trailers["grpc-status"] ?? headers["grpc-status"] ?? /grpc-status:\s*(\d+)/.exec(body.toString("latin1"))?.[1];
  return grpc === undefined ? `HTTP ${status}` : `gRPC ${grpc}`;
}

async function sendRequest(
  callers: HttpConnections,
  asked: RawHttpRequest,
  { outcomes, problems }: SoakState,
): Promise<void> {
  const answer = await callers.send(asked);
  const outcome = classifyOutcome(answer);
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const problem = findResponseProblem(answer) ?? (answer.kind === "closed" ? "closed without an answer" : undefined);
  if (problem !== undefined) problems.push(`${problem}: ${asked.target}`);
}

async function load(
  { url }: ServerProcess,
  { routes, ids, endpoints }: { routes: readonly Route[]; ids: readonly string[]; endpoints: readonly string[] },
  course: SoakState,
): Promise<void> {
  const callers = createHttpConnections(Number(new URL(url).port));
  const next = (): RawHttpRequest => {
    const drawn = randomInt(1_000);
    const isHttp2 = drawn % 2 === 0;
    if (drawn < 5) return buildGet(`/v1/transfer-status?transferId=0x${randomBytes(32).toString("hex")}`, isHttp2);
    if (drawn < 15) {
      const endpoint = encodeURIComponent(`${pickRandom(endpoints)}/${randomBytes(4).toString("hex")}`);
      return buildGet(`${buildQuotePath(pickRandom(routes), amounts++)}&rpcUrl[polygon]=${endpoint}`, isHttp2);
    }
    if (drawn < 100) return buildGet(`/v1/transfer-status?transferId=${pickRandom(ids)}`, isHttp2);
    if (drawn < 150) return buildGet(`/v1/available-routes?token=${pickRandom(routes).token}`, isHttp2);
    return buildQuoteRequest(pickRandom(routes));
  };
  const began = performance.now();
  const open = new Set<Promise<void>>();
  for (let sent = 0; !course.isOver; await sleep(TICK_MS)) {
    const due = ((performance.now() - began) / 1_000) * REQUESTS_PER_SECOND;
    // What hangs may not pile up without end on our side.
    for (; sent < due && open.size < 2_000; sent += 1) {
      const one = sendRequest(callers, next(), course).finally(() => open.delete(one));
      open.add(one);
    }
    if (sent < due) sent = Math.floor(due);
  }
  await Promise.all(open);
  callers.close();
}

/** Connections that say nothing, half of something, or leave without waiting for the answer. */
async function dropConnections({ url }: ServerProcess, routes: readonly Route[], course: SoakState): Promise<void> {
  const port = Number(new URL(url).port);
  for (; !course.isOver; await sleep(200)) {
    const said = pickRandom([
      "",
      "GET /v1/quo",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      `GET ${buildQuotePath(pickRandom(routes), amounts++)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    ]);
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.write(said);
    setTimeout(() => (randomInt(2) === 0 ? socket.destroy() : socket.resetAndDestroy()), randomInt(300));
    const callers = createHttpConnections(port);
    for (let each = 0; each < 4; each += 1) void callers.send(buildQuoteRequest(pickRandom(routes)));
    setTimeout(() => callers.close(), randomInt(30));
  }
}

async function injectFaults(proxies: ReadonlyMap<string, RpcProxy>, course: SoakState): Promise<void> {
  for (; !course.isOver; await sleep(FAULT_FREE_MS)) {
    const proxy = pickRandom([...proxies.values()]);
    Object.assign(proxy.behaviour, pickRandom(FAULTS)[1]);
    await sleep(FAULT_MS);
    Object.assign(proxy.behaviour, HEALTHY);
    for (const each of proxies.values()) each.reset();
  }
}

/** Keeps three endpoints of callers: the oldest goes, another one comes. */
async function rotateCustomEndpoints(target: string, endpoints: string[], course: SoakState): Promise<void> {
  const running: RpcProxy[] = [];
  for (; !course.isOver; await sleep(ENDPOINT_LIFETIME_MS)) {
    const proxy = await startRpcProxy(target, { errorStatus: randomInt(3) === 0 ? 503 : undefined });
    running.push(proxy);
    endpoints.push(proxy.url);
    if (running.length > 3) await running.shift()?.close();
    // What has just gone is still named.
    if (endpoints.length > 4) endpoints.shift();
  }
  await Promise.all(running.map((proxy) => proxy.close()));
}

async function sample(gateway: ServerProcess, course: SoakState): Promise<{ at: number; held: ResourceUsage }[]> {
  const samples: { at: number; held: ResourceUsage }[] = [];
  const began = performance.now();
  for (let due = SAMPLE_INTERVAL_MS; due <= minutes * 60_000; due += SAMPLE_INTERVAL_MS) {
    await sleep(due - (performance.now() - began));
    const held = await gateway.resourceUsage();
    samples.push({ at: (performance.now() - began) / 60_000, held });
    const answers = [...course.outcomes.values()].reduce((sum, count) => sum + count, 0);
    const { heapBytes, residentBytes, sockets, timers, descriptors } = held;
    console.log(
      `  ${(due / 1_000).toString().padStart(5)} s: ${answers} answers, heap ${formatMebibytes(heapBytes)}, resident ${formatMebibytes(residentBytes)}, ` +
        `${sockets} sockets, ${timers} timers, ${descriptors} descriptors`,
    );
  }
  course.isOver = true;
  return samples;
}

function formatMebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Prints what each number does in a minute; whether the heap does not certainly grow too fast. */
function isFlat(samples: readonly { at: number; held: ResourceUsage }[]): boolean {
  const steady = samples.filter(({ at }) => at > minutes * WARM_UP_SHARE);
  console.log(`in a minute, by least squares over ${steady.length} samples, with the 95 % confidence interval`);
  const slope = (name: keyof ResourceUsage, title: string, unit: number): boolean => {
    const { perUnit, margin } = fitSlope(steady.map(({ at, held }) => ({ at, value: held[name] })));
    console.log(`  ${title.padEnd(13)} ${(perUnit / unit).toFixed(3).padStart(8)} +- ${(margin / unit).toFixed(3)}`);
    return perUnit - margin <= MAX_HEAP_GROWTH_BYTES;
  };
  slope("residentBytes", "MiB resident", 2 ** 20);
  slope("sockets", "sockets", 1);
  slope("timers", "timers", 1);
  slope("descriptors", "descriptors", 1);
  return slope("heapBytes", "MiB of heap", 2 ** 20);
}

/** Whether all sockets are gone once everybody is. */
async function isSettled(gateway: ServerProcess, before: ResourceUsage): Promise<boolean> {
  await sleep(SETTLE_MS);
  const after = await gateway.resourceUsage();
  for (const name of ["sockets", "timers", "descriptors"] as const) {
    console.log(
      `  ${name} before the first request and ${SETTLE_MS / 1_000} s after the last: ${before[name]}, ${after[name]}`,
    );
  }
  return after.sockets <= before.sockets;
}

async function measure(
  environment: Readonly<Record<string, string>>,
  transfers: readonly { readonly transferId: string; readonly expectedState: string }[],
): Promise<void> {
  await enableIntervalMining(environment);
  const proxies = new Map<string, RpcProxy>();
  const proxied: Record<string, string> = { ...environment };
  for (const [name, url] of Object.entries(environment)) {
    if (!name.startsWith("RPC_URL_")) continue;
    const proxy = await startRpcProxy(url);
    proxies.set(name, proxy);
    proxied[name] = proxy.url;
  }
  const gateway = await startServer("gateway", proxied);
  const before = await gateway.resourceUsage();
  const course: SoakState = { outcomes: new Map(), problems: [], isOver: false };
  try {
    const routes = await fetchRoutes(gateway.url);
    const ids = transfers
      .filter(({ expectedState }) => expectedState !== "NOT_FOUND")
      .map(({ transferId }) => transferId);
    const endpoints: string[] = ["http://127.0.0.1:1"];
    console.log(`soak: ${minutes} minutes, ${REQUESTS_PER_SECOND} requests a second`);
    const [samples] = await Promise.all([
      sample(gateway, course),
      load(gateway, { routes, ids, endpoints }, course),
      dropConnections(gateway, routes, course),
      injectFaults(proxies, course),
      rotateCustomEndpoints(environment.RPC_URL_POLYGON ?? "", endpoints, course),
    ]);
    const outcomes = [...course.outcomes].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name}: ${count}`);
    console.log(`answers: ${outcomes.join(", ")}; dishonest: ${course.problems.length}`);
    for (const problem of course.problems.slice(0, 10)) console.log(`  ${problem}`);
    const isWell = [isFlat(samples), await isSettled(gateway, before), course.problems.length === 0].every(Boolean);
    if (!isWell) process.exitCode = 1;
  } finally {
    course.isOver = true;
    await gateway.stop();
    await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
  }
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
