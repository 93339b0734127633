import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { BATCH_ERROR } from "../support/stubs/rpc-messages.js";
import type { Fault, InterceptedRequest } from "./fault-proxy.js";

// The faults, by the names under which expected-outcomes.ts has their outcomes.

const DRIP_INTERVAL_MS = 100;
/** Blocks by which a node lags; the tests need older ones only. */
const LAG_BLOCKS = 2;
const gzipBomb = gzipSync(Buffer.alloc(32 * 1024 * 1024, "["));
const largeChunk = Buffer.alloc(1024 * 1024, "[");
const ENDLESS_CHUNK_INTERVAL_MS = 15;
const JSON_HEADERS = { "content-type": "application/json" };
const longHex = `0x${"f".repeat(100_000)}`;

type FaultHandler = NonNullable<Fault["handle"]>;
const anyProtocolFault = (handle: Fault["handle"]): Fault => ({ isRpcOnly: false, handle });
const jsonRpcFault = (handle: FaultHandler): Fault => ({ isRpcOnly: true, handle });

/** Responds with a status, a body and headers. */
const respondWith = (
  status: number,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = JSON_HEADERS,
): Fault =>
  anyProtocolFault(({ response }) => {
    response.writeHead(status, headers).end(body);
  });

interface RpcMember {
  readonly id?: unknown;
  readonly result?: unknown;
}

/** Changes the response of the upstream: the document, or each result of a JSON-RPC response. */
function transformResults(change: (member: unknown) => unknown): Fault {
  return anyProtocolFault(async ({ body, response, forward }) => {
    const { status, text } = await forward();
    const parsed = JSON.parse(text) as unknown;
    const changed = body === "" ? change(parsed) : mapMembers(parsed, (member) => ({ result: change(member.result) }));
    response.writeHead(status, JSON_HEADERS).end(JSON.stringify(changed));
  });
}

/** Changes the results of some JSON-RPC methods. */
function transformMethodResults(
  isChanged: (method: string) => boolean,
  change: (result: unknown) => unknown,
): FaultHandler {
  return async ({ body, response, forward }) => {
    const calls = [JSON.parse(body)].flat() as { id: unknown; method: string }[];
    const changedIds = new Set(calls.filter(({ method }) => isChanged(method)).map(({ id }) => id));
    const parsed = JSON.parse((await forward()).text) as unknown;
    const changed = mapMembers(parsed, ({ id, result }) => ({ result: changedIds.has(id) ? change(result) : result }));
    response.writeHead(200, JSON_HEADERS).end(JSON.stringify(changed));
  };
}

/** With a wrong chain ID nothing else would be read. */
const isNotChainId = (method: string): boolean => method !== "eth_chainId";

function mapMembers(parsed: unknown, change: (member: RpcMember) => RpcMember): unknown {
  const changed = (member: RpcMember): RpcMember => ({ ...member, ...change(member) });
  return Array.isArray(parsed) ? parsed.map(changed) : changed(parsed as RpcMember);
}

/** Changes the list of a batch response, and nothing else. */
function transformBatches(change: (members: readonly unknown[]) => unknown, status = 200): Fault {
  return jsonRpcFault(async ({ response, forward }) => {
    const { text } = await forward();
    const parsed = JSON.parse(text) as unknown;
    const isBatch = Array.isArray(parsed);
    response.writeHead(isBatch ? status : 200, JSON_HEADERS).end(JSON.stringify(isBatch ? change(parsed) : parsed));
  });
}

/** Changes the type of a value and of all values in it. */
function swapTypes(value: unknown): unknown {
  if (value === null || typeof value === "boolean") return { value };
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return value.length;
  if (Array.isArray(value)) return value.map(swapTypes);
  return Object.fromEntries(Object.entries(value as object).map(([name, member]) => [name, swapTypes(member)]));
}

async function sendSlowly({ response, forward }: InterceptedRequest): Promise<void> {
  const { text } = await forward();
  response.writeHead(200, JSON_HEADERS);
  for (const character of text) {
    if (response.destroyed) return;
    response.write(character);
    await sleep(DRIP_INTERVAL_MS);
  }
  response.end();
}

function sendEndlessly({ response }: InterceptedRequest): void {
  response.writeHead(200, JSON_HEADERS);
  // As fast as a network, so that other scenarios get CPU time.
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(largeChunk);
  }, ENDLESS_CHUNK_INTERVAL_MS);
  response.on("close", () => clearInterval(timer));
}

/** Delays every response by a time in milliseconds. */
export function respondAfter(latencyMs: number): Fault {
  return anyProtocolFault(async ({ response, forward }) => {
    const { status, text } = await forward();
    await sleep(latencyMs);
    response.writeHead(status, JSON_HEADERS).end(text);
  });
}

export const faults = {
  latency: respondAfter(150),
  "2 s of latency": respondAfter(2_000),
  "4 s of latency": respondAfter(4_000),
  hang: anyProtocolFault(() => {}),
  "connection refused": anyProtocolFault(undefined),
  "connection reset": anyProtocolFault(({ response }) => {
    response.socket?.resetAndDestroy();
  }),
  "slow drip": anyProtocolFault(sendSlowly),
  "truncated body": anyProtocolFault(async ({ response, forward }) => {
    const { text } = await forward();
    response.writeHead(200, { ...JSON_HEADERS, "content-length": String(Buffer.byteLength(text)) });
    response.write(text.slice(0, text.length / 2), () => response.destroy());
  }),
  "half of the JSON": anyProtocolFault(async ({ response, forward }) => {
    const { text } = await forward();
    response.writeHead(200, JSON_HEADERS).end(text.slice(0, text.length / 2));
  }),
  "garbage bytes": respondWith(200, Buffer.from(Array.from({ length: 512 }, (_, index) => (index * 97) % 256))),
  "endless body": anyProtocolFault(sendEndlessly),
  "gzip bomb": respondWith(200, gzipBomb, { ...JSON_HEADERS, "content-encoding": "gzip" }),
  "429, Retry-After 1 s": respondWith(429, "{}", { ...JSON_HEADERS, "retry-after": "1" }),
  "429, Retry-After 3 years": respondWith(429, "{}", { ...JSON_HEADERS, "retry-after": "100000000" }),
  "500": respondWith(500, "{}"),
  "HTML with status 200": respondWith(200, "<!doctype html><title>Welcome</title>", { "content-type": "text/html" }),
  "null for everything": transformResults(() => null),
  "values of other types": transformResults(swapTypes),
  "results of other types": jsonRpcFault(transformMethodResults(isNotChainId, swapTypes)),
  "hex of 50,000 bytes": jsonRpcFault(transformMethodResults(isNotChainId, () => longHex)),
  "empty 0x from contracts": jsonRpcFault(
    transformMethodResults(
      (method) => method === "eth_call",
      () => "0x",
    ),
  ),
  "null for every block": jsonRpcFault(
    transformMethodResults(
      (method) => method.startsWith("eth_getBlockBy"),
      () => null,
    ),
  ),
  "another chain": jsonRpcFault(async ({ response, forwardToOtherChain }) => {
    const { status, text } = await forwardToOtherChain();
    response.writeHead(status, JSON_HEADERS).end(text);
  }),
  "lagging head": jsonRpcFault(async ({ response, forward }, rpc) => {
    rpc.behaviour.lagBlocks = LAG_BLOCKS;
    const { status, text } = await forward();
    response.writeHead(status, JSON_HEADERS).end(text);
  }),
  "block number going back": jsonRpcFault(async ({ response, forward }, rpc) => {
    // Every other request is answered as by a lagging node.
    rpc.behaviour.lagBlocks = LAG_BLOCKS - rpc.behaviour.lagBlocks;
    const { status, text } = await forward();
    response.writeHead(status, JSON_HEADERS).end(text);
  }),
  "batch reordered": transformBatches((members) => members.toReversed()),
  "batch with a member missing": transformBatches((members) => members.slice(1)),
  "batch with a member twice": transformBatches((members) => [members[0], ...members.slice(0, -1)]),
  "batch refused": transformBatches(() => BATCH_ERROR, 400),
  "one error for a batch": transformBatches(() => BATCH_ERROR),
} as const satisfies Readonly<Record<string, Fault>>;

export type FaultName = keyof typeof faults;
