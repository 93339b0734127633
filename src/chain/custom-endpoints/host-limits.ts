import { setMaxListeners } from "node:events";
import { LRUCache } from "lru-cache";
import { ServiceError } from "../../errors.js";
import { createFairQuota, type FairQuota } from "../../resilience/fair-quota.js";
import { createTokenBucket, type TokenBucket } from "../endpoints/budget/token-bucket.js";

/** A host that callers name: its name and, if it was resolved here, its addresses. */
export interface CustomHost {
  readonly name: string;
  readonly addresses: readonly string[];
}

/**
 * Limits what callers can make this process do to a host, over all chains and callers. Whoever owns the host need not
 * know the callers, and several names may stand for one address.
 */
export interface HostLimits {
  /**
   * Waits until a connection to the host may be made. Returns the function that releases it, to be called once when the
   * connection is closed. Rejects with the signal's reason.
   */
  acquireConnection(caller: string, host: CustomHost, signal: AbortSignal): Promise<() => void>;
  /**
   * Waits until a request may be sent to the host.
   * @throws ServiceError OVERLOADED when that would take too long. Rejects with the signal's reason.
   */
  acquireRequest(caller: string, host: CustomHost, signal: AbortSignal): Promise<void>;
  /** Returns the number of connections that are open or being made. */
  countConnections(): number;
}

export interface HostLimitsOptions {
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Connections of all callers together; one caller gets at most half. They take some fifty kilobytes each. */
export const MAX_CONNECTIONS = 64;
/** Connections to one address: more than one call with nine names at one provider needs. */
export const MAX_CONNECTIONS_PER_ADDRESS = 32;
export const MAX_CONNECTIONS_PER_NAME = 16;
/** Requests per second to one name and to one address; one caller gets at most half. */
export const MAX_REQUESTS_PER_SECOND = 200;
/** How long a request may wait for its turn, in milliseconds. */
const MAX_REQUEST_WAIT_MS = 1_000;
/** Buckets beyond this number are forgotten, the least recently used first. Full ones hold no information anyway. */
const MAX_BUCKETS = 4_096;

export function createHostLimits({ now, sleep }: HostLimitsOptions): HostLimits {
  const total = createFairQuota(() => MAX_CONNECTIONS);
  /** Quotas in use, by host name or address. */
  const quotas = new Map<string, FairQuota>();
  const buckets = new LRUCache<string, TokenBucket>({ max: MAX_BUCKETS });
  /** Each tries to get its connection and returns whether it did. In the order of arrival. */
  const waiters = new Set<() => boolean>();

  /** Takes a slot of every quota that applies; undefined: one of them has none for the caller. */
  function tryAcquire(caller: string, host: CustomHost): (() => void) | undefined {
    const releases: (() => void)[] = [];
    const releaseAll = (): void => {
      for (const release of releases) release();
    };
    const limits = [
      [nameKey(host.name), MAX_CONNECTIONS_PER_NAME] as const,
      ...host.addresses.map((address) => [addressKey(address), MAX_CONNECTIONS_PER_ADDRESS] as const),
    ];
    for (const [key, capacity] of limits) {
      const quota = quotas.get(key) ?? createFairQuota(() => capacity);
      const release = quota.tryAcquire(caller);
      if (release === undefined) {
        releaseAll();
        return undefined;
      }
      quotas.set(key, quota);
      releases.push(() => {
        release();
        if (quota.heldCount() === 0) quotas.delete(key);
      });
    }
    const release = total.tryAcquire(caller);
    if (release === undefined) {
      releaseAll();
      return undefined;
    }
    releases.push(release);
    return () => {
      releaseAll();
      for (const admit of waiters) if (admit()) waiters.delete(admit);
    };
  }

  function getBucket(key: string, perSecond: number): TokenBucket {
    const known = buckets.get(key);
    if (known !== undefined) return known;
    const bucket = createTokenBucket({ perSecond, burst: perSecond, now });
    buckets.set(key, bucket);
    return bucket;
  }

  return {
    countConnections: () => total.heldCount(),
    acquireConnection(caller, host, signal) {
      return new Promise((resolve, reject) => {
        const admit = (): boolean => {
          const release = tryAcquire(caller, host);
          if (release === undefined) return false;
          signal.removeEventListener("abort", abort);
          resolve(release);
          return true;
        };
        const abort = (): void => {
          waiters.delete(admit);
          reject(signal.reason);
        };
        if (signal.aborted) return abort();
        // All connections of a call wait on one signal. That is no leak, but Node would warn about it.
        setMaxListeners(0, signal);
        signal.addEventListener("abort", abort, { once: true });
        if (!admit()) waiters.add(admit);
      });
    },
    async acquireRequest(caller, { name, addresses }, signal) {
      const applicable = [nameKey(name), ...addresses.map(addressKey)].flatMap((key) => [
        getBucket(key, MAX_REQUESTS_PER_SECOND),
        getBucket(`${caller} ${key}`, MAX_REQUESTS_PER_SECOND / 2),
      ]);
      const waitMs = Math.max(...applicable.map((bucket) => bucket.waitMs()));
      if (waitMs > MAX_REQUEST_WAIT_MS) {
        const message = "too many requests are sent to the host of this rpcUrl: try again later or name another host";
        throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
      }
      for (const bucket of applicable) bucket.take(1);
      if (waitMs === 0) return;
      await sleep(waitMs, signal);
      signal.throwIfAborted();
    },
  };
}

function nameKey(name: string): string {
  return `name ${name}`;
}

function addressKey(address: string): string {
  return `address ${address}`;
}
