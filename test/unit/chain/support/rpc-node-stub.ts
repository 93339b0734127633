import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent } from "undici";
import type { RpcCallResult } from "../../../../src/chain/chain-client.js";
import type { Sleep } from "../../../../src/chain/endpoints/attempts.js";
import type { EndpointFailure } from "../../../../src/chain/endpoints/endpoint.js";
import { EndpointPool, type EndpointPoolOptions } from "../../../../src/chain/endpoints/endpoint-pool.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { readBody, sendJson, startHttpStub } from "../../../support/stubs/http-stub.js";

export interface NodeCall {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

type Member = { readonly result: unknown } | { readonly error: unknown };

/** A JSON-RPC node on a local port whose behaviour can be changed at any time. */
export interface RpcNodeStub {
  readonly url: string;
  chainId: number;
  /** Responds to calls other than those for the chain id and the head. */
  respond: (call: NodeCall) => Member;
  /** Result for the latest block; undefined: an error. */
  head: unknown;
  /** Handles a request instead of the stub; returns whether it did. */
  intercept: (request: { calls: readonly NodeCall[]; isBatch: boolean; response: ServerResponse }) => boolean;
  delayMs: number;
  /** Responses wait for it. */
  ready: Promise<unknown>;
  /** The methods of each HTTP request so far, in order, without reads of the head. */
  readonly requests: string[][];
  /** Number of reads of the head, alone or along with other calls. */
  headRequests: number;
  /** Requests that the client aborted. */
  abortedRequests: number;
}

const dispatcher = new Agent();

export async function startRpcNodeStub(behaviour: Partial<RpcNodeStub> = {}): Promise<RpcNodeStub> {
  const stub = closeAfterTest(await startHttpStub((request, response) => void serve(request, response)));
  const node: RpcNodeStub = {
    url: stub.url,
    chainId: 1,
    respond: () => ({ result: "0x1" }),
    head: undefined,
    intercept: () => false,
    delayMs: 0,
    ready: Promise.resolve(),
    requests: [],
    headRequests: 0,
    abortedRequests: 0,
    ...behaviour,
  };

  function memberOf(call: NodeCall): Member {
    if (call.method === "eth_chainId") return { result: `0x${node.chainId.toString(16)}` };
    if (call.method !== "eth_getBlockByNumber") return node.respond(call);
    return node.head === undefined ? { error: { code: -32000, message: "no head" } } : { result: node.head };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await readBody(request));
    const isBatch = Array.isArray(body);
    const calls: readonly NodeCall[] = isBatch ? body : [body];
    const methods = calls.map(({ method }) => method).filter((method) => method !== "eth_getBlockByNumber");
    const readsHead = methods.length < calls.length;
    if (readsHead) node.headRequests += 1;
    if (!readsHead || methods.some((method) => method !== "eth_chainId")) node.requests.push(methods);
    response.on("close", () => {
      if (!response.writableFinished) node.abortedRequests += 1;
    });
    if (node.intercept({ calls, isBatch, response })) return;
    const answers = calls.map((call) => ({ jsonrpc: "2.0", id: call.id, ...memberOf(call) }));
    await node.ready;
    setTimeout(() => sendJson(response, isBatch ? answers : answers[0]), node.delayMs);
  }

  return node;
}

/** A clock that a test sets. */
export interface ManualClock {
  ms: number;
}

/** The waits before hedges and other attempts, which never end by time: a slow machine must not cause one. */
export interface ManualHedges {
  /** Whether the waits for a hedge that begin from now on end at once. */
  areDue: boolean;
  /** Whether the waits with a late attempt that begin from now on end at once. */
  isPatienceOver: boolean;
  /** The times of all waits for hedges so far. */
  readonly delaysMs: number[];
  readonly sleep: Sleep;
}

export function createManualHedges(): ManualHedges {
  const hedges: ManualHedges = {
    areDue: false,
    isPatienceOver: false,
    delaysMs: [],
    async sleep(ms, signal, purpose) {
      if (purpose === "retry") return;
      if (purpose === "hedge") hedges.delaysMs.push(ms);
      if (signal.aborted || (purpose === "hedge" ? hedges.areDue : hedges.isPatienceOver)) return;
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    },
  };
  return hedges;
}

/** Creates a pool on nodes with a manual clock and manual hedges. No request times out unless a test sets a timeout. */
export function createPoolOn(nodes: readonly RpcNodeStub[], options: Partial<EndpointPoolOptions> = {}) {
  const failures: EndpointFailure[] = [];
  const clock: ManualClock = { ms: 1_000_000 };
  const hedges = createManualHedges();
  const pool = new EndpointPool({
    slug: "optimism",
    chainId: 1,
    urls: nodes.map(({ url }) => `${url}/secret-key`),
    dispatcher,
    callerTimeoutMs: 60_000,
    maxBytes: 10_000,
    onFailure: (failure) => failures.push(failure),
    closing: new AbortController().signal,
    now: () => clock.ms,
    random: () => 0,
    sleep: hedges.sleep,
    ...options,
  });
  const { client } = pool;
  const never = new AbortController().signal;
  return {
    pool,
    client,
    failures,
    clock,
    hedges,
    send: (method = "eth_call", signal: AbortSignal = never): Promise<unknown> => client.send(method, [], signal),
    batch: (...methods: string[]): Promise<readonly RpcCallResult[]> =>
      client.sendBatch(
        methods.map((method) => ({ method, params: [] })),
        never,
      ),
  };
}

export const UNAVAILABLE_ERROR = {
  reason: "UPSTREAM_UNAVAILABLE",
  message: "no RPC endpoint of optimism responded",
};
