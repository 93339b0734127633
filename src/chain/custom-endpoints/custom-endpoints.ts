import type { LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { ServiceError } from "../../errors.js";
import { steadyNow } from "../../resilience/clock.js";
import { createLimit } from "../../resilience/fetch-json.js";
import type { ChainClient } from "../chain-client.js";
import type { ExchangeObserver } from "../endpoints/endpoint.js";
import { createEndpointPool, type EndpointFailure } from "../endpoints/endpoint-pool.js";
import type { ResolvedAddress } from "./resolve-host.js";
import { createUrlGuard, type UrlGuardOptions } from "./ssrf-guard.js";

/** Who names an endpoint. */
export interface Caller {
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
  open(chain: OpenedChain, text: string, { caller, signal }: Caller): Promise<CustomEndpoint>;
  /** How many are open. */
  count(): number;
}

/** The chain that an endpoint is opened for. */
export interface OpenedChain {
  readonly slug: string;
  readonly chainId: number;
  readonly onExchange?: ExchangeObserver | undefined;
}

export interface CustomEndpointsOptions extends UrlGuardOptions {
  readonly onFailure: (failure: EndpointFailure) => void;
}

const maxAnswerBytes = 1024 * 1024;
/** Longest time for one read, with all its attempts and the look-up of the host before it, in milliseconds. */
const readMs = 3_000;
/** Connections to one endpoint. */
const maxConnections = 4;
/** Endpoints that one caller may have open: more than a network has chains. */
const maxPerCaller = 16;
/** Endpoints open at all; with every connection reading the longest answer they need 256 MiB. */
const maxInTotal = 64;

export function createCustomEndpoints(options: CustomEndpointsOptions): CustomEndpoints {
  const { onFailure } = options;
  const guard = createUrlGuard(options);
  const openByCaller = new Map<string, number>();
  let openInTotal = 0;

  /** Takes a place and gives what gives it back. */
  function takePlace(caller: string, field: string): () => void {
    const count = openByCaller.get(caller) ?? 0;
    if (count >= maxPerCaller) {
      const message = "too many endpoints that this address names are in use";
      throw new ServiceError("RATE_LIMITED", message, { field, retryAfterSeconds: 1 });
    }
    if (openInTotal >= maxInTotal) {
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
    async open({ slug, chainId, onExchange }, text, { caller, signal }) {
      const field = `rpcUrl[${slug}]`;
      const startedAt = steadyNow();
      const place = shared(takePlace(caller, field));
      try {
        const { href, addresses } = await guard(text, field, readMs, signal);
        const closing = new AbortController();
        const dispatcher = new Agent({
          connect: held(place, buildConnector({ timeout: readMs, ...(addresses && { lookup: pinned(addresses) }) })),
          connections: maxConnections,
          maxResponseSize: maxAnswerBytes,
        });
        const client = createEndpointPool({
          slug,
          chainId,
          urls: [href],
          dispatcher,
          maxBytes: maxAnswerBytes,
          onFailure,
          onExchange,
          closing: closing.signal,
        });
        return {
          client: bounded(client, readMs - (steadyNow() - startedAt)),
          async close() {
            closing.abort();
            await dispatcher.destroy();
            place.leave();
          },
        };
      } catch (error) {
        place.leave();
        throw error;
      }
    },
  };
}

/** A place that is given back when all have left who are in it. */
interface Place {
  enter(): void;
  leave(): void;
}

/** A place with one in it. */
function shared(giveBack: () => void): Place {
  let inside = 1;
  return {
    enter() {
      inside += 1;
    },
    leave() {
      inside -= 1;
      if (inside === 0) giveBack();
    },
  };
}

/** Nothing ends a connection that is being made but its own time limit: until then it keeps the place. */
function held(place: Place, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    place.enter();
    connect(options, (...made) => {
      place.leave();
      callback(...made);
    });
  };
}

/** Ends every read in time, and says the same of each that fails: how it failed would tell what is at the address. */
function bounded(client: ChainClient, timeoutMs: number): ChainClient {
  async function within<T>(outer: AbortSignal, read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const limit = createLimit(outer, timeoutMs);
    try {
      return await read(limit.signal);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const message = `no RPC endpoint of ${client.slug} gives an answer`;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: error });
    } finally {
      limit.end();
    }
  }
  return {
    slug: client.slug,
    send: (method, params, outer, isAnswer) => within(outer, (signal) => client.send(method, params, signal, isAnswer)),
    batch: (calls, outer) => within(outer, (signal) => client.batch(calls, signal)),
    logs: (filter, range, newestFirst, outer) =>
      within(outer, (signal) => client.logs(filter, range, newestFirst, signal)),
  };
}

/** Gives the addresses that were checked, whatever the name has become since. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (options.all) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}
