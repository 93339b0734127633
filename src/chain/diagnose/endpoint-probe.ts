import type { Dispatcher } from "undici";
import { fetchJson } from "../../resilience/fetch-json.js";
import { UpstreamError, type UpstreamErrorKind } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcOutcome } from "../chain-client.js";
import { extractBasicAuth } from "../endpoints/endpoint.js";
import { deriveEndpointName } from "../endpoints/endpoint-id.js";
import { encodeRequest, parseBatchResponse, parseResponse } from "../json-rpc/rpc-codec.js";

/** An endpoint that is asked only to learn what it does: nothing is remembered, and nothing tried another way. */
export interface EndpointProbe {
  /** Its name, without anything secret. */
  readonly name: string;
  /** @throws ExchangeError when there is no answer to believe. */
  send(call: RpcCall, signal: AbortSignal): Promise<RpcOutcome>;
  /** Whether it takes calls in one request; undefined: it did not say, for want of time or because it is asked too much. */
  supportsBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<boolean | undefined>;
}

export interface EndpointProbeOptions {
  readonly url: string;
  readonly dispatcher: Dispatcher;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  /** Longest time for one request, in milliseconds. */
  readonly attemptTimeoutMs: number;
}

const TOO_MANY_REQUESTS_STATUS = 429;
/** Faults that say nothing of what was asked. */
const INCONCLUSIVE_KINDS: ReadonlySet<UpstreamErrorKind> = new Set(["timeout", "aborted", "network_error"]);

export function createEndpointProbe({ url, attemptTimeoutMs, ...options }: EndpointProbeOptions): EndpointProbe {
  const address = extractBasicAuth(url);

  function post(calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown> {
    const body = encodeRequest(calls, 1);
    return fetchJson(address.url, { ...options, ...address.headers, timeoutMs: attemptTimeoutMs, signal, body });
  }

  return {
    name: deriveEndpointName(url),
    send: async (call, signal) => parseResponse(await post([call], signal), call, 1),
    async supportsBatch(calls, signal) {
      try {
        const answer = await post(calls, signal);
        if (!Array.isArray(answer)) return false;
        parseBatchResponse(answer, calls, 1);
        return true;
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        return error.status === TOO_MANY_REQUESTS_STATUS || INCONCLUSIVE_KINDS.has(error.kind) ? undefined : false;
      }
    },
  };
}

/** What a call gave; undefined where the endpoint gave no answer to believe. */
export async function ignoreUpstreamError(call: Promise<RpcOutcome>): Promise<RpcOutcome | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof UpstreamError) return undefined;
    throw error;
  }
}
