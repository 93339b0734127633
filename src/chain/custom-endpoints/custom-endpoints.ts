import type { LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { monotonicNow } from "../../resilience/clock.js";
import type { ChainClient } from "../chain-client.js";
import type { EndpointRequestObserver } from "../endpoints/endpoint.js";
import { CUSTOM_ENDPOINT_NAME } from "../endpoints/endpoint-name.js";
import { createEndpointPool, type EndpointFailure } from "../endpoints/endpoint-pool.js";
import { createRefCount, retainWhileConnecting } from "./connection-ref-count.js";
import type { ResolvedAddress } from "./resolve-host.js";
import { createSsrfGuard, type SsrfGuardOptions } from "./ssrf-guard.js";

/** The caller that names an endpoint. */
export interface EndpointCaller {
  /** Key that tells callers apart. */
  readonly caller: string;
  /** Aborts when the caller has left. */
  readonly signal: AbortSignal;
}

/** A chain client on a caller's endpoint, with its own connections. */
export interface CustomEndpoint {
  readonly client: ChainClient;
  close(): Promise<void>;
}

/** Opens the endpoints that callers name. */
export interface CustomEndpoints {
  /**
   * Opens an endpoint, to be closed by the caller of this function. Connects only to the addresses that were validated, so
   * that the host name cannot change to a private address afterwards (DNS rebinding).
   * @throws ServiceError RPC_URL_FORBIDDEN as the SSRF guard does; RATE_LIMITED when this caller, OVERLOADED when all
   * callers together have too many endpoints open
   */
  open(chain: CustomEndpointTarget, url: string, { caller, signal }: EndpointCaller): Promise<CustomEndpoint>;
  /** Returns the number of open endpoints. */
  count(): number;
}

/** The chain that an endpoint serves. */
export interface CustomEndpointTarget {
  readonly slug: string;
  readonly chainId: number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
}

export interface CustomEndpointsOptions extends SsrfGuardOptions {
  readonly onFailure: (failure: EndpointFailure) => void;
}

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Timeout of one read with all its attempts and the DNS lookup before it, in milliseconds. */
const READ_TIMEOUT_MS = 3_000;
/** Connections per endpoint. */
const MAX_CONNECTIONS = 4;
/** Open endpoints per caller: more than a network has chains. */
const MAX_OPEN_PER_CALLER = 16;
/** Open endpoints of all callers. With the longest response on every connection they need 256 MiB. */
const MAX_OPEN = 64;

export function createCustomEndpoints(options: CustomEndpointsOptions): CustomEndpoints {
  const { onFailure } = options;
  const validateUrl = createSsrfGuard(options);
  const openByCaller = new Map<string, number>();
  let openCount = 0;

  /** Reserves a slot and returns the function that releases it. */
  function reserveSlot(caller: string, field: string): () => void {
    const count = openByCaller.get(caller) ?? 0;
    if (count >= MAX_OPEN_PER_CALLER) {
      const message = "too many custom endpoints of this client are in use";
      throw new ServiceError("RATE_LIMITED", message, { field, retryAfterSeconds: 1 });
    }
    if (openCount >= MAX_OPEN) {
      const message = "too many custom endpoints are in use";
      throw new ServiceError("OVERLOADED", message, { field, retryAfterSeconds: 1 });
    }
    openByCaller.set(caller, count + 1);
    openCount += 1;
    return () => {
      const remaining = (openByCaller.get(caller) ?? 0) - 1;
      if (remaining > 0) openByCaller.set(caller, remaining);
      else openByCaller.delete(caller);
      openCount -= 1;
    };
  }

  return {
    count: () => openCount,
    async open({ slug, chainId, onEndpointRequest }, url, { caller, signal }) {
      const field = `rpcUrl[${slug}]`;
      const startedAt = monotonicNow();
      const slot = createRefCount(reserveSlot(caller, field));
      try {
        const { href, addresses } = await validateUrl(url, field, READ_TIMEOUT_MS, signal);
        const closing = new AbortController();
        const connect = buildConnector({
          timeout: READ_TIMEOUT_MS,
          ...(addresses && { lookup: createPinnedLookup(addresses) }),
        });
        const dispatcher = new Agent({
          connect: retainWhileConnecting(slot, connect),
          connections: MAX_CONNECTIONS,
          maxResponseSize: MAX_RESPONSE_BYTES,
        });
        const client = createEndpointPool({
          slug,
          chainId,
          urls: [href],
          nameEndpoint: () => CUSTOM_ENDPOINT_NAME,
          dispatcher,
          maxBytes: MAX_RESPONSE_BYTES,
          onFailure,
          onEndpointRequest,
          closing: closing.signal,
        });
        return {
          client: withReadTimeout(client, READ_TIMEOUT_MS - (monotonicNow() - startedAt)),
          async close() {
            closing.abort();
            await dispatcher.destroy();
            slot.release();
          },
        };
      } catch (error) {
        slot.release();
        throw error;
      }
    },
  };
}

/**
 * Limits the time of every read, and reports every failure with the same message: details would tell the caller what
 * listens at the address.
 */
function withReadTimeout(client: ChainClient, timeoutMs: number): ChainClient {
  async function runBounded<T>(outer: AbortSignal, read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const scope = createAbortScope(outer, timeoutMs);
    try {
      return await read(scope.signal);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const message = `no RPC endpoint of ${client.slug} responded`;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: error });
    } finally {
      scope.cancel();
    }
  }
  return {
    slug: client.slug,
    send: (method, params, outer, validate) =>
      runBounded(outer, (signal) => client.send(method, params, signal, validate)),
    sendBatch: (calls, outer) => runBounded(outer, (signal) => client.sendBatch(calls, signal)),
    getLogs: (filter, range, newestFirst, outer, onRequest) =>
      runBounded(outer, (signal) => client.getLogs(filter, range, newestFirst, signal, onRequest)),
  };
}

/** Returns the validated addresses, whatever the host name resolves to now. */
function createPinnedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (options.all) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}
