import { randomBytes, randomInt } from "node:crypto";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetQuoteRequestSchema } from "../../gen/hop/bridge/v1/bridge_pb.js";
import {
  createHttpConnections,
  type HttpConnections,
  type HttpResult,
  type RawHttpRequest,
} from "../../test/support/service/http-connections.js";
import { findResponseProblem } from "../../test/support/service/response-invariants.js";
import { type RpcProxy, type RpcProxyBehaviour, startRpcProxy } from "../../test/support/stubs/rpc-proxy.js";
import { buildQuotePath, type Route } from "./routes.js";
import type { ServerProcess } from "./server-process.js";

// The traffic of the soak: requests of every protocol, dropped connections, upstream faults, callers' endpoints.

export const REQUESTS_PER_SECOND = 300;
const TICK_MS = 20;
/** How long a fault lasts, and the time without one before the next. */
const FAULT_MS = 3_000;
const FAULT_FREE_MS = 4_000;
const ENDPOINT_LIFETIME_MS = 7_000;
/** Bounds our requests that wait for a hanging upstream. */
const MAX_OPEN_REQUESTS = 2_000;

const FAULTS: readonly (readonly [string, Partial<RpcProxyBehaviour>])[] = [
  ["hangs", { isHanging: true }],
  ["responds with 500", { errorStatus: 500 }],
  ["responds with 429", { errorStatus: 429 }],
  ["responds after 400 ms", { latencyMs: 400 }],
  ["rejects batches", { batchErrorStatus: 400 }],
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
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const pickRandom = <T>(all: readonly T[]): T => all[randomInt(all.length)] as T;

let amounts = 0;

function buildGet(target: string, isHttp2: boolean): RawHttpRequest {
  return { isHttp2, method: "GET", target, headers: [], body: undefined };
}

function buildPost(isHttp2: boolean, contentType: string, body: Uint8Array): RawHttpRequest {
  const headers = [["content-type", contentType] as const, ["te", "trailers"] as const];
  return { isHttp2, method: "POST", target: `${SERVICE_PATH}/GetQuote`, headers, body: Buffer.from(body) };
}

/** Builds a quote request over a random protocol, with an amount that no request had before. */
function buildQuoteRequest(route: Route): RawHttpRequest {
  amounts += 1;
  const query = new URLSearchParams(buildQuotePath(route, amounts).split("?")[1]);
  const fields = { ...Object.fromEntries(query), slippage: 0.5 };
  const binary = toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, fields));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(binary.length, 1);
  const lengthPrefixed = Buffer.concat([prefix, binary]);
  switch (randomInt(7)) {
    case 0:
      return buildPost(false, "application/json", Buffer.from(JSON.stringify(fields)));
    case 1:
      return buildPost(true, "application/proto", binary);
    case 2:
      return buildPost(true, "application/grpc", lengthPrefixed);
    case 3:
      return buildPost(false, "application/grpc-web+proto", lengthPrefixed);
    case 4:
      return buildGet(buildQuotePath(route, amounts), true);
    default:
      return buildGet(buildQuotePath(route, amounts), false);
  }
}

/** State that the parts of the soak share while it runs. */
export interface SoakState {
  /** Number of responses by outcome. */
  readonly outcomes: Map<string, number>;
  readonly problems: string[];
  isOver: boolean;
}

function classifyOutcome(result: HttpResult): string {
  if (result.kind !== "answer") return result.kind;
  const { status, headers, trailers, body } = result;
  const grpc =
    trailers["grpc-status"] ?? headers["grpc-status"] ?? /grpc-status:\s*(\d+)/.exec(body.toString("latin1"))?.[1];
  return grpc === undefined ? `HTTP ${status}` : `gRPC ${grpc}`;
}

async function sendRequest(
  connections: HttpConnections,
  request: RawHttpRequest,
  { outcomes, problems }: SoakState,
): Promise<void> {
  const result = await connections.send(request);
  const outcome = classifyOutcome(result);
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const problem = findResponseProblem(result) ?? (result.kind === "closed" ? "closed without a response" : undefined);
  if (problem !== undefined) problems.push(`${problem}: ${request.target}`);
}

/** Sends random requests at a fixed rate until the soak is over. */
export async function generateLoad(
  { url }: ServerProcess,
  { routes, ids, endpoints }: { routes: readonly Route[]; ids: readonly string[]; endpoints: readonly string[] },
  state: SoakState,
): Promise<void> {
  const connections = createHttpConnections(Number(new URL(url).port));
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
  for (let sent = 0; !state.isOver; await sleep(TICK_MS)) {
    const due = ((performance.now() - began) / 1_000) * REQUESTS_PER_SECOND;
    for (; sent < due && open.size < MAX_OPEN_REQUESTS; sent += 1) {
      const request = sendRequest(connections, next(), state).finally(() => open.delete(request));
      open.add(request);
    }
    if (sent < due) sent = Math.floor(due);
  }
  await Promise.all(open);
  connections.close();
}

/** Opens connections that send nothing or half a request, or close before the response. */
export async function dropConnections(
  { url }: ServerProcess,
  routes: readonly Route[],
  state: SoakState,
): Promise<void> {
  const port = Number(new URL(url).port);
  for (; !state.isOver; await sleep(200)) {
    const bytes = pickRandom([
      "",
      "GET /v1/quo",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      `GET ${buildQuotePath(pickRandom(routes), amounts++)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    ]);
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.write(bytes);
    setTimeout(() => (randomInt(2) === 0 ? socket.destroy() : socket.resetAndDestroy()), randomInt(300));
    const connections = createHttpConnections(port);
    for (let count = 0; count < 4; count += 1) void connections.send(buildQuoteRequest(pickRandom(routes)));
    setTimeout(() => connections.close(), randomInt(30));
  }
}

/** Makes a random upstream fail in a random way, again and again. */
export async function injectFaults(proxies: ReadonlyMap<string, RpcProxy>, state: SoakState): Promise<void> {
  for (; !state.isOver; await sleep(FAULT_FREE_MS)) {
    const proxy = pickRandom([...proxies.values()]);
    Object.assign(proxy.behaviour, pickRandom(FAULTS)[1]);
    await sleep(FAULT_MS);
    Object.assign(proxy.behaviour, HEALTHY);
    for (const each of proxies.values()) each.reset();
  }
}

/** Keeps three custom endpoints running and replaces the oldest again and again. */
export async function rotateCustomEndpoints(target: string, endpoints: string[], state: SoakState): Promise<void> {
  const running: RpcProxy[] = [];
  for (; !state.isOver; await sleep(ENDPOINT_LIFETIME_MS)) {
    const proxy = await startRpcProxy(target, { errorStatus: randomInt(3) === 0 ? 503 : undefined });
    running.push(proxy);
    endpoints.push(proxy.url);
    if (running.length > 3) await running.shift()?.close();
    // Callers still name the endpoint that was closed last.
    if (endpoints.length > 4) endpoints.shift();
  }
  await Promise.all(running.map((proxy) => proxy.close()));
}
