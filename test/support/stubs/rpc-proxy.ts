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
export interface RpcProxyBehaviour {
  /** Time that every answer takes beside the node's own, in milliseconds. */
  latencyMs: number;
  /** Takes the place of the node's result or error of single calls; undefined: the node's stands. */
  override: ((call: ProxiedCall) => { readonly result: unknown } | { readonly error: unknown } | undefined) | undefined;
  /** HTTP status with which batches are refused, by one error object and not a list; undefined: they are taken. */
  batchErrorStatus: number | undefined;
  /** Leaves requests without an answer until it is closed. */
  isHanging: boolean;
  /** HTTP status of an empty answer to everything; undefined: the node answers. */
  errorStatus: number | undefined;
  /** Most blocks of an `eth_getLogs`; wider ones are refused by a JSON-RPC error. */
  maxLogBlocks: number | undefined;
  /** Whether that error says how many they may be. */
  namesLogLimit: boolean;
  /** By how many blocks it is behind the node: what is in these is not there yet. */
  lagBlocks: number;
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
  readonly behaviour: RpcProxyBehaviour;
  /** The HTTP requests since the start or the last reset, in the order of their arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** JSON-RPC calls since then by method, those in batches counted each. */
  calls(): ReadonlyMap<string, number>;
  /** Forgets what came so far. */
  reset(): void;
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 64;
const BATCH_REFUSED = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "batches are not served" } };

/** Starts a proxy on 127.0.0.1. @param target URL of the node; without a path, paths are kept. */
export async function startRpcProxy(target: string, options: Partial<RpcProxyBehaviour> = {}): Promise<RpcProxy> {
  const behaviour: RpcProxyBehaviour = {
    latencyMs: 0,
    override: undefined,
    batchErrorStatus: undefined,
    isHanging: false,
    errorStatus: undefined,
    maxLogBlocks: undefined,
    namesLogLimit: true,
    lagBlocks: 0,
    ...options,
  };
  const requests: ProxiedRequest[] = [];
  const agent = new Agent({ connections: MAX_CONNECTIONS });
  const closing = new AbortController();
  // Every request that is held back listens.
  setMaxListeners(0, closing.signal);

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = performance.now();
    const body = await readBytes(incoming);
    const message = incoming.method === "POST" ? parseJson(body) : undefined;
    const calls = parseCalls(message);
    const seen: { -readonly [K in keyof ProxiedRequest]: ProxiedRequest[K] } = {
      arrivedAt,
      answeredAt: undefined,
      calls,
    };
    requests.push(seen);
    if (behaviour.isHanging) return;
    const answer = await answerTo(incoming, message, body);
    if (behaviour.latencyMs > 0) await sleep(behaviour.latencyMs, undefined, { signal: closing.signal });
    seen.answeredAt = performance.now();
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
  }

  async function answerTo(incoming: IncomingMessage, message: unknown, body: Buffer) {
    const { override, errorStatus, batchErrorStatus } = behaviour;
    if (errorStatus !== undefined) return { status: errorStatus, body: "" };
    if (batchErrorStatus !== undefined && Array.isArray(message)) {
      return { status: batchErrorStatus, body: JSON.stringify(BATCH_REFUSED) };
    }
    const { method = "GET", url = "/" } = incoming;
    const address = url === "/" ? target : new URL(url, target);
    const isPartial = message !== undefined && (behaviour.maxLogBlocks !== undefined || behaviour.lagBlocks > 0);
    const head = isPartial ? (await headOf(address)) - behaviour.lagBlocks : undefined;
    const received = await send(address, {
      dispatcher: agent,
      method: method as "GET" | "POST",
      signal: closing.signal,
      ...(method === "POST"
        ? {
            headers: { "content-type": "application/json" },
            body: head === undefined || behaviour.lagBlocks === 0 ? body : JSON.stringify(clampBlocks(head, message)),
          }
        : {}),
    });
    const text = await received.body.text();
    const isChanged = (override !== undefined || isPartial) && message !== undefined;
    const change: ReplaceResult = (call, result) =>
      override?.(call) ?? (head === undefined ? undefined : partOf(call, result, head));
    return { status: received.statusCode, body: isChanged ? replaceResults(text, message, change) : text };
  }

  async function headOf(address: string | URL): Promise<number> {
    const received = await send(address, {
      dispatcher: agent,
      method: "POST",
      signal: closing.signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }),
    });
    return Number(((await received.body.json()) as { result: string }).result);
  }

  /** What of a result there is on a node with that head that gives few blocks of logs; undefined: all of it. */
  function partOf({ method, params }: ProxiedCall, result: unknown, head: number): ReturnType<ReplaceResult> {
    const { maxLogBlocks, namesLogLimit, lagBlocks } = behaviour;
    if (method === "eth_getLogs") {
      const { fromBlock, toBlock } = params[0] as { fromBlock?: string; toBlock?: string };
      const [from, to] = [fromBlock, toBlock].map((block) => (block?.startsWith("0x") ? Number(block) : head));
      if (from === undefined || to === undefined) return undefined;
      if (maxLogBlocks !== undefined && to - from >= maxLogBlocks) {
        const limit = namesLogLimit ? `: at most ${maxLogBlocks} blocks are served` : "";
        return { error: { code: -32005, message: `block range is too wide${limit}` } };
      }
      return lagBlocks > 0 && from > head ? { result: [] } : undefined;
    }
    // Without a lag the node may have got on since its head was read.
    if (lagBlocks === 0) return undefined;
    if (method === "eth_blockNumber") return { result: `0x${head.toString(16)}` };
    const { number, blockNumber = number } = (result ?? {}) as { number?: string; blockNumber?: string };
    return blockNumber !== undefined && Number(blockNumber) > head ? { result: null } : undefined;
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
export function countSequentialRounds(requests: readonly ProxiedRequest[]): number {
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

async function readBytes(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return undefined;
  }
}

type IdentifiedCall = ProxiedCall & { readonly id: unknown };

function parseCalls(message: unknown): IdentifiedCall[] {
  if (message === undefined) return [];
  const members = (Array.isArray(message) ? message : [message]) as {
    id: unknown;
    method: string;
    params?: unknown[];
  }[];
  return members.map(({ id, method, params = [] }) => ({ id, method, params }));
}

/** A message with no block in it that comes after a head. */
function clampBlocks(head: number, message: unknown): unknown {
  const latest = `0x${Math.max(head, 0).toString(16)}`;
  const reach = (param: unknown): unknown => {
    if (param === "latest") return latest;
    const { toBlock } = (param ?? {}) as { toBlock?: string };
    if (toBlock === undefined) return param;
    const isLater = !toBlock.startsWith("0x") || Number(toBlock) > head;
    return isLater ? { ...(param as object), toBlock: latest } : param;
  };
  const change = (call: { params?: unknown[] }): unknown => ({ ...call, params: (call.params ?? []).map(reach) });
  return Array.isArray(message) ? message.map(change) : change(message as { params?: unknown[] });
}

/** What takes the place of a call's result; undefined: it stands. */
type ReplaceResult = (
  call: ProxiedCall,
  result: unknown,
) => { readonly result: unknown } | { readonly error: unknown } | undefined;

/** The node's answer with the members that are wanted otherwise. */
function replaceResults(text: string, message: unknown, change: ReplaceResult): string {
  const calls = new Map(parseCalls(message).map((call) => [call.id, call]));
  const parsed = JSON.parse(text) as RpcResponseMember | RpcResponseMember[];
  const replace = (member: RpcResponseMember): unknown => {
    const call = calls.get(member.id);
    const changed = call && change(call, member.result);
    return changed === undefined ? member : { jsonrpc: "2.0", id: member.id, ...changed };
  };
  return JSON.stringify(Array.isArray(parsed) ? parsed.map(replace) : replace(parsed));
}

interface RpcResponseMember {
  readonly id: unknown;
  readonly result?: unknown;
}
