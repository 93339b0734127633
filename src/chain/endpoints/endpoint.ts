import { unescape as decode } from "node:querystring";
import type { Dispatcher } from "undici";
import { fetchJson } from "../../resilience/fetch-json.js";
import { UpstreamError, type UpstreamErrorKind } from "../../resilience/upstream-error.js";
import { getResult, type RpcCall, type RpcOutcome } from "../chain-client.js";
import {
  encodeRequest,
  InvalidResultError,
  isBatchRejected,
  parseBatchResponse,
  parseResponse,
  RpcError,
} from "../json-rpc/rpc-codec.js";
import { deriveEndpointId, deriveEndpointName } from "./endpoint-id.js";

/** One RPC endpoint of a chain. */
export interface Endpoint {
  /** Its name for logs, without anything secret. */
  readonly name: string;
  /** The part of it that anybody may know. */
  readonly id: string;
  /**
   * Calls methods, in one HTTP request where the endpoint takes batches, and gives their outcomes in order. Nothing
   * is given out unless the endpoint has named the right chain just now: it is asked for it along with the calls.
   * @throws ExchangeError when there is no answer to believe to each of them.
   */
  sendBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]>;
}

/** One HTTP request to an endpoint. */
export interface EndpointRequest {
  /** Digits of the endpoint. */
  readonly endpoint: string;
  /** The method; `batch` where there are several calls. */
  readonly method: string;
  readonly calls: number;
}

export type EndpointRequestOutcome = "ok" | UpstreamErrorKind;

/** Told of each request that goes out; what it gives is told, once, how that ended. */
export type EndpointRequestObserver<Exchange = EndpointRequest> = (
  exchange: Exchange,
) => (outcome: EndpointRequestOutcome) => void;

export interface EndpointOptions {
  readonly url: string;
  /** What `eth_chainId` must answer. */
  readonly chainId: number;
  readonly dispatcher: Dispatcher;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  readonly now: () => number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
}

/** After which time a batch of a size that was refused is tried again. */
const BATCH_RETRY_MS = 10 * 60_000;
/** The same where a server error may have been meant so, or have been just that. */
const UNCERTAIN_BATCH_RETRY_MS = 30_000;
/** After so many server errors in a row, batches that once went well are taken to be refused. */
const MAX_CONSECUTIVE_SERVER_ERRORS = 3;
/** Most requests at a time in place of a batch. */
const MAX_PARALLEL_REQUESTS = 16;
/** How long its word on which chain it serves stands, unless it fails: behind one address may be several nodes. */
const CHAIN_ID_TTL_MS = 250;
/** For how long an endpoint of another chain is left alone. */
const WRONG_CHAIN_COOLDOWN_MS = 30_000;

const CHAIN_ID_CALL: RpcCall = { method: "eth_chainId", params: [] };

export function createEndpoint({
  url,
  chainId,
  dispatcher,
  maxBytes,
  now,
  onEndpointRequest,
}: EndpointOptions): Endpoint {
  const address = extractBasicAuth(url);
  const id = deriveEndpointId(url);
  let lastId = 0;
  /** When it was asked last which chain it serves, and named the right one. */
  let verifiedAt = Number.NEGATIVE_INFINITY;
  let wasVerified = false;
  /** Most calls that went well in one batch. */
  let largestBatch = 1;
  let refused: { readonly size: number; readonly at: number; readonly ms: number } | undefined;
  /** For how long the last refusal counts. */
  let refusalMs = BATCH_RETRY_MS;
  /** Batches in a row that were answered with a server error. */
  let serverErrors = 0;

  /**
   * Sends calls in one HTTP request.
   * @param read makes of the answer what is wanted of it; undefined: the endpoint refuses them all
   */
  async function post<T>(
    calls: readonly RpcCall[],
    signal: AbortSignal,
    read: (answer: unknown, firstId: number) => T,
  ): Promise<T> {
    const firstId = lastId + 1;
    lastId += calls.length;
    const body = encodeRequest(calls, firstId);
    const method = calls.length === 1 ? (calls[0]?.method ?? "") : "batch";
    const ended = onEndpointRequest?.({ endpoint: id, method, calls: calls.length });
    let outcome: EndpointRequestOutcome = "invalid_response";
    try {
      const answer = await fetchJson(address.url, { ...address.headers, dispatcher, maxBytes, signal, body });
      const found = read(answer, firstId);
      outcome = found === undefined ? "rpc_error" : "ok";
      return found;
    } catch (error) {
      if (error instanceof UpstreamError) outcome = error.kind;
      throw error;
    } finally {
      ended?.(outcome);
    }
  }

  /** @throws ExchangeError where the first call is the one for the chain's id, and another chain is named */
  function checkChain([call]: readonly RpcCall[], [outcome]: readonly RpcOutcome[]): void {
    if (call !== CHAIN_ID_CALL || Number(getResult(outcome)) === chainId) return;
    throw new UpstreamError("serves another chain", { kind: "wrong_chain", retryAfterMs: WRONG_CHAIN_COOLDOWN_MS });
  }

  function single(call: RpcCall, signal: AbortSignal): Promise<RpcOutcome> {
    return post([call], signal, (answer, firstId) => {
      const outcome = parseResponse(answer, call, firstId);
      checkChain([call], [outcome]);
      return outcome;
    });
  }

  async function singles(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]> {
    const outcomes: RpcOutcome[] = [];
    const queue = calls.entries();
    // When one fails the attempt is over, and with its signal all others end.
    const work = async (): Promise<void> => {
      for (const [index, call] of queue) outcomes[index] = await single(call, signal);
    };
    await Promise.all(Array.from({ length: Math.min(MAX_PARALLEL_REQUESTS, calls.length) }, work));
    return outcomes;
  }

  /** The outcomes of a batch; undefined when the endpoint refuses to take it as one, or cannot. */
  async function inOneRequest(
    calls: readonly RpcCall[],
    signal: AbortSignal,
  ): Promise<readonly RpcOutcome[] | undefined> {
    // What went well once and is refused now is a failure; but if it stays so, the next attempt may find out.
    const mayRefuse = calls.length > largestBatch;
    const outcomes = await post(calls, signal, (answer, firstId) => {
      serverErrors = 0;
      if (isBatchRejected(answer)) {
        refusalMs = BATCH_RETRY_MS;
        if (mayRefuse) return undefined;
        largestBatch = 1;
      }
      const listed = inList(answer, calls, firstId);
      if (listed !== undefined) checkChain(calls, listed);
      return listed;
    }).catch((error: unknown) => {
      if (error instanceof UpstreamError && isPossibleBatchRejection(error.status)) {
        const isServerError = Number(error.status) >= 500;
        serverErrors = isServerError ? serverErrors + 1 : 0;
        refusalMs = isServerError ? UNCERTAIN_BATCH_RETRY_MS : BATCH_RETRY_MS;
        if (mayRefuse) return undefined;
        // A server error is mostly just that.
        if (!isServerError || serverErrors >= MAX_CONSECUTIVE_SERVER_ERRORS) largestBatch = 1;
      }
      throw error;
    });
    if (outcomes === undefined) return undefined;
    largestBatch = Math.max(largestBatch, calls.length);
    if (refused !== undefined && refused.size <= calls.length) refused = undefined;
    return outcomes;
  }

  /** The outcomes in the answer to a batch; undefined when it is a list that mixes them up. */
  function inList(answer: unknown, calls: readonly RpcCall[], firstId: number): readonly RpcOutcome[] | undefined {
    try {
      return parseBatchResponse(Array.isArray(answer) ? answer : [], calls, firstId);
    } catch (error) {
      if (!Array.isArray(answer) || error instanceof RpcError || error instanceof InvalidResultError) throw error;
      refusalMs = UNCERTAIN_BATCH_RETRY_MS;
      largestBatch = 1;
      return undefined;
    }
  }

  async function run(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]> {
    if (calls.length === 1) return singles(calls, signal);
    const knownToRefuse = refused !== undefined && refused.size <= calls.length && now() - refused.at < refused.ms;
    const outcomes = knownToRefuse ? undefined : await inOneRequest(calls, signal);
    if (outcomes !== undefined) return outcomes;
    if (knownToRefuse) return singles(calls, signal);
    // It may be the node and not the batch: one call tells, before all are sent.
    const [probe, ...others] = calls;
    const separate = [
      ...(await singles(probe === undefined ? [] : [probe], signal)),
      ...(await singles(others, signal)),
    ];
    refused = { size: Math.min(calls.length, refused?.size ?? calls.length), at: now(), ms: refusalMs };
    return separate;
  }

  /** Runs calls and, first among them, the one for the chain's id. */
  async function runVerifying(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]> {
    // How a search is refused tells how much the endpoint takes: one that goes alone stays alone, once one went together.
    const isLoneSearch = calls.length === 1 && calls[0]?.method === "eth_getLogs";
    if (!wasVerified || !isLoneSearch) return run([CHAIN_ID_CALL, ...calls], signal);
    return (await Promise.all([singles([CHAIN_ID_CALL], signal), run(calls, signal)])).flat();
  }

  return {
    name: deriveEndpointName(url),
    id,
    async sendBatch(calls, signal) {
      const askedAt = now();
      try {
        if (askedAt - verifiedAt < CHAIN_ID_TTL_MS) return await run(calls, signal);
        // Who asks while that is under way asks for itself: nobody waits for another, or fails with it.
        const [, ...outcomes] = await runVerifying(calls, signal);
        verifiedAt = askedAt;
        wasVerified = true;
        return outcomes;
      } catch (error) {
        // It may be another node that answers next.
        if (!(error instanceof RpcError)) verifiedAt = Number.NEGATIVE_INFINITY;
        throw error;
      }
    },
  };
}

/** Whether an HTTP status may mean that batches are not taken: not access denied, and not too much asked. */
function isPossibleBatchRejection(status: number | undefined): boolean {
  return status !== undefined && ![401, 403, 429].includes(status);
}

interface RequestTarget {
  readonly url: string;
  readonly headers: { readonly authorization?: string };
}

/** User and password of a URL, which no HTTP client sends by itself, as the header that servers read. */
export function extractBasicAuth(text: string): RequestTarget {
  const url = new URL(text);
  const { username, password } = url;
  if (username === "" && password === "") return { url: text, headers: {} };
  url.username = "";
  url.password = "";
  const userInfo = `${decode(username)}:${decode(password)}`;
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(userInfo).toString("base64")}` } };
}
