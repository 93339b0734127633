import type { Dispatcher } from "undici";
import { fetchJson } from "../../resilience/http-client/fetch-json.js";
import { UpstreamError, type UpstreamErrorKind } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { extractBasicAuth } from "../json-rpc/basic-auth.js";
import { encodeRequest, parseBatchResponse, parseResponse } from "../json-rpc/rpc-codec.js";

/** A client for diagnosis: one HTTP request per call, without state, retry or fallback. */
export interface EndpointProbe {
  /** Name of the endpoint; contains no secret. */
  readonly name: string;
  /** @throws UpstreamError when there is no valid response */
  send(call: RpcCall, signal: AbortSignal): Promise<RpcCallResult>;
  /** Returns whether the endpoint accepts the calls as a batch; undefined: unknown after a timeout or rate limiting. */
  supportsBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<boolean | undefined>;
}

export interface EndpointProbeOptions {
  readonly name: string;
  readonly url: string;
  readonly dispatcher: Dispatcher;
  /** Maximum size of a response. */
  readonly maxBytes: number;
  /** Timeout of one request, in milliseconds. */
  readonly attemptTimeoutMs: number;
}

const TOO_MANY_REQUESTS_STATUS = 429;
/** Failures that say nothing about the request. */
const INCONCLUSIVE_KINDS: ReadonlySet<UpstreamErrorKind> = new Set(["timeout", "aborted", "network_error"]);

export function createEndpointProbe({ name, url, attemptTimeoutMs, ...options }: EndpointProbeOptions): EndpointProbe {
  const target = extractBasicAuth(url);

  function post(calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown> {
    const body = encodeRequest(calls, 1);
    return fetchJson(target.url, { ...options, ...target.headers, timeoutMs: attemptTimeoutMs, signal, body });
  }

  return {
    name,
    send: async (call, signal) => parseResponse(await post([call], signal), call, 1),
    async supportsBatch(calls, signal) {
      try {
        const response = await post(calls, signal);
        if (!Array.isArray(response)) return false;
        parseBatchResponse(response, calls, 1);
        return true;
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        return error.status === TOO_MANY_REQUESTS_STATUS || INCONCLUSIVE_KINDS.has(error.kind) ? undefined : false;
      }
    },
  };
}

/** Resolves to the outcome of a call; undefined when the endpoint gave no valid response. */
export async function ignoreUpstreamError(call: Promise<RpcCallResult>): Promise<RpcCallResult | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof UpstreamError) return undefined;
    throw error;
  }
}
