import { isIP } from "node:net";
import { ServiceError } from "../../errors.js";
import { monotonicNow, sleep } from "../../resilience/clock.js";
import { Agent } from "../../resilience/http-client/undici.js";
import type { ChainClient } from "../chain-client.js";
import { createResponseMemory } from "../endpoints/budget/response-memory.js";
import type { EndpointRequestObserver } from "../endpoints/endpoint.js";
import type { EndpointFailure } from "../endpoints/endpoint-attempt.js";
import { createLimitedConnector } from "./connector.js";
import { createCustomClient } from "./custom-client.js";
import { type CustomHost, createHostLimits } from "./host-limits.js";
import { type ResolvedAddress, resolveHost } from "./resolve-host.js";
import { createSsrfGuard, type SsrfGuardOptions } from "./ssrf-guard.js";

/** The caller that names an endpoint. */
export interface EndpointCaller {
  /** Key that tells callers apart. */
  readonly caller: string;
  /** Aborts when the caller has left. */
  readonly signal: AbortSignal;
}

/** Opens the endpoints that callers name. */
export interface CustomEndpoints {
  /** Starts a session: the endpoints that one call names. They share connections with one another and with no other call. */
  startSession(caller: EndpointCaller): CustomEndpointSession;
  /** Returns the number of open endpoints. */
  count(): number;
}

export interface CustomEndpointSession {
  /**
   * Opens an endpoint, which the session closes. Connects only to the addresses that were validated, so that the host name
   * cannot change to a private address afterwards (DNS rebinding).
   * @throws ServiceError RPC_URL_FORBIDDEN as the SSRF guard does; RATE_LIMITED when this caller, OVERLOADED when all
   * callers together have too many endpoints open
   */
  open(chain: CustomEndpointTarget, url: string): Promise<ChainClient>;
  close(): Promise<void>;
}

/** The chain that an endpoint serves. */
export interface CustomEndpointTarget {
  readonly slug: string;
  readonly chainId: number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
}

/** How many custom endpoints may be open. */
export interface CustomEndpointLimits {
  readonly perCaller: number;
  readonly total: number;
}

export interface CustomEndpointsOptions extends SsrfGuardOptions {
  /** Default: DEFAULT_CUSTOM_ENDPOINT_LIMITS. */
  readonly limits?: CustomEndpointLimits;
  readonly onFailure: (failure: EndpointFailure) => void;
}

/** A caller may have more endpoints open than a network has chains. */
export const DEFAULT_CUSTOM_ENDPOINT_LIMITS: CustomEndpointLimits = { perCaller: 16, total: 64 };
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Bytes of responses that are being read, of all callers together; one caller gets at most half. */
export const MAX_RESPONSE_MEMORY_BYTES = 16 * 1024 * 1024;
/** Time limit of one read and the DNS lookup before it, in milliseconds. */
const READ_TIMEOUT_MS = 3_000;
/** Connections of one call to one origin. */
const MAX_CONNECTIONS_PER_ORIGIN = 4;
/** Idle connections are closed soon, since other callers may wait for one. */
const KEEP_ALIVE_MS = 200;

export function createCustomEndpoints(options: CustomEndpointsOptions): CustomEndpoints {
  const { onFailure, policy, limits = DEFAULT_CUSTOM_ENDPOINT_LIMITS, resolveHost: resolve = resolveHost } = options;
  const hostLimits = createHostLimits({ now: monotonicNow, sleep });
  const responseMemory = createResponseMemory({
    maxBytes: MAX_RESPONSE_MEMORY_BYTES,
    createError() {
      const message = "too many long responses of custom endpoints are being read: try again later";
      return new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
    },
  });
  const openByCaller = new Map<string, number>();
  let openCount = 0;

  /** Reserves a slot and returns the function that releases it. */
  function reserveSlot(caller: string, field: string): () => void {
    const count = openByCaller.get(caller) ?? 0;
    if (count >= limits.perCaller) {
      const message = "too many custom endpoints of this client are in use";
      throw new ServiceError("RATE_LIMITED", message, { field, retryAfterSeconds: 1 });
    }
    if (openCount >= limits.total) {
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

  function startSession({ caller, signal }: EndpointCaller): CustomEndpointSession {
    const closing = new AbortController();
    const slots: (() => void)[] = [];
    /** Lookups of this session: one per host, however many chains it serves. */
    const lookups = new Map<string, Promise<readonly ResolvedAddress[]>>();
    const validated = new Map<string, readonly ResolvedAddress[]>();
    const validateUrl = createSsrfGuard({
      ...options,
      resolveHost(name, lookupSignal) {
        const lookup = lookups.get(name) ?? resolve(name, lookupSignal);
        lookups.set(name, lookup);
        return lookup;
      },
    });
    const dispatcher = new Agent({
      connect: createLimitedConnector({
        timeoutMs: READ_TIMEOUT_MS,
        validated: policy === "any" ? undefined : validated,
        acquire: (hostname) => hostLimits.acquireConnection(caller, toHost(hostname), closing.signal),
      }),
      connections: MAX_CONNECTIONS_PER_ORIGIN,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxResponseSize: MAX_RESPONSE_BYTES,
    });

    function toHost(hostname: string): CustomHost {
      const name = removeBrackets(hostname);
      const addresses = validated.get(name)?.map(({ address }) => address) ?? (isIP(name) === 0 ? [] : [name]);
      return { name, addresses };
    }

    return {
      async open({ slug, chainId, onEndpointRequest }, url) {
        const field = `rpcUrl[${slug}]`;
        const startedAt = monotonicNow();
        slots.push(reserveSlot(caller, field));
        const { href, addresses } = await validateUrl(url, field, READ_TIMEOUT_MS, signal);
        const { hostname } = new URL(href);
        if (addresses !== undefined) validated.set(removeBrackets(hostname), addresses);
        const host = toHost(hostname);
        return createCustomClient({
          slug,
          chainId,
          url: href,
          dispatcher,
          maxBytes: MAX_RESPONSE_BYTES,
          openMemory: () => responseMemory.open(caller),
          acquireCalls: (_, requestSignal) => hostLimits.acquireRequest(caller, host, requestSignal),
          now: monotonicNow,
          onFailure,
          onEndpointRequest,
          timeoutMs: READ_TIMEOUT_MS - (monotonicNow() - startedAt),
        });
      },
      async close() {
        closing.abort();
        await dispatcher.destroy();
        for (const release of slots.splice(0)) release();
      },
    };
  }

  return { count: () => openCount, startSession };
}

/** Returns an IPv6 address without the brackets of a URL. */
function removeBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}
