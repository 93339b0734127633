import { type FetchJsonOptions, fetchJson } from "../../resilience/http-client/fetch-json.js";
import { UpstreamError, type UpstreamErrorKind } from "../../resilience/http-client/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import {
  encodeRequest,
  extractBasicAuth,
  limitResponseMembers,
  parseBatchResponse,
  parseResponse,
} from "../json-rpc/rpc-codec.js";

const TOO_MANY_REQUESTS_STATUS = 429;
/** Failures that say nothing about the request. */
const INCONCLUSIVE_KINDS: ReadonlySet<UpstreamErrorKind> = new Set(["timeout", "aborted", "network_error"]);

/** A client for diagnosis: one HTTP request per call, without state, retry or fallback. */
export class EndpointProbe {
  /** Name of the endpoint; contains no secret. */
  readonly name: string;
  readonly #target: ReturnType<typeof extractBasicAuth>;
  readonly #limits: Pick<FetchJsonOptions, "dispatcher" | "maxBytes" | "timeoutMs">;

  constructor(name: string, url: string, limits: Pick<FetchJsonOptions, "dispatcher" | "maxBytes" | "timeoutMs">) {
    this.name = name;
    this.#target = extractBasicAuth(url);
    this.#limits = limits;
  }

  /** @throws UpstreamError when there is no valid response */
  async send(call: RpcCall, signal: AbortSignal): Promise<RpcCallResult> {
    return parseResponse(await this.#post([call], signal), call, 1);
  }

  /** Returns whether the endpoint accepts the calls as a batch; undefined: unknown after a timeout or rate limiting. */
  async supportsBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<boolean | undefined> {
    try {
      const response = await this.#post(calls, signal);
      if (!Array.isArray(response)) return false;
      parseBatchResponse(response, calls, 1);
      return true;
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      return error.status === TOO_MANY_REQUESTS_STATUS || INCONCLUSIVE_KINDS.has(error.kind) ? undefined : false;
    }
  }

  #post(calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown> {
    const { url, headers } = this.#target;
    const memberLimits = limitResponseMembers(calls);
    return fetchJson(url, { ...this.#limits, ...headers, memberLimits, signal, body: encodeRequest(calls, 1) });
  }
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
