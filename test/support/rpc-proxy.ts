import { setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request as send } from "undici";

/** One JSON-RPC call, be it alone or in a batch. */
export interface ProxiedCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** How the proxy treats what comes; may be changed at any time. */
export interface RpcBehaviour {
  /** Time that every answer takes beside the node's own, in milliseconds. */
  latencyMs: number;
  /** Takes the place of the node's result or error of single calls; undefined: the node's stands. */
  answer: ((call: ProxiedCall) => { readonly result: unknown } | { readonly error: unknown } | undefined) | undefined;
  /** HTTP status with which batches are refused, by one error object and not a list; undefined: they are taken. */
  refuseBatches: number | undefined;
  /** Leaves requests without an answer until it is closed. */
  hang: boolean;
  /** HTTP status of an empty answer to everything; undefined: the node answers. */
  failWith: number | undefined;
}

/** One HTTP request that came, times as of `performance.now()`. */
export interface ProxiedRequest {
  readonly arrivedAt: number;
  /** When its answer went out; undefined: not yet, or never. */
  readonly answeredAt: number | undefined;
  /** Empty for what is no JSON-RPC. */
  readonly calls: readonly ProxiedCall[];
}

/** Stands in front of one JSON-RPC node and counts. What is no JSON-RPC passes and counts as a request too. */
export interface RpcProxy {
  readonly url: string;
  readonly behaviour: RpcBehaviour;
  /** The HTTP requests since the start or the last reset, in the order of their arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** JSON-RPC calls since then by method, those in batches counted each. */
  calls(): ReadonlyMap<string, number>;
  /** Forgets what came so far. */
  reset(): void;
  close(): Promise<void>;
}

const connections = 64;
const batchRefused = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "batches are not served" } };

/** Starts a proxy on 127.0.0.1. @param target URL of the node; without a path, paths are kept. */
export async function startRpcProxy(target: string, options: Partial<RpcBehaviour> = {}): Promise<RpcProxy> {
  const behaviour: RpcBehaviour = {
    latencyMs: 0,
    answer: undefined,
    refuseBatches: undefined,
    hang: false,
    failWith: undefined,
    ...options,
  };
  const requests: ProxiedRequest[] = [];
  const agent = new Agent({ connections });
  const closing = new AbortController();
  // Every request that is held back listens.
  setMaxListeners(0, closing.signal);

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = performance.now();
    const body = await readAll(incoming);
    const message = incoming.method === "POST" ? parse(body) : undefined;
    const calls = callsOf(message);
    const seen: { -readonly [K in keyof ProxiedRequest]: ProxiedRequest[K] } = {
      arrivedAt,
      answeredAt: undefined,
      calls,
    };
    requests.push(seen);
    if (behaviour.hang) return;
    const answer = await answerTo(incoming, message, body);
    if (behaviour.latencyMs > 0) await sleep(behaviour.latencyMs, undefined, { signal: closing.signal });
    seen.answeredAt = performance.now();
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
  }

  async function answerTo(incoming: IncomingMessage, message: unknown, body: Buffer) {
    const { answer, failWith, refuseBatches } = behaviour;
    if (failWith !== undefined) return { status: failWith, body: "" };
    if (refuseBatches !== undefined && Array.isArray(message)) {
      return { status: refuseBatches, body: JSON.stringify(batchRefused) };
    }
    const { method = "GET", url = "/" } = incoming;
    const received = await send(url === "/" ? target : new URL(url, target), {
      dispatcher: agent,
      method: method as "GET" | "POST",
      signal: closing.signal,
      ...(method === "POST" ? { headers: { "content-type": "application/json" }, body } : {}),
    });
    const text = await received.body.text();
    const isChanged = answer !== undefined && message !== undefined;
    return { status: received.statusCode, body: isChanged ? replaced(text, message, answer) : text };
  }

  const server = createServer((incoming, response) => {
    // A node or caller that is gone, or our end: the connection's end says it.
    serve(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behaviour,
    requests,
    calls() {
      const counts = new Map<string, number>();
      for (const { method } of requests.flatMap(({ calls }) => calls))
        counts.set(method, (counts.get(method) ?? 0) + 1);
      return counts;
    },
    reset() {
      requests.length = 0;
    },
    async close() {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await Promise.all([closed, agent.destroy()]);
    },
  };
}

/**
 * Sequential waves: the most requests of which each came after the one before was answered. Requests that are sent at the
 * same time count as one only where answers take longer than sending: set a latency.
 */
export function roundsOf(requests: readonly ProxiedRequest[]): number {
  const answered = requests.flatMap(({ arrivedAt, answeredAt }) =>
    answeredAt === undefined ? [] : [{ arrivedAt, answeredAt }],
  );
  let rounds = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const { arrivedAt, answeredAt } of answered.sort((a, b) => a.answeredAt - b.answeredAt)) {
    if (arrivedAt < end) continue;
    rounds += 1;
    end = answeredAt;
  }
  return rounds;
}

async function readAll(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return undefined;
  }
}

type Numbered = ProxiedCall & { readonly id: unknown };

function callsOf(message: unknown): Numbered[] {
  if (message === undefined) return [];
  const members = (Array.isArray(message) ? message : [message]) as {
    id: unknown;
    method: string;
    params?: unknown[];
  }[];
  return members.map(({ id, method, params = [] }) => ({ id, method, params }));
}

/** The node's answer with the members that `answer` wants otherwise. */
function replaced(text: string, message: unknown, answer: NonNullable<RpcBehaviour["answer"]>): string {
  const overrides = new Map(callsOf(message).map((call) => [call.id, answer(call)]));
  const parsed = JSON.parse(text) as { id: unknown } | { id: unknown }[];
  const replace = (member: { id: unknown }): unknown => {
    const override = overrides.get(member.id);
    return override === undefined ? member : { jsonrpc: "2.0", id: member.id, ...override };
  };
  return JSON.stringify(Array.isArray(parsed) ? parsed.map(replace) : replace(parsed));
}
