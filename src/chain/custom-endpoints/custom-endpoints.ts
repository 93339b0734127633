import type { LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { monotonicNow } from "../../resilience/clock.js";
import type { ChainClient } from "../chain-client.js";
import type { EndpointRequestObserver } from "../endpoints/endpoint.js";
import { createEndpointPool, type EndpointFailure } from "../endpoints/endpoint-pool.js";
import type { ResolvedAddress } from "./resolve-host.js";
import { createSsrfGuard, type SsrfGuardOptions } from "./ssrf-guard.js";

/** Who names an endpoint. */
export interface EndpointCaller {
  /** By which callers are told apart. */
  readonly caller: string;
  /** Fires when the caller is gone. */
  readonly signal: AbortSignal;
}

/** A chain client on a caller's endpoint, with connections of its own. */
export interface CustomEndpoint {
  readonly client: ChainClient;
  close(): Promise<void>;
}

/** The endpoints that callers name. */
export interface CustomEndpoints {
  /**
   * Opens an endpoint, to be closed by who opened it. It is connected to at exactly the addresses that were checked, so
   * that its name cannot turn into a private address afterwards.
   * @throws ServiceError RPC_URL_FORBIDDEN as the guard does; RATE_LIMITED when this caller, OVERLOADED when all
   * callers together have too many open.
   */
  open(chain: CustomEndpointChain, text: string, { caller, signal }: EndpointCaller): Promise<CustomEndpoint>;
  /** How many are open. */
  count(): number;
}

/** The chain that an endpoint is opened for. */
export interface CustomEndpointChain {
  readonly slug: string;
  readonly chainId: number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
}

export interface CustomEndpointsOptions extends SsrfGuardOptions {
  readonly onFailure: (failure: EndpointFailure) => void;
}

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Longest time for one read, with all its attempts and the look-up of the host before it, in milliseconds. */
const READ_TIMEOUT_MS = 3_000;
/** Connections to one endpoint. */
const MAX_CONNECTIONS = 4;
/** Endpoints that one caller may have open: more than a network has chains. */
const MAX_OPEN_PER_CALLER = 16;
/** Endpoints open at all; with every connection reading the longest answer they need 256 MiB. */
const MAX_OPEN = 64;

export function createCustomEndpoints(options: CustomEndpointsOptions): CustomEndpoints {
  const { onFailure } = options;
  const guard = createSsrfGuard(options);
  const openByCaller = new Map<string, number>();
  let openInTotal = 0;

  /** Takes a place and gives what gives it back. */
  function takePlace(caller: string, field: string): () => void {
    const count = openByCaller.get(caller) ?? 0;
    if (count >= MAX_OPEN_PER_CALLER) {
      const message = "too many endpoints that this address names are in use";
      throw new ServiceError("RATE_LIMITED", message, { field, retryAfterSeconds: 1 });
    }
    if (openInTotal >= MAX_OPEN) {
      const message = "too many endpoints that callers name are in use";
      throw new ServiceError("OVERLOADED", message, { field, retryAfterSeconds: 1 });
    }
    openByCaller.set(caller, count + 1);
    openInTotal += 1;
    return () => {
      const left = (openByCaller.get(caller) ?? 0) - 1;
      if (left > 0) openByCaller.set(caller, left);
      else openByCaller.delete(caller);
      openInTotal -= 1;
    };
  }

  return {
    count: () => openInTotal,
    async open({ slug, chainId, onEndpointRequest }, text, { caller, signal }) {
      const field = `rpcUrl[${slug}]`;
      const startedAt = monotonicNow();
      const place = createRefCount(takePlace(caller, field));
      try {
        const { href, addresses } = await guard(text, field, READ_TIMEOUT_MS, signal);
        const closing = new AbortController();
        const dispatcher = new Agent({
          connect: holdWhileConnecting(
            place,
            buildConnector({ timeout: READ_TIMEOUT_MS, ...(addresses && { lookup: createPinnedLookup(addresses) }) }),
          ),
          connections: MAX_CONNECTIONS,
          maxResponseSize: MAX_RESPONSE_BYTES,
        });
        const client = createEndpointPool({
          slug,
          chainId,
          urls: [href],
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
            place.release();
          },
        };
      } catch (error) {
        place.release();
        throw error;
      }
    },
  };
}

/** A place that is given back when all have left who are in it. */
interface RefCount {
  retain(): void;
  release(): void;
}

/** A place with one in it. */
function createRefCount(giveBack: () => void): RefCount {
  let inside = 1;
  return {
    retain() {
      inside += 1;
    },
    release() {
      inside -= 1;
      if (inside === 0) giveBack();
    },
  };
}

/** Nothing ends a connection that is being made but its own time limit: until then it keeps the place. */
function holdWhileConnecting(place: RefCount, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    place.retain();
    connect(options, (...made) => {
      place.release();
      callback(...made);
    });
  };
}

/** Ends every read in time, and says the same of each that fails: how it failed would tell what is at the address. */
function withReadTimeout(client: ChainClient, timeoutMs: number): ChainClient {
  async function within<T>(outer: AbortSignal, read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const limit = createAbortScope(outer, timeoutMs);
    try {
      return await read(limit.signal);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const message = `no RPC endpoint of ${client.slug} responded`;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: error });
    } finally {
      limit.cancel();
    }
  }
  return {
    slug: client.slug,
    send: (method, params, outer, isAnswer) => within(outer, (signal) => client.send(method, params, signal, isAnswer)),
    sendBatch: (calls, outer) => within(outer, (signal) => client.sendBatch(calls, signal)),
    getLogs: (filter, range, newestFirst, outer) =>
      within(outer, (signal) => client.getLogs(filter, range, newestFirst, signal)),
  };
}

/** Gives the addresses that were checked, whatever the name has become since. */
function createPinnedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (options.all) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}
