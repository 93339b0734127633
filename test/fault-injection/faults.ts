import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Exchange, Fault } from "./fault-proxy.js";

// The ways of upstreams to be unwell, by the names under which outcomes.ts says what is to come of each.

const latencyMs = 150;
const dripMs = 100;
/** Blocks that a node is behind: what the tests ask for is older. */
const lagBlocks = 2;
const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024, "["));
const manyBytes = Buffer.alloc(1024 * 1024, "[");
const endlessMs = 15;
const json = { "content-type": "application/json" };
const longHex = `0x${"f".repeat(100_000)}`;

type Treat = NonNullable<Fault["treat"]>;
const anywhere = (treat: Fault["treat"]): Fault => ({ isRpcOnly: false, treat });
const rpcOnly = (treat: Treat): Fault => ({ isRpcOnly: true, treat });

/** Answers with a status, a body and headers. */
const answering = (status: number, body: string | Buffer, headers: Readonly<Record<string, string>> = json): Fault =>
  anywhere(({ response }) => {
    response.writeHead(status, headers).end(body);
  });

interface Member {
  readonly id?: unknown;
  readonly result?: unknown;
}

/** Answers with what the upstream says, changed: the document, or each member of a JSON-RPC answer. */
function saying(change: (member: unknown) => unknown): Fault {
  return anywhere(async ({ body, response, forward }) => {
    const { status, text } = await forward();
    const answer = JSON.parse(text) as unknown;
    const changed = body === "" ? change(answer) : inMembers(answer, (member) => ({ result: change(member.result) }));
    response.writeHead(status, json).end(JSON.stringify(changed));
  });
}

/** Answers JSON-RPC with what the node says, but for the results of some methods. */
function results(isSpoilt: (method: string) => boolean, change: (result: unknown) => unknown): Treat {
  return async ({ body, response, forward }) => {
    const calls = [JSON.parse(body)].flat() as { id: unknown; method: string }[];
    const spoilt = new Set(calls.filter(({ method }) => isSpoilt(method)).map(({ id }) => id));
    const answer = JSON.parse((await forward()).text) as unknown;
    const changed = inMembers(answer, ({ id, result }) => ({ result: spoilt.has(id) ? change(result) : result }));
    response.writeHead(200, json).end(JSON.stringify(changed));
  };
}

/** Were that wrong, all else would be looked at no more. */
const notItsChain = (method: string): boolean => method !== "eth_chainId";

function inMembers(answer: unknown, change: (member: Member) => Member): unknown {
  const changed = (member: Member): Member => ({ ...member, ...change(member) });
  return Array.isArray(answer) ? answer.map(changed) : changed(answer as Member);
}

/** Answers batches with another list, and all else well. */
function batches(change: (members: readonly unknown[]) => unknown, status = 200): Fault {
  return rpcOnly(async ({ response, forward }) => {
    const { text } = await forward();
    const answer = JSON.parse(text) as unknown;
    const isBatch = Array.isArray(answer);
    response.writeHead(isBatch ? status : 200, json).end(JSON.stringify(isBatch ? change(answer) : answer));
  });
}

/** What has another type than it should, whatever it is. */
function ofOtherTypes(value: unknown): unknown {
  if (value === null || typeof value === "boolean") return { value };
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return value.length;
  if (Array.isArray(value)) return value.map(ofOtherTypes);
  return Object.fromEntries(Object.entries(value as object).map(([name, each]) => [name, ofOtherTypes(each)]));
}

async function drip({ response, forward }: Exchange): Promise<void> {
  const { text } = await forward();
  response.writeHead(200, json);
  for (const character of text) {
    if (response.destroyed) return;
    response.write(character);
    await sleep(dripMs);
  }
  response.end();
}

function endless({ response }: Exchange): void {
  response.writeHead(200, json);
  // As fast as a network, so that the machine has time for the others.
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(manyBytes);
  }, endlessMs);
  response.on("close", () => clearInterval(timer));
}

const batchRefused = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "batches are not served" } };

export const faults = {
  latency: anywhere(async ({ response, forward }) => {
    const { status, text } = await forward();
    await sleep(latencyMs);
    response.writeHead(status, json).end(text);
  }),
  hang: anywhere(() => {}),
  "connection refused": anywhere(undefined),
  "connection reset": anywhere(({ response }) => {
    response.socket?.resetAndDestroy();
  }),
  "slow drip": anywhere(drip),
  "truncated body": anywhere(async ({ response, forward }) => {
    const { text } = await forward();
    response.writeHead(200, { ...json, "content-length": String(Buffer.byteLength(text)) });
    response.write(text.slice(0, text.length / 2), () => response.destroy());
  }),
  "half of the JSON": anywhere(async ({ response, forward }) => {
    const { text } = await forward();
    response.writeHead(200, json).end(text.slice(0, text.length / 2));
  }),
  "garbage bytes": answering(200, Buffer.from(Array.from({ length: 512 }, (_, index) => (index * 97) % 256))),
  "endless body": anywhere(endless),
  "gzip bomb": answering(200, bomb, { ...json, "content-encoding": "gzip" }),
  "429, Retry-After 1 s": answering(429, "{}", { ...json, "retry-after": "1" }),
  "429, Retry-After 3 years": answering(429, "{}", { ...json, "retry-after": "100000000" }),
  "500": answering(500, "{}"),
  "HTML with status 200": answering(200, "<!doctype html><title>Welcome</title>", { "content-type": "text/html" }),
  "null for everything": saying(() => null),
  "values of other types": saying(ofOtherTypes),
  "results of other types": rpcOnly(results(notItsChain, ofOtherTypes)),
  "hex of 50,000 bytes": rpcOnly(results(notItsChain, () => longHex)),
  "empty 0x from contracts": rpcOnly(
    results(
      (method) => method === "eth_call",
      () => "0x",
    ),
  ),
  "null for every block": rpcOnly(
    results(
      (method) => method.startsWith("eth_getBlockBy"),
      () => null,
    ),
  ),
  "another chain": rpcOnly(async ({ response, forwardElsewhere }) => {
    const { status, text } = await forwardElsewhere();
    response.writeHead(status, json).end(text);
  }),
  "lagging head": rpcOnly(async ({ response, forward }, rpc) => {
    rpc.behaviour.lagBlocks = lagBlocks;
    const { status, text } = await forward();
    response.writeHead(status, json).end(text);
  }),
  "block number going back": rpcOnly(async ({ response, forward }, rpc) => {
    // Every other request is answered as by a node that is behind.
    rpc.behaviour.lagBlocks = lagBlocks - rpc.behaviour.lagBlocks;
    const { status, text } = await forward();
    response.writeHead(status, json).end(text);
  }),
  "batch reordered": batches((members) => members.toReversed()),
  "batch with a member missing": batches((members) => members.slice(1)),
  "batch with a member twice": batches((members) => [members[0], ...members.slice(0, -1)]),
  "batch refused": batches(() => batchRefused, 400),
  "one error for a batch": batches(() => batchRefused),
} as const satisfies Readonly<Record<string, Fault>>;

export type FaultName = keyof typeof faults;
