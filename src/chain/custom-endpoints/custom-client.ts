import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { createCircuitBreaker } from "../../resilience/circuit-breaker.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import type { ChainClient } from "../chain-client.js";
import { createAdaptiveLogReader } from "../endpoints/adaptive-block-range.js";
import { createEndpoint, type EndpointOptions } from "../endpoints/endpoint.js";
import type { EndpointFailure, Upstream } from "../endpoints/endpoint-attempt.js";
import { CUSTOM_ENDPOINT_NAME } from "../endpoints/endpoint-name.js";
import type { HedgedRequester } from "../endpoints/hedged-requests.js";
import { createRequesterClient } from "../requester-client.js";

export interface CustomClientOptions extends Omit<EndpointOptions, "name" | "isThrifty"> {
  readonly slug: string;
  readonly onFailure: (failure: EndpointFailure) => void;
  /** Time limit of a read, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Requests of one log search, which tries smaller block ranges: enough for endpoints that search 200 blocks at a time. One
 * of them may read the chain id.
 */
const MAX_SEARCH_REQUESTS = 9;

/**
 * Creates a client on a caller's endpoint. A read is one attempt: the host need not be the caller's, so a call must not
 * become many requests, and a caller whose endpoint fails can repeat the call itself. Therefore also without hedging,
 * circuit breaker and background probes.
 */
export function createCustomClient(options: CustomClientOptions): ChainClient {
  const { slug, onFailure, timeoutMs, now } = options;
  const endpoint = createEndpoint({ ...options, name: CUSTOM_ENDPOINT_NAME, isThrifty: true });
  const upstream: Upstream = { endpoint, breaker: createCircuitBreaker(now) };

  const request: HedgedRequester = async (calls, signal, policy) => {
    try {
      return await endpoint.sendBatch(calls, signal);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      if (!signal.aborted && policy?.isRangeTooWide(upstream, error, false) !== true) {
        const method = [...new Set(calls.map((call) => call.method))].join(",");
        onFailure({ chain: slug, endpoint: endpoint.name, method, error: error.message });
      }
      throw unavailable(error);
    }
  };
  const readLogs = createAdaptiveLogReader({ upstreams: [upstream], isHealthy: () => true, request, now });

  /** Reports every failure with the same message: details would tell the caller what listens at the address. */
  function unavailable(cause: unknown): ServiceError {
    return new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} responded`, { cause });
  }

  async function runBounded<T>(outer: AbortSignal, read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const scope = createAbortScope(outer, timeoutMs);
    try {
      return await read(scope.signal);
    } catch (error) {
      throw scope.signal.aborted ? unavailable(error) : error;
    } finally {
      scope.cancel();
    }
  }

  const client = createRequesterClient({ slug, request, readLogs });
  return {
    slug,
    send: (method, params, outer, validate, onRequest) =>
      runBounded(outer, (signal) => client.send(method, params, signal, validate, onRequest)),
    sendBatch: (calls, outer) => runBounded(outer, (signal) => client.sendBatch(calls, signal)),
    getLogs: (filter, range, newestFirst, outer, onRequest) =>
      runBounded(outer, (signal) => {
        let requests = 0;
        return client.getLogs(filter, range, newestFirst, signal, () => {
          requests += 1;
          if (requests > MAX_SEARCH_REQUESTS) throw unavailable(undefined);
          onRequest?.();
        });
      }),
  };
}
