import { setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request as send } from "undici";
import { readBody } from "./http-stub.js";
import {
  BATCH_ERROR,
  clampBlocks,
  type ProxiedCall,
  parseCalls,
  parseJson,
  type ReplaceResult,
  replaceResults,
} from "./rpc-messages.js";

/** How the proxy treats requests; may be changed at any time. */
export interface RpcProxyBehaviour {
  /** Additional latency of every response, in milliseconds. */
  latencyMs: number;
  /** Every response waits for it; undefined: none waits. */
  answersAfter: Promise<unknown> | undefined;
  /** Replaces the node's result or error of single calls; undefined: it is kept. */
  override: ReplaceResult | undefined;
  /** HTTP status with which batches are rejected, with one error object instead of a list; undefined: they are accepted. */
  batchErrorStatus: number | undefined;
  /** Leaves requests unanswered until the proxy is closed. */
  isHanging: boolean;
  /** HTTP status of an empty response to every request; undefined: the node answers. */
  errorStatus: number | undefined;
  /** Maximum blocks of an `eth_getLogs`; wider ranges get a JSON-RPC error. */
  maxLogBlocks: number | undefined;
  /** Whether that error names the maximum. */
  namesLogLimit: boolean;
  /** Number of latest blocks that the proxy hides. */
  lagBlocks: number;
  /** The newest block that the proxy shows: it stands there; undefined: it follows the node. */
  standsAt: number | undefined;
}

/** One HTTP request, with times of `performance.now()`. */
export interface ProxiedRequest {
  readonly arrivedAt: number;
  /** When the response was sent; undefined: not yet, or never. */
  readonly answeredAt: number | undefined;
  /** Empty if the request is not JSON-RPC. */
  readonly calls: readonly ProxiedCall[];
}

/** Proxy of one JSON-RPC node that counts requests. Other requests are forwarded and counted too. */
export interface RpcProxy {
  readonly url: string;
  readonly behaviour: RpcProxyBehaviour;
  /** The HTTP requests since the start or the last reset, in order of arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** Returns the number of JSON-RPC calls by method since then; each call of a batch counts. */
  calls(): ReadonlyMap<string, number>;
  /** Forgets all requests. */
  reset(): void;
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 64;

/**
 * Starts a proxy on 127.0.0.1.
 * @param target URL of the node; paths are kept if it has none
 */
export async function startRpcProxy(target: string, options: Partial<RpcProxyBehaviour> = {}): Promise<RpcProxy> {
  const behaviour: RpcProxyBehaviour = {
    latencyMs: 0,
    answersAfter: undefined,
    override: undefined,
    batchErrorStatus: undefined,
    isHanging: false,
    errorStatus: undefined,
    maxLogBlocks: undefined,
    namesLogLimit: true,
    lagBlocks: 0,
    standsAt: undefined,
    ...options,
  };
  const requests: ProxiedRequest[] = [];
  const agent = new Agent({ connections: MAX_CONNECTIONS });
  const closing = new AbortController();
  // Every delayed request listens.
  setMaxListeners(0, closing.signal);

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = performance.now();
    const body = await readBody(incoming);
    const message = incoming.method === "POST" ? parseJson(body) : undefined;
    const calls = parseCalls(message);
    const proxied: { -readonly [K in keyof ProxiedRequest]: ProxiedRequest[K] } = {
      arrivedAt,
      answeredAt: undefined,
      calls,
    };
    requests.push(proxied);
    if (behaviour.isHanging) return;
    const answer = await createResponse(incoming, message, body);
    if (behaviour.latencyMs > 0) await sleep(behaviour.latencyMs, undefined, { signal: closing.signal });
    await behaviour.answersAfter;
    proxied.answeredAt = performance.now();
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
  }

  async function createResponse(incoming: IncomingMessage, message: unknown, body: string) {
    const { override, errorStatus, batchErrorStatus } = behaviour;
    if (errorStatus !== undefined) return { status: errorStatus, body: "" };
    if (batchErrorStatus !== undefined && Array.isArray(message)) {
      return { status: batchErrorStatus, body: JSON.stringify(BATCH_ERROR) };
    }
    const { method = "GET", url = "/" } = incoming;
    const address = url === "/" ? target : new URL(url, target);
    const { maxLogBlocks, lagBlocks, standsAt = Number.POSITIVE_INFINITY } = behaviour;
    const hidesBlocks = lagBlocks > 0 || standsAt !== Number.POSITIVE_INFINITY;
    const isPartial = message !== undefined && (maxLogBlocks !== undefined || hidesBlocks);
    const head = isPartial ? Math.min((await readHead(address)) - lagBlocks, standsAt) : undefined;
    const received = await send(address, {
      dispatcher: agent,
      method: method as "GET" | "POST",
      signal: closing.signal,
      ...(method === "POST"
        ? {
            headers: { "content-type": "application/json" },
            body: head === undefined || !hidesBlocks ? body : JSON.stringify(clampBlocks(head, message)),
          }
        : {}),
    });
    const text = await received.body.text();
    const isChanged = (override !== undefined || isPartial) && message !== undefined;
    const change: ReplaceResult = (call, result) =>
      override?.(call, result) ?? (head === undefined ? undefined : limitResult(call, result, { head, hidesBlocks }));
    return { status: received.statusCode, body: isChanged ? replaceResults(text, message, change) : text };
  }

  async function readHead(address: string | URL): Promise<number> {
    const received = await send(address, {
      dispatcher: agent,
      method: "POST",
      signal: closing.signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }),
    });
    return Number(((await received.body.json()) as { result: string }).result);
  }

  /** Returns what a node with that head and log limit answers instead; undefined: the result is kept. */
  function limitResult(
    { method, params }: ProxiedCall,
    result: unknown,
    { head, hidesBlocks }: { readonly head: number; readonly hidesBlocks: boolean },
  ): ReturnType<ReplaceResult> {
    const { maxLogBlocks, namesLogLimit } = behaviour;
    if (method === "eth_getLogs") {
      const { fromBlock, toBlock } = params[0] as { fromBlock?: string; toBlock?: string };
      const [from, to] = [fromBlock, toBlock].map((block) => (block?.startsWith("0x") ? Number(block) : head));
      if (from === undefined || to === undefined) return undefined;
      if (maxLogBlocks !== undefined && to - from >= maxLogBlocks) {
        const limit = namesLogLimit ? `: at most ${maxLogBlocks} blocks are served` : "";
        return { error: { code: -32005, message: `block range is too wide${limit}` } };
      }
      return hidesBlocks && from > head ? { result: [] } : undefined;
    }
    // Without a lag the node may have newer blocks since its head was read.
    if (!hidesBlocks) return undefined;
    const [, block] = params;
    if (method === "eth_call" && typeof block === "string" && Number(block) > head)
      return { error: { code: -32000, message: "header not found" } };
    if (method === "eth_blockNumber") return { result: `0x${head.toString(16)}` };
    const { number, blockNumber = number } = (result ?? {}) as { number?: string; blockNumber?: string };
    return blockNumber !== undefined && Number(blockNumber) > head ? { result: null } : undefined;
  }

  const server = createServer((incoming, response) => {
    // The node or the caller is gone, or the proxy closes.
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

/** Starts a proxy in front of every chain. Returns them by slug. */
export async function startRpcProxies(
  chains: Readonly<Record<string, { readonly url: string }>>,
): Promise<ReadonlyMap<string, RpcProxy>> {
  const started = Object.entries(chains).map(async ([slug, { url }]) => [slug, await startRpcProxy(url)] as const);
  return new Map(await Promise.all(started));
}

/** Returns the environment in which these are the endpoints of their chains. */
export function toRpcEnvironment(endpoints: Iterable<readonly [string, { readonly url: string }]>) {
  return Object.fromEntries([...endpoints].map(([slug, { url }]) => [`RPC_URL_${slug.toUpperCase()}`, url]));
}

/**
 * Returns the largest number of requests each of which arrived after the one before was answered. Requests sent at the
 * same time count as one only if responses take longer than sending: set a latency.
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
