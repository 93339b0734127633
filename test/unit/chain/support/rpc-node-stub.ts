import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent } from "undici";
import { vi } from "vitest";
import type { LogSearch, LogsResult, RpcCallResult } from "../../../../src/chain/chain-client.js";
import type { Sleep } from "../../../../src/chain/endpoints/attempts.js";
import type { EndpointFailure } from "../../../../src/chain/endpoints/endpoint.js";
import { EndpointPool, type EndpointPoolOptions } from "../../../../src/chain/endpoints/endpoint-pool.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { readBody, sendJson, startHttpStub } from "../../../support/stubs/http-stub.js";
import { logFilter } from "./log-chain-stub.js";

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

type Intercept = RpcNodeStub["intercept"];

/** What nodes do to a request instead of answering it. */
export const hang: Intercept = () => true;
export const healthy: Intercept = () => false;
export const answerStatus =
  (status: number, headers = {}): Intercept =>
  ({ response }) =>
    Boolean(response.writeHead(status, headers).end("{}"));
export const down = answerStatus(500);
export const disconnect: Intercept = ({ response }) => Boolean(response.destroy());
export const answerJson =
  (body: unknown): Intercept =>
  ({ response }) => {
    sendJson(response, body);
    return true;
  };

/** Nodes that answer each call by this result or error. */
export const returning = (result: unknown) => ({ respond: () => ({ result }) });
export const rejecting = (error: unknown) => ({ respond: () => ({ error }) });

/** Returns the methods that a node was asked for, without those for the chain id and the head. */
export const callsTo = (node: RpcNodeStub): string[] =>
  node.requests.flat().filter((method) => method !== "eth_chainId");

/** Holds back the responses of nodes. Returns the function that sends them. */
export function holdResponses(...nodes: readonly RpcNodeStub[]): () => void {
  let respond = (): void => {};
  const ready = new Promise<void>((resolve) => {
    respond = resolve;
  });
  for (const node of nodes) node.ready = ready;
  return respond;
}

/** Resolves when a test's condition holds, however long that takes. */
export const until = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 60_000, interval: 5 });

const dispatcher = new Agent();
export const never = new AbortController().signal;

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

/** The waits before hedges and other attempts, which never end by time: a slow machine must not cause one. */
interface ManualHedges {
  /** Whether the waits for a hedge that begin from now on end at once. */
  areDue: boolean;
  /** Whether the waits with a late attempt that begin from now on end at once. */
  isPatienceOver: boolean;
  /** The times of all waits for hedges so far. */
  readonly delaysMs: number[];
  readonly sleep: Sleep;
}

function createManualHedges(): ManualHedges {
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
  /** A clock that a test sets. */
  const clock = { ms: 1_000_000 };
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
  return {
    ...{ pool, client, failures, clock, hedges },
    states: () => pool.state().endpoints.map(({ state }) => state),
    send: (method = "eth_call", signal: AbortSignal = never): Promise<unknown> => client.send(method, [], signal),
    batch: (...methods: string[]): Promise<readonly RpcCallResult[]> =>
      client.sendBatch(
        methods.map((method) => ({ method, params: [] })),
        never,
      ),
    getLogs: (search: Pick<LogSearch, "range"> & Partial<LogSearch>, signal = never): Promise<LogsResult | undefined> =>
      client.getLogs({ filter: logFilter, ...search }, signal),
  };
}

/** Starts nodes that differ from the default in their behaviour, and creates a pool on them. */
export async function startPool<const T extends readonly Partial<RpcNodeStub>[]>(
  behaviours: T,
  options: Partial<EndpointPoolOptions> = {},
) {
  const nodes: readonly RpcNodeStub[] = await Promise.all(behaviours.map((behaviour) => startRpcNodeStub(behaviour)));
  return { ...createPoolOn(nodes, options), nodes: nodes as unknown as { [K in keyof T]: RpcNodeStub } };
}

export const UNAVAILABLE_ERROR = {
  reason: "UPSTREAM_UNAVAILABLE",
  message: "no RPC endpoint of optimism responded",
};
