import { createAbortScope } from "../../resilience/abort-scope.js";
import { FairSemaphore } from "../../resilience/fair-semaphore.js";
import { CircuitBreaker } from "../../resilience/http-client/circuit-breaker.js";
import { type FetchJsonOptions, fetchJson } from "../../resilience/http-client/fetch-json.js";
import { UpstreamError, type UpstreamErrorKind } from "../../resilience/http-client/upstream-error.js";
import { findRpcResult, type RpcCall, type RpcCallResult } from "../chain-client.js";
import {
  CHAIN_ID_CALL,
  encodeRequest,
  extractBasicAuth,
  findBatchRejection,
  isErrorResponse,
  limitResponseMembers,
  parseBatchUnlessMixedUp,
  parseResponse,
} from "../json-rpc/rpc-codec.js";
import { RpcError } from "../json-rpc/rpc-errors.js";
import { findNamedLimit, LearnedLimit, UNCERTAIN_LIMIT_TTL_MS } from "./learned-limit.js";

/** A failed attempt. Contains no secret. */
export interface EndpointFailure {
  readonly chain: string;
  readonly endpoint: string;
  readonly method: string;
  readonly error: string;
}

/** One HTTP request to an endpoint. */
export interface EndpointRequest {
  /** Name of the endpoint. */
  readonly endpoint: string;
  /** JSON-RPC method; `batch` for several calls. */
  readonly method: string;
  readonly calls: number;
}

export type EndpointRequestOutcome = "ok" | UpstreamErrorKind;

/** Called for each request that is sent. Returns a function that is called once with the outcome. */
export type EndpointRequestObserver<Request = EndpointRequest> = (
  request: Request,
) => (outcome: EndpointRequestOutcome) => void;

interface EndpointOptions extends Pick<FetchJsonOptions, "dispatcher" | "maxBytes" | "openMemory"> {
  /** Name for logs and metrics; contains no secret. */
  readonly name: string;
  readonly url: string;
  /** Expected result of `eth_chainId`. */
  readonly chainId: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
  /**
   * Waits until a request with these calls may be sent. Default: requests are sent at once.
   * @param onWait called before it waits, with the time in milliseconds: the endpoint is not slow because of that
   * @throws ServiceError when it may not
   */
  readonly acquireCalls?:
    | ((calls: readonly RpcCall[], signal: AbortSignal, onWait?: (ms: number) => void) => Promise<void>)
    | undefined;
  /** Whether to send as few requests as possible: verifies the chain id once, and takes a server error as a failure. */
  readonly isThrifty?: boolean;
}

/** What one call of `send` passes to each of its requests. */
interface SendContext {
  readonly signal: AbortSignal;
  readonly onWait: ((ms: number) => void) | undefined;
}

/** Concurrent requests that replace one batch. */
const MAX_PARALLEL_REQUESTS = 16;
/** After so many server errors in a row, a batch size that was accepted before counts as untried. */
const MAX_CONSECUTIVE_SERVER_ERRORS = 3;
/** Statuses about access and rate, which say nothing about batches. */
const UNRELATED_STATUSES: ReadonlySet<number> = new Set([401, 403, 429]);
/** How long a verified chain id is valid unless a request fails: several nodes may share one address. */
const CHAIN_ID_TTL_MS = 250;
/** Cooldown of an endpoint that serves another chain. */
const WRONG_CHAIN_COOLDOWN_MS = 30_000;
/** Block range of a log search that is tried after a rejection which names no limit. */
export const DEFAULT_MAX_BLOCK_RANGE = 10_000;
/** Smallest block range that is tried. A rejection of so few blocks has another reason. */
export const MIN_BLOCK_RANGE = 10;

/** One RPC endpoint of a chain: its requests, its health, and what it is known to accept. */
export class Endpoint {
  readonly name: string;
  readonly breaker: CircuitBreaker;
  /** Blocks of one log search. */
  readonly blockRange: LearnedLimit;
  /** Calls of one batch. */
  readonly #batchSize: LearnedLimit;
  readonly #options: EndpointOptions;
  readonly #target: ReturnType<typeof extractBasicAuth>;
  #lastRpcId = 0;
  #largestAcceptedBatch = 1;
  #consecutiveServerErrors = 0;
  /** Start of the last request that returned the right chain id; -Infinity: it has to be verified again. */
  #verifiedAt = Number.NEGATIVE_INFINITY;
  #wasVerified = false;
  #lastFailure: string | undefined;

  constructor(options: EndpointOptions) {
    const { name, url, now } = options;
    this.name = name;
    this.breaker = new CircuitBreaker(now);
    this.blockRange = new LearnedLimit(MIN_BLOCK_RANGE, DEFAULT_MAX_BLOCK_RANGE, now);
    this.#batchSize = new LearnedLimit(1, Number.POSITIVE_INFINITY, now);
    this.#options = options;
    this.#target = extractBasicAuth(url);
  }

  /** How the last request that failed did so, in words without a URL. A rejected call is no failure of the endpoint. */
  get lastFailure(): string | undefined {
    return this.#lastFailure;
  }

  /**
   * Sends calls, in one HTTP request where the endpoint accepts batches, and returns their outcomes in order. Returns
   * outcomes only if the endpoint has just confirmed its chain id, which is read along with the calls.
   * @param onWait called before a request waits for its turn: see EndpointOptions.acquireCalls
   * @throws UpstreamError when one of the calls has no valid response
   */
  async send(
    calls: readonly RpcCall[],
    signal: AbortSignal,
    onWait?: (ms: number) => void,
  ): Promise<readonly RpcCallResult[]> {
    const { now, isThrifty = false } = this.#options;
    const requestedAt = now();
    const scope = createAbortScope(signal);
    const context = { signal: scope.signal, onWait };
    const ttlMs = isThrifty ? Number.POSITIVE_INFINITY : CHAIN_ID_TTL_MS;
    try {
      if (requestedAt - this.#verifiedAt < ttlMs) return await this.#dispatch(calls, context);
      // Concurrent requests each verify for themselves: none has to wait for another, or fails with it.
      const [, ...outcomes] = await this.#dispatchWithChainId(calls, context);
      this.#verifiedAt = requestedAt;
      this.#wasVerified = true;
      return outcomes;
    } catch (error) {
      // Another node behind the same address may respond to the next request.
      if (!(error instanceof RpcError)) this.#verifiedAt = Number.NEGATIVE_INFINITY;
      throw error;
    } finally {
      // Aborts what is still in flight when one of several requests has failed.
      scope.cancel();
    }
  }

  /**
   * Dispatches calls and, as the first of them, the one for the chain id. A single log search stays a request of its own
   * once the endpoint has been verified: the size of the response to it shows how many blocks the endpoint accepts.
   */
  async #dispatchWithChainId(calls: readonly RpcCall[], context: SendContext): Promise<readonly RpcCallResult[]> {
    const chainIdCall = { ...CHAIN_ID_CALL, onRequest: calls[0]?.onRequest };
    const isSingleLogSearch = calls.length === 1 && calls[0]?.method === "eth_getLogs";
    if (!this.#wasVerified || !isSingleLogSearch) return this.#dispatch([chainIdCall, ...calls], context);
    return (await Promise.all([this.#dispatch([chainIdCall], context), this.#dispatch(calls, context)])).flat();
  }

  /** Sends calls in as few requests as the endpoint is known to accept. */
  async #dispatch(calls: readonly RpcCall[], context: SendContext): Promise<readonly RpcCallResult[]> {
    const slots = new FairSemaphore(MAX_PARALLEL_REQUESTS);
    const sendOne = (call: RpcCall): Promise<RpcCallResult> =>
      slots.acquire("", context.signal, () => this.#sendOne(call, context));

    const sendPart = async (part: readonly RpcCall[]): Promise<readonly RpcCallResult[]> => {
      const [first, ...others] = part;
      if (first === undefined) return [];
      if (others.length === 0) return [await sendOne(first)];
      const batch = await slots.acquire("", context.signal, () => this.#sendBatch(part, context));
      if ("outcomes" in batch) return batch.outcomes;
      // The node may be failing, not the batch: one call goes ahead of the others to find out.
      const outcome = await sendOne(first);
      const accepted = this.#largestAcceptedBatch > 1 ? this.#largestAcceptedBatch : undefined;
      this.#batchSize.narrow(part.length, batch.namedLimit ?? accepted, batch.limitTtlMs);
      return [outcome, ...(await Promise.all(others.map(sendOne)))];
    };

    const size = Math.min(this.#batchSize.current(), Math.max(calls.length, 1));
    const parts = Array.from({ length: Math.ceil(calls.length / size) }, (_, index) =>
      calls.slice(index * size, (index + 1) * size),
    );
    return (await Promise.all(parts.map(sendPart))).flat();
  }

  async #sendOne(call: RpcCall, context: SendContext): Promise<RpcCallResult> {
    try {
      return await this.#post([call], context, (response, firstId) => {
        const outcome = parseResponse(response, call, firstId);
        this.#assertChainId(call, outcome);
        return outcome;
      });
    } catch (error) {
      const isChainId = call.method === CHAIN_ID_CALL.method;
      if (!this.#options.isThrifty || !isChainId || !(error instanceof UpstreamError)) throw error;
      // Without status and classification: it says nothing about the other calls, such as that a range is too wide.
      throw new UpstreamError(error.message, { kind: error.kind, cause: error });
    }
  }

  /** Returns the outcomes of a batch, or what is known about its rejection. */
  async #sendBatch(
    calls: readonly RpcCall[],
    context: SendContext,
  ): Promise<
    | { readonly outcomes: readonly RpcCallResult[] }
    | { readonly namedLimit?: number | undefined; readonly limitTtlMs?: number | undefined }
  > {
    // For a size that was accepted before, what may have another reason counts as a failure of the endpoint.
    const isUntried = calls.length > this.#largestAcceptedBatch;
    let namedLimit: number | undefined;
    let limitTtlMs: number | undefined;
    try {
      const outcomes = await this.#post(calls, context, (response, firstId) => {
        this.#consecutiveServerErrors = 0;
        const rejection = findBatchRejection(response);
        if (rejection !== undefined) {
          namedLimit = findNamedLimit(rejection.numbers, { smallest: 2, rejectedSize: calls.length });
          if (isUntried) return undefined;
          this.#largestAcceptedBatch = 1;
          // JSON-RPC 2.0, 6: one object instead of a list refuses the batch, and not one of its calls.
          if (isErrorResponse(response)) {
            if (rejection.kind === "rate_limited") limitTtlMs = UNCERTAIN_LIMIT_TTL_MS;
            return undefined;
          }
        }
        const parsed = parseBatchUnlessMixedUp(response, calls, firstId);
        this.#assertChainId(calls[0], parsed?.[0]);
        if (parsed === undefined) {
          limitTtlMs = UNCERTAIN_LIMIT_TTL_MS;
          this.#largestAcceptedBatch = 1;
        }
        return parsed;
      });
      if (outcomes === undefined) return { namedLimit, limitTtlMs };
      this.#largestAcceptedBatch = Math.max(this.#largestAcceptedBatch, calls.length);
      return { outcomes };
    } catch (error) {
      if (!(error instanceof UpstreamError) || !this.#isBatchStatus(error.status)) throw error;
      if (error.status < 500) {
        this.#consecutiveServerErrors = 0;
        if (!isUntried) this.#largestAcceptedBatch = 1;
        return {};
      }
      this.#consecutiveServerErrors += 1;
      if (isUntried) return { limitTtlMs: UNCERTAIN_LIMIT_TTL_MS };
      // Most server errors have nothing to do with the batch.
      if (this.#consecutiveServerErrors >= MAX_CONSECUTIVE_SERVER_ERRORS) this.#largestAcceptedBatch = 1;
      throw error;
    }
  }

  /** Returns whether an HTTP status may mean that the endpoint rejects batches. */
  #isBatchStatus(status: number | undefined): status is number {
    if (status === undefined || UNRELATED_STATUSES.has(status)) return false;
    return !this.#options.isThrifty || (status >= 400 && status < 500);
  }

  /** @throws UpstreamError wrong_chain when the call reads the chain id and the result is another one */
  #assertChainId(call: RpcCall | undefined, outcome: RpcCallResult | undefined): void {
    if (call?.method !== CHAIN_ID_CALL.method || outcome === undefined) return;
    if (Number(findRpcResult(outcome)) === this.#options.chainId) return;
    throw new UpstreamError("serves another chain", { kind: "wrong_chain", retryAfterMs: WRONG_CHAIN_COOLDOWN_MS });
  }

  /**
   * Sends calls in one HTTP request.
   * @param parse parses the response; undefined: the endpoint rejects the calls
   */
  async #post<T>(
    calls: readonly RpcCall[],
    { signal, onWait }: SendContext,
    parse: (response: unknown, firstId: number) => T,
  ): Promise<T> {
    const { dispatcher, maxBytes, openMemory, acquireCalls, onEndpointRequest } = this.#options;
    calls.find(({ onRequest }) => onRequest !== undefined)?.onRequest?.();
    await acquireCalls?.(calls, signal, onWait);
    const firstId = this.#lastRpcId + 1;
    this.#lastRpcId += calls.length;
    const body = encodeRequest(calls, firstId);
    const method = calls.length === 1 ? (calls[0]?.method ?? "") : "batch";
    const onEnd = onEndpointRequest?.({ endpoint: this.name, method, calls: calls.length });
    let outcome: EndpointRequestOutcome = "invalid_response";
    try {
      const memberLimits = limitResponseMembers(calls);
      const transport = {
        ...this.#target.headers,
        dispatcher,
        maxBytes,
        memberLimits,
        ...(openMemory && { openMemory }),
      };
      const response = await fetchJson(this.#target.url, { ...transport, signal, body });
      const result = parse(response, firstId);
      outcome = result === undefined ? "rpc_error" : "ok";
      return result;
    } catch (error) {
      outcome = error instanceof UpstreamError ? error.kind : "aborted";
      // A request is also aborted when another endpoint was faster.
      if (error instanceof UpstreamError && outcome !== "rpc_error" && outcome !== "aborted")
        this.#lastFailure = error.message;
      throw error;
    } finally {
      onEnd?.(outcome);
    }
  }
}
