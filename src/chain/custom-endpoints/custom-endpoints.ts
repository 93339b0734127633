import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type { buildConnector as BuildConnector } from "undici";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { monotonicNow } from "../../resilience/clock.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import { Agent, buildConnector } from "../../resilience/http-client/undici.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import type { Requester } from "../../resilience/waiters.js";
import { type ChainClient, createChainClient, type RpcCall, type RpcCallResult } from "../chain-client.js";
import { Endpoint, type EndpointFailure, type EndpointRequestObserver } from "../endpoints/endpoint.js";
import { CUSTOM_ENDPOINT_NAME } from "../endpoints/endpoint-name.js";
import { readLogs } from "../endpoints/log-reader.js";
import { openResponseMemory } from "../endpoints/upstream-budget.js";
import { type CustomHost, CustomHostLimits } from "./host-limits.js";
import { removeBrackets, resolveHost, type SsrfGuardOptions, validateCustomUrl } from "./ssrf-guard.js";

export interface CustomEndpointsOptions extends SsrfGuardOptions {
  /** How many custom endpoints may be open. */
  readonly limits?: typeof DEFAULT_CUSTOM_ENDPOINT_LIMITS | undefined;
  readonly onFailure: (failure: EndpointFailure) => void;
}

/** A caller may have more endpoints open than a network has chains. */
export const DEFAULT_CUSTOM_ENDPOINT_LIMITS: { readonly perCaller: number; readonly total: number } = {
  perCaller: 16,
  total: 64,
};
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Bytes of responses that are being read, of all callers together; one caller gets at most half. */
export const MAX_CUSTOM_RESPONSE_MEMORY_BYTES = 16 * 1024 * 1024;
/** Time limit of one read and the DNS lookup before it, in milliseconds. */
const READ_TIMEOUT_MS = 3_000;
/** Connections of one call to one origin. */
const MAX_CONNECTIONS_PER_ORIGIN = 4;
/** Idle connections are closed soon, since other callers may wait for one. */
const KEEP_ALIVE_MS = 200;
/**
 * Requests of one log search, which tries smaller block ranges: enough for endpoints that search 200 blocks at a time. One
 * of them may read the chain id.
 */
const MAX_SEARCH_REQUESTS = 9;

/** Opens the endpoints that callers name. */
export class CustomEndpoints {
  readonly options: CustomEndpointsOptions;
  readonly hostLimits = new CustomHostLimits();
  readonly responseMemory = new FairQuota(() => MAX_CUSTOM_RESPONSE_MEMORY_BYTES);
  readonly #total: number;
  readonly #open: FairQuota;

  constructor(options: CustomEndpointsOptions) {
    const { perCaller, total } = options.limits ?? DEFAULT_CUSTOM_ENDPOINT_LIMITS;
    this.options = options;
    this.#total = total;
    this.#open = new FairQuota(() => Number.POSITIVE_INFINITY, perCaller);
  }

  /** Starts a session: the endpoints that one call names. They share connections with one another and with no other call. */
  startSession(requester: Requester): CustomEndpointSession {
    return new CustomEndpointSession(this, requester);
  }

  /** Returns the number of open endpoints. */
  count(): number {
    return this.#open.heldCount();
  }

  /** Reserves a slot for an endpoint and returns the function that releases it. */
  reserveSlot(caller: string, field: string): () => void {
    const release = this.#open.tryAcquire(caller);
    if (release === undefined) {
      const message = "too many custom endpoints of this client are in use";
      throw new ServiceError("RATE_LIMITED", message, { field, retryAfterSeconds: 1 });
    }
    if (this.count() <= this.#total) return release;
    release();
    throw new ServiceError("OVERLOADED", "too many custom endpoints are in use", { field, retryAfterSeconds: 1 });
  }
}

class CustomEndpointSession {
  readonly #endpoints: CustomEndpoints;
  readonly #requester: Requester;
  readonly #closing = new AbortController();
  readonly #slots: (() => void)[] = [];
  /** Lookups of this session: one per host, however many chains it serves. */
  readonly #lookups = new Map<string, Promise<readonly LookupAddress[]>>();
  /** The only addresses that may be connected to, by host name. */
  readonly #validated = new Map<string, readonly LookupAddress[]>();
  readonly #dispatcher: Agent;

  constructor(endpoints: CustomEndpoints, requester: Requester) {
    this.#endpoints = endpoints;
    this.#requester = requester;
    this.#dispatcher = new Agent({
      connect: this.#createConnector(),
      connections: MAX_CONNECTIONS_PER_ORIGIN,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxResponseSize: MAX_RESPONSE_BYTES,
    });
  }

  /**
   * Opens an endpoint, which the session closes. Connects only to the addresses that were validated, so that the host name
   * cannot change to a private address afterwards (DNS rebinding).
   * @throws ServiceError RPC_URL_FORBIDDEN as the SSRF guard does; RATE_LIMITED when this caller, OVERLOADED when all
   * callers together have too many endpoints open
   */
  async open(
    chain: {
      readonly slug: string;
      readonly chainId: number;
      readonly onEndpointRequest?: EndpointRequestObserver | undefined;
    },
    url: string,
  ): Promise<ChainClient> {
    const { slug, chainId, onEndpointRequest } = chain;
    const { caller, signal } = this.#requester;
    const { options, hostLimits, responseMemory } = this.#endpoints;
    const field = `rpcUrl[${slug}]`;
    const startedAt = monotonicNow();
    this.#slots.push(this.#endpoints.reserveSlot(caller, field));
    const rules = { ...options, resolveHost: this.#resolveOnce };
    const { href, addresses } = await validateCustomUrl(url, rules, { field, timeoutMs: READ_TIMEOUT_MS, signal });
    const { hostname } = new URL(href);
    if (addresses !== undefined) this.#validated.set(removeBrackets(hostname), addresses);
    const host = this.#toHost(hostname);
    const endpoint = new Endpoint({
      name: CUSTOM_ENDPOINT_NAME,
      chainId,
      url: href,
      isThrifty: true,
      dispatcher: this.#dispatcher,
      maxBytes: MAX_RESPONSE_BYTES,
      openMemory: () => openResponseMemory(responseMemory, caller, createMemoryError),
      acquireCalls: (_, requestSignal) => hostLimits.acquireRequest(caller, host, requestSignal),
      now: monotonicNow,
      onEndpointRequest: (request) => {
        const onEnd = onEndpointRequest?.(request);
        return (outcome) => {
          onEnd?.(outcome);
          if (outcome === "too_complex") hostLimits.countComplexResponse(caller, host);
        };
      },
    });
    const timeoutMs = READ_TIMEOUT_MS - (monotonicNow() - startedAt);
    return createCustomClient(slug, endpoint, { timeoutMs, onFailure: options.onFailure });
  }

  /** Closes the endpoints and their connections. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#dispatcher.destroy();
    for (const release of this.#slots.splice(0)) release();
  }

  readonly #resolveOnce = (name: string, signal: AbortSignal): Promise<readonly LookupAddress[]> => {
    const lookup = this.#lookups.get(name) ?? (this.#endpoints.options.resolveHost ?? resolveHost)(name, signal);
    this.#lookups.set(name, lookup);
    return lookup;
  };

  #toHost(hostname: string): CustomHost {
    const name = removeBrackets(hostname);
    const addresses = this.#validated.get(name)?.map(({ address }) => address) ?? (isIP(name) === 0 ? [] : [name]);
    return { name, addresses };
  }

  /**
   * Creates a connector that counts a connection from the attempt to its end, also when nobody waits for it any more: only
   * its own timeout ends an attempt.
   */
  #createConnector(): BuildConnector.connector {
    const isPinned = this.#endpoints.options.policy !== "any";
    const connect = buildConnector({ timeout: READ_TIMEOUT_MS, ...(isPinned && { lookup: this.#lookUpValidated }) });
    return (options, callback) => {
      const connectWithin = (release: () => void): void =>
        connect(options, (...result) => {
          const [error, socket] = result;
          if (error === null) socket.once("close", release);
          else release();
          callback(...result);
        });
      this.#endpoints.hostLimits
        .acquireConnection(this.#requester.caller, this.#toHost(options.hostname), this.#closing.signal)
        .then(connectWithin, (error: Error) => callback(error, null));
    };
  }

  /** Returns the validated addresses, whatever the host name resolves to now. */
  readonly #lookUpValidated: LookupFunction = (host, options, callback) => {
    const addresses = this.#validated.get(host) ?? [];
    const [first] = addresses;
    if (first === undefined) return callback(new Error("the host was not validated"), "");
    if (options.all) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

function createMemoryError(): ServiceError {
  const message = "too many long responses of custom endpoints are being read: try again later";
  return new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
}

/**
 * Creates a client on a caller's endpoint. A read is one attempt: the host need not be the caller's, so a call must not
 * become many requests, and a caller whose endpoint fails can repeat the call itself. Therefore also without hedging,
 * circuit breaker and background probes.
 */
function createCustomClient(
  slug: string,
  endpoint: Endpoint,
  limits: { readonly timeoutMs: number; readonly onFailure: (failure: EndpointFailure) => void },
): ChainClient {
  const onFailure = (_: Endpoint, method: string, error: string): void =>
    limits.onFailure({ chain: slug, endpoint: endpoint.name, method, error });

  async function request(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcCallResult[]> {
    try {
      return await endpoint.send(calls, signal);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      const method = [...new Set(calls.map((call) => call.method))].join(",");
      if (!signal.aborted) onFailure(endpoint, method, error.message);
      throw unavailable(error);
    }
  }

  /** Reports every failure with the same message: details would tell the caller what listens at the address. */
  function unavailable(cause: unknown): ServiceError {
    return new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} responded`, { cause });
  }

  async function runBounded<T>(outer: AbortSignal, read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const scope = createAbortScope(outer, limits.timeoutMs);
    try {
      return await read(scope.signal);
    } catch (error) {
      throw scope.signal.aborted ? unavailable(error) : error;
    } finally {
      scope.cancel();
    }
  }

  const closing = new AbortController().signal;
  const source = { slug, listCandidates: () => [endpoint], isHealthy: () => true, onFailure, closing };
  return createChainClient({
    slug,
    request: (calls, outer) => runBounded(outer, (signal) => request(calls, signal)),
    searchLogs: (search, outer) =>
      runBounded(outer, (signal) => {
        let requests = 0;
        const onRequest = (): void => {
          requests += 1;
          if (requests > MAX_SEARCH_REQUESTS) throw unavailable(undefined);
          search.onRequest?.();
        };
        return readLogs(source, { ...search, onRequest }, signal);
      }),
  });
}
