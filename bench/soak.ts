import { randomBytes, randomInt } from "node:crypto";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetQuoteRequestSchema } from "../gen/hop/bridge/v1/bridge_pb.js";
import { type Answer, type Asked, type Callers, createCallers } from "../test/support/service/http-connections.js";
import { wrongInAnswer } from "../test/support/service/response-invariants.js";
import { type RpcBehaviour, type RpcProxy, startRpcProxy } from "../test/support/stubs/rpc-proxy.js";
import { mineInIntervals } from "./support/interval-mining.js";
import { slopeOf } from "./support/linear-regression.js";
import { overNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { quotePath, type Route, routesOf } from "./support/routes.js";
import { type Held, runBench, type ServerProcess, startServer } from "./support/server-process.js";

// What a process still holds of requests that are over: every protocol at a moderate rate, hardly a key twice, callers'
// endpoints and faults that come and go, connections that are dropped. SOAK_MINUTES says how long.

const minutes = Number(process.env.SOAK_MINUTES ?? 10);
const perSecond = 300;
const tickMs = 20;
const sampleMs = 10_000;
/** Share of the time in which caches fill and code is compiled. */
const warmUp = 0.25;
/** Each fault: so long it stays, after so long a time without one. */
const faultMs = 3_000;
const pauseMs = 4_000;
const endpointMs = 7_000;
/** The run fails where the heap certainly grows faster, in bytes a minute. */
const mostHeapGrowth = 2 ** 20;
/** After this time without a request nothing is open any more: what is kept for the next ones has run out. */
const settleMs = 75_000;

const faults: readonly (readonly [string, Partial<RpcBehaviour>])[] = [
  ["hangs", { hang: true }],
  ["answers 500", { failWith: 500 }],
  ["answers 429", { failWith: 429 }],
  ["takes 400 ms", { latencyMs: 400 }],
  ["refuses batches", { refuseBatches: 400 }],
  ["lags 40 blocks", { lagBlocks: 40 }],
];
const well: Partial<RpcBehaviour> = {
  hang: false,
  failWith: undefined,
  latencyMs: 0,
  refuseBatches: undefined,
  lagBlocks: 0,
};

const service = "/hop.bridge.v1.BridgeService";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const oneOf = <T>(all: readonly T[]): T => all[randomInt(all.length)] as T;

let amounts = 0;

function get(target: string, isHttp2: boolean): Asked {
  return { isHttp2, method: "GET", target, headers: [], body: undefined };
}

function post(isHttp2: boolean, type: string, body: Uint8Array): Asked {
  const headers = [["content-type", type] as const, ["te", "trailers"] as const];
  return { isHttp2, method: "POST", target: `${service}/GetQuote`, headers, body: Buffer.from(body) };
}

/** A quote over any of the protocols, with an amount that was not asked for before. */
function quoteOn(route: Route): Asked {
  amounts += 1;
  const query = new URLSearchParams(quotePath(route, amounts).split("?")[1]);
  const fields = { ...Object.fromEntries(query), slippage: 0.5 };
  const binary = toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, fields));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(binary.length, 1);
  const enveloped = Buffer.concat([head, binary]);
  switch (randomInt(7)) {
    case 0:
      return post(false, "application/json", Buffer.from(JSON.stringify(fields)));
    case 1:
      return post(true, "application/proto", binary);
    case 2:
      return post(true, "application/grpc", enveloped);
    case 3:
      return post(false, "application/grpc-web+proto", enveloped);
    case 4:
      return get(quotePath(route, amounts), true);
    default:
      return get(quotePath(route, amounts), false);
  }
}

/** Reading and changing what goes on while the load runs. */
interface Course {
  /** How many answers of each kind there were. */
  readonly outcomes: Map<string, number>;
  readonly problems: string[];
  isOver: boolean;
}

function outcomeOf(answer: Answer): string {
  if (answer.kind !== "answer") return answer.kind;
  const { status, headers, trailers, body } = answer;
  const grpc =
    trailers["grpc-status"] ?? headers["grpc-status"] ?? /grpc-status:\s*(\d+)/.exec(body.toString("latin1"))?.[1];
  return grpc === undefined ? `HTTP ${status}` : `gRPC ${grpc}`;
}

async function ask(callers: Callers, asked: Asked, { outcomes, problems }: Course): Promise<void> {
  const answer = await callers.ask(asked);
  const outcome = outcomeOf(answer);
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const problem = wrongInAnswer(answer) ?? (answer.kind === "closed" ? "closed without an answer" : undefined);
  if (problem !== undefined) problems.push(`${problem}: ${asked.target}`);
}

async function load(
  { url }: ServerProcess,
  { routes, ids, endpoints }: { routes: readonly Route[]; ids: readonly string[]; endpoints: readonly string[] },
  course: Course,
): Promise<void> {
  const callers = createCallers(Number(new URL(url).port));
  const next = (): Asked => {
    const drawn = randomInt(1_000);
    const isHttp2 = drawn % 2 === 0;
    if (drawn < 5) return get(`/v1/transfer-status?transferId=0x${randomBytes(32).toString("hex")}`, isHttp2);
    if (drawn < 15) {
      const endpoint = encodeURIComponent(`${oneOf(endpoints)}/${randomBytes(4).toString("hex")}`);
      return get(`${quotePath(oneOf(routes), amounts++)}&rpcUrl[polygon]=${endpoint}`, isHttp2);
    }
    if (drawn < 100) return get(`/v1/transfer-status?transferId=${oneOf(ids)}`, isHttp2);
    if (drawn < 150) return get(`/v1/available-routes?token=${oneOf(routes).token}`, isHttp2);
    return quoteOn(oneOf(routes));
  };
  const began = performance.now();
  const open = new Set<Promise<void>>();
  for (let sent = 0; !course.isOver; await pause(tickMs)) {
    const due = ((performance.now() - began) / 1_000) * perSecond;
    // What hangs may not pile up without end on our side.
    for (; sent < due && open.size < 2_000; sent += 1) {
      const one = ask(callers, next(), course).finally(() => open.delete(one));
      open.add(one);
    }
    if (sent < due) sent = Math.floor(due);
  }
  await Promise.all(open);
  callers.close();
}

/** Connections that say nothing, half of something, or leave without waiting for the answer. */
async function leave({ url }: ServerProcess, routes: readonly Route[], course: Course): Promise<void> {
  const port = Number(new URL(url).port);
  for (; !course.isOver; await pause(200)) {
    const said = oneOf([
      "",
      "GET /v1/quo",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      `GET ${quotePath(oneOf(routes), amounts++)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    ]);
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.write(said);
    setTimeout(() => (randomInt(2) === 0 ? socket.destroy() : socket.resetAndDestroy()), randomInt(300));
    const callers = createCallers(port);
    for (let each = 0; each < 4; each += 1) void callers.ask(quoteOn(oneOf(routes)));
    setTimeout(() => callers.close(), randomInt(30));
  }
}

async function breakUpstreams(proxies: ReadonlyMap<string, RpcProxy>, course: Course): Promise<void> {
  for (; !course.isOver; await pause(pauseMs)) {
    const proxy = oneOf([...proxies.values()]);
    Object.assign(proxy.behaviour, oneOf(faults)[1]);
    await pause(faultMs);
    Object.assign(proxy.behaviour, well);
    for (const each of proxies.values()) each.reset();
  }
}

/** Keeps three endpoints of callers: the oldest goes, another one comes. */
async function replaceEndpoints(target: string, endpoints: string[], course: Course): Promise<void> {
  const running: RpcProxy[] = [];
  for (; !course.isOver; await pause(endpointMs)) {
    const proxy = await startRpcProxy(target, { failWith: randomInt(3) === 0 ? 503 : undefined });
    running.push(proxy);
    endpoints.push(proxy.url);
    if (running.length > 3) await running.shift()?.close();
    // What has just gone is still named.
    if (endpoints.length > 4) endpoints.shift();
  }
  await Promise.all(running.map((proxy) => proxy.close()));
}

async function sample(gateway: ServerProcess, course: Course): Promise<{ at: number; held: Held }[]> {
  const samples: { at: number; held: Held }[] = [];
  const began = performance.now();
  for (let due = sampleMs; due <= minutes * 60_000; due += sampleMs) {
    await pause(due - (performance.now() - began));
    const held = await gateway.held();
    samples.push({ at: (performance.now() - began) / 60_000, held });
    const answers = [...course.outcomes.values()].reduce((sum, count) => sum + count, 0);
    const { heapBytes, residentBytes, sockets, timers, descriptors } = held;
    console.log(
      `  ${(due / 1_000).toString().padStart(5)} s: ${answers} answers, heap ${mib(heapBytes)}, resident ${mib(residentBytes)}, ` +
        `${sockets} sockets, ${timers} timers, ${descriptors} descriptors`,
    );
  }
  course.isOver = true;
  return samples;
}

function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Prints what each number does in a minute; whether the heap does not certainly grow too fast. */
function isFlat(samples: readonly { at: number; held: Held }[]): boolean {
  const steady = samples.filter(({ at }) => at > minutes * warmUp);
  console.log(`in a minute, by least squares over ${steady.length} samples, with the 95 % confidence interval`);
  const slope = (name: keyof Held, title: string, unit: number): boolean => {
    const { perUnit, margin } = slopeOf(steady.map(({ at, held }) => ({ at, value: held[name] })));
    console.log(`  ${title.padEnd(13)} ${(perUnit / unit).toFixed(3).padStart(8)} +- ${(margin / unit).toFixed(3)}`);
    return perUnit - margin <= mostHeapGrowth;
  };
  slope("residentBytes", "MiB resident", 2 ** 20);
  slope("sockets", "sockets", 1);
  slope("timers", "timers", 1);
  slope("descriptors", "descriptors", 1);
  return slope("heapBytes", "MiB of heap", 2 ** 20);
}

/** Whether all sockets are gone once everybody is. */
async function isSettled(gateway: ServerProcess, before: Held): Promise<boolean> {
  await pause(settleMs);
  const after = await gateway.held();
  for (const name of ["sockets", "timers", "descriptors"] as const) {
    console.log(
      `  ${name} before the first request and ${settleMs / 1_000} s after the last: ${before[name]}, ${after[name]}`,
    );
  }
  return after.sockets <= before.sockets;
}

async function measure(
  environment: Readonly<Record<string, string>>,
  transfers: readonly { readonly transferId: string; readonly expectedState: string }[],
): Promise<void> {
  await mineInIntervals(environment);
  const proxies = new Map<string, RpcProxy>();
  const proxied: Record<string, string> = { ...environment };
  for (const [name, url] of Object.entries(environment)) {
    if (!name.startsWith("RPC_URL_")) continue;
    const proxy = await startRpcProxy(url);
    proxies.set(name, proxy);
    proxied[name] = proxy.url;
  }
  const gateway = await startServer("gateway", proxied);
  const before = await gateway.held();
  const course: Course = { outcomes: new Map(), problems: [], isOver: false };
  try {
    const routes = await routesOf(gateway.url);
    const ids = transfers
      .filter(({ expectedState }) => expectedState !== "NOT_FOUND")
      .map(({ transferId }) => transferId);
    const endpoints: string[] = ["http://127.0.0.1:1"];
    console.log(`soak: ${minutes} minutes, ${perSecond} requests a second`);
    const [samples] = await Promise.all([
      sample(gateway, course),
      load(gateway, { routes, ids, endpoints }, course),
      leave(gateway, routes, course),
      breakUpstreams(proxies, course),
      replaceEndpoints(environment.RPC_URL_POLYGON ?? "", endpoints, course),
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

await runBench(() => overNetwork(measure), { gateway: serveGateway });
