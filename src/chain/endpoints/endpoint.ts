import { type FetchJsonOptions, fetchJson } from "../../resilience/http-client/fetch-json.js";
import { UpstreamError, type UpstreamErrorKind } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { extractBasicAuth } from "../json-rpc/basic-auth.js";
import { CHAIN_ID_CALL } from "../json-rpc/common-calls.js";
import {
  encodeRequest,
  isBatchRejected,
  parseBatchUnlessMixedUp,
  parseResponse,
  RpcError,
} from "../json-rpc/rpc-codec.js";
import {
  INITIAL_BATCH_SUPPORT,
  isPossibleBatchRejection,
  isUntriedSize,
  onBatchAccepted,
  onBatchHttpError,
  onBatchMixedUp,
  onBatchRejected,
  onBatchResponse,
  onRejectionConfirmed,
  shouldBatch,
} from "./batch-support.js";
import {
  assertChainId,
  INITIAL_CHAIN_ID_VERIFICATION,
  invalidateChainIdVerification,
  isChainIdVerified,
  onChainIdVerified,
  shouldBatchChainId,
} from "./chain-id-verification.js";

/** One RPC endpoint of a chain. */
export interface Endpoint {
  /** Name for logs and metrics; contains no secret. */
  readonly name: string;
  /**
   * Sends calls, in one HTTP request where the endpoint accepts batches, and returns their outcomes in order. Returns
   * outcomes only if the endpoint has just confirmed its chain id, which is read along with the calls.
   * @param onWait called before a request waits for its turn: see AcquireCalls
   * @throws UpstreamError when one of the calls has no valid response
   */
  sendBatch(
    calls: readonly RpcCall[],
    signal: AbortSignal,
    onWait?: (ms: number) => void,
  ): Promise<readonly RpcCallResult[]>;
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

/**
 * Waits until a request with these calls may be sent.
 * @param onWait called before it waits, with the time in milliseconds: the endpoint is not slow because of that
 */
export type AcquireCalls = (
  calls: readonly RpcCall[],
  signal: AbortSignal,
  onWait?: (ms: number) => void,
) => Promise<void>;

/** What one call of `sendBatch` passes to each of its requests. */
interface SendContext {
  readonly signal: AbortSignal;
  readonly onWait: ((ms: number) => void) | undefined;
}

export interface EndpointOptions extends Pick<FetchJsonOptions, "dispatcher" | "maxBytes" | "openMemory" | "onDate"> {
  readonly name: string;
  readonly url: string;
  /** Expected result of `eth_chainId`. */
  readonly chainId: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
  /** Default: requests are sent at once. */
  readonly acquireCalls?: AcquireCalls | undefined;
  /** Whether to send as few requests as possible: verifies the chain id once, and takes a server error as a failure. */
  readonly isThrifty?: boolean;
}

/** Concurrent requests that replace one batch. */
const MAX_PARALLEL_REQUESTS = 16;

export function createEndpoint({
  name,
  url,
  chainId,
  dispatcher,
  maxBytes,
  now,
  onEndpointRequest,
  acquireCalls,
  openMemory,
  onDate,
  isThrifty = false,
}: EndpointOptions): Endpoint {
  const target = extractBasicAuth(url);
  const transport = {
    ...target.headers,
    dispatcher,
    maxBytes,
    ...(openMemory && { openMemory }),
    ...(onDate && { onDate }),
  };
  let lastRpcId = 0;
  let batchSupport = INITIAL_BATCH_SUPPORT;
  let verification = INITIAL_CHAIN_ID_VERIFICATION;

  /**
   * Sends calls in one HTTP request.
   * @param parse parses the response; undefined: the endpoint rejects the calls
   */
  async function post<T>(
    calls: readonly RpcCall[],
    context: SendContext,
    parse: (response: unknown, firstId: number) => T,
  ): Promise<T> {
    const { signal, onWait } = context;
    calls.find(({ onRequest }) => onRequest !== undefined)?.onRequest?.();
    await acquireCalls?.(calls, signal, onWait);
    const firstId = lastRpcId + 1;
    lastRpcId += calls.length;
    const body = encodeRequest(calls, firstId);
    const method = calls.length === 1 ? (calls[0]?.method ?? "") : "batch";
    const onEnd = onEndpointRequest?.({ endpoint: name, method, calls: calls.length });
    let outcome: EndpointRequestOutcome = "invalid_response";
    try {
      const response = await fetchJson(target.url, { ...transport, signal, body });
      const result = parse(response, firstId);
      outcome = result === undefined ? "rpc_error" : "ok";
      return result;
    } catch (error) {
      outcome = error instanceof UpstreamError ? error.kind : "aborted";
      throw error;
    } finally {
      onEnd?.(outcome);
    }
  }

  async function sendOne(call: RpcCall, context: SendContext): Promise<RpcCallResult> {
    try {
      return await post([call], context, (response, firstId) => {
        const outcome = parseResponse(response, call, firstId);
        assertChainId(chainId, [call], [outcome]);
        return outcome;
      });
    } catch (error) {
      if (!isThrifty || call.method !== CHAIN_ID_CALL.method || !(error instanceof UpstreamError)) throw error;
      // Without status and classification: it says nothing about the other calls, such as that a range is too wide.
      throw new UpstreamError(error.message, { kind: error.kind, cause: error });
    }
  }

  async function sendSeparately(calls: readonly RpcCall[], context: SendContext): Promise<readonly RpcCallResult[]> {
    const outcomes: RpcCallResult[] = [];
    const queue = calls.entries();
    // The first failure ends the attempt, and the attempt's signal then aborts the other requests.
    const work = async (): Promise<void> => {
      for (const [index, call] of queue) outcomes[index] = await sendOne(call, context);
    };
    await Promise.all(Array.from({ length: Math.min(MAX_PARALLEL_REQUESTS, calls.length) }, work));
    return outcomes;
  }

  /** Returns the outcomes of a batch; undefined when the endpoint does not support a batch of this size. */
  async function sendBatched(
    calls: readonly RpcCall[],
    context: SendContext,
  ): Promise<readonly RpcCallResult[] | undefined> {
    const isUntried = isUntriedSize(batchSupport, calls.length);
    const outcomes = await post(calls, context, (response, firstId) => {
      batchSupport = onBatchResponse(batchSupport);
      if (isBatchRejected(response)) {
        batchSupport = onBatchRejected(batchSupport, isUntried);
        if (isUntried) return undefined;
      }
      const parsed = parseBatchUnlessMixedUp(response, calls, firstId);
      if (parsed === undefined) batchSupport = onBatchMixedUp(batchSupport);
      else assertChainId(chainId, calls, parsed);
      return parsed;
    }).catch((error: unknown) => {
      if (error instanceof UpstreamError && isPossibleBatchRejection(error.status, isThrifty)) {
        batchSupport = onBatchHttpError(batchSupport, error.status, isUntried);
        if (isUntried) return undefined;
      }
      throw error;
    });
    if (outcomes !== undefined) batchSupport = onBatchAccepted(batchSupport, calls.length);
    return outcomes;
  }

  async function dispatch(calls: readonly RpcCall[], context: SendContext): Promise<readonly RpcCallResult[]> {
    if (calls.length === 1 || !shouldBatch(batchSupport, calls.length, now())) return sendSeparately(calls, context);
    const outcomes = await sendBatched(calls, context);
    if (outcomes !== undefined) return outcomes;
    // The node may be failing, not the batch: one call goes ahead of the others to find out.
    const [first, ...others] = calls;
    const separate = [
      ...(await sendSeparately(first === undefined ? [] : [first], context)),
      ...(await sendSeparately(others, context)),
    ];
    batchSupport = onRejectionConfirmed(batchSupport, calls.length, now());
    return separate;
  }

  /** Dispatches calls and, as the first of them, the one for the chain id. */
  async function dispatchWithChainId(
    calls: readonly RpcCall[],
    context: SendContext,
  ): Promise<readonly RpcCallResult[]> {
    const chainIdCall = { ...CHAIN_ID_CALL, onRequest: calls[0]?.onRequest };
    if (shouldBatchChainId(verification, calls)) return dispatch([chainIdCall, ...calls], context);
    return (await Promise.all([sendSeparately([chainIdCall], context), dispatch(calls, context)])).flat();
  }

  return {
    name,
    async sendBatch(calls, signal, onWait) {
      const requestedAt = now();
      const context = { signal, onWait };
      try {
        if (isChainIdVerified(verification, requestedAt, isThrifty)) return await dispatch(calls, context);
        // Concurrent requests each verify for themselves: none has to wait for another, or fails with it.
        const [, ...outcomes] = await dispatchWithChainId(calls, context);
        verification = onChainIdVerified(requestedAt);
        return outcomes;
      } catch (error) {
        if (!(error instanceof RpcError)) verification = invalidateChainIdVerification(verification);
        throw error;
      }
    },
  };
}
