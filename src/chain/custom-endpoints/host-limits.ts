import { LRUCache } from "lru-cache";
import { ServiceError } from "../../errors.js";
import { monotonicNow, sleep } from "../../resilience/clock.js";
import { FairSemaphore } from "../../resilience/fair-semaphore.js";
import { TokenBucket } from "../../resilience/token-bucket.js";

/** A host that callers name: its name and, if it was resolved here, its addresses. */
export interface CustomHost {
  readonly name: string;
  readonly addresses: readonly string[];
}

/** Connections of all callers together; one caller gets at most half. They take some fifty kilobytes each. */
export const MAX_CONNECTIONS = 64;
/** Connections to one address: more than one call with nine names at one provider needs. */
export const MAX_CONNECTIONS_PER_ADDRESS = 32;
export const MAX_CONNECTIONS_PER_NAME = 16;
/** Requests per second to one name and to one address; one caller gets at most half. */
export const MAX_REQUESTS_PER_SECOND = 200;
/** Requests that one counts as whose response is too complex: it costs a connection, which ends with it. */
const COMPLEX_RESPONSE_REQUESTS = 20;
/** How long a request may wait for its turn, in milliseconds. */
const MAX_REQUEST_WAIT_MS = 1_000;
/** Buckets beyond this number are forgotten, the least recently used first. Full ones hold no information anyway. */
const MAX_BUCKETS = 4_096;
const NAME_PREFIX = "name ";

/**
 * Limits what callers can make this process do to a host that they name, over all chains and callers. Whoever owns the host
 * need not know the callers, and several names may stand for one address.
 */
export class CustomHostLimits {
  readonly #now: () => number;
  readonly #sleep: typeof sleep;
  readonly #connections = new FairSemaphore(MAX_CONNECTIONS / 2);
  /** The connections to each name and address in use, and how many use or await them. */
  readonly #connectionsByKey = new Map<string, { readonly permits: FairSemaphore; users: number }>();
  readonly #requestsByKey: LRUCache<string, TokenBucket, number>;

  constructor(options: { readonly now?: () => number; readonly sleep?: typeof sleep } = {}) {
    this.#now = options.now ?? monotonicNow;
    this.#sleep = options.sleep ?? sleep;
    this.#requestsByKey = new LRUCache({
      max: MAX_BUCKETS,
      memoMethod: (_key, _stale, { context: perSecond }) =>
        new TokenBucket({ perSecond, burst: perSecond, now: this.#now }),
    });
  }

  /**
   * Waits until a connection to the host may be made. Returns the function that releases it, to be called once when the
   * connection is closed. Rejects with the signal's reason.
   */
  acquireConnection(caller: string, host: CustomHost, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      let hold = (): Promise<void> =>
        this.#connections.acquire(caller, signal, () => new Promise((release) => resolve(release)));
      // The last is acquired first: all acquire permits in the same order, and those that all hosts share in the end.
      for (const key of listKeys(host).reverse()) {
        const holdNext = hold;
        hold = () => this.#withPermits(key, (permits) => permits.acquire(caller, signal, holdNext));
      }
      hold().catch(reject);
    });
  }

  /**
   * Waits until a request may be sent to the host.
   * @throws ServiceError OVERLOADED when that would take too long. Rejects with the signal's reason.
   */
  async acquireRequest(caller: string, host: CustomHost, signal: AbortSignal): Promise<void> {
    const ofAll = listKeys(host).map((key) => this.#requestsByKey.memo(key, { context: MAX_REQUESTS_PER_SECOND }));
    const buckets = [...ofAll, ...this.#listBuckets(caller, host)];
    const waitMs = Math.max(...buckets.map((bucket) => bucket.waitMs()));
    if (waitMs > MAX_REQUEST_WAIT_MS) {
      const message = "too many requests are sent to the host of this rpcUrl: try again later or name another host";
      throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
    }
    for (const bucket of buckets) bucket.take(1);
    if (waitMs === 0) return;
    await this.#sleep(waitMs, signal);
    signal.throwIfAborted();
  }

  /** Counts a response that was given up as too complex as more requests of its caller, but not of others. */
  countComplexResponse(caller: string, host: CustomHost): void {
    for (const bucket of this.#listBuckets(caller, host)) bucket.take(COMPLEX_RESPONSE_REQUESTS - 1);
  }

  /** Returns what counts the requests of one caller. */
  #listBuckets(caller: string, host: CustomHost): TokenBucket[] {
    return listKeys(host).map((key) =>
      this.#requestsByKey.memo(`${caller} ${key}`, { context: MAX_REQUESTS_PER_SECOND / 2 }),
    );
  }

  /** Keeps the connections of a name or address only while somebody uses or awaits one. */
  async #withPermits(key: string, use: (permits: FairSemaphore) => Promise<void>): Promise<void> {
    const capacity = key.startsWith(NAME_PREFIX) ? MAX_CONNECTIONS_PER_NAME : MAX_CONNECTIONS_PER_ADDRESS;
    const entry = this.#connectionsByKey.get(key) ?? { permits: new FairSemaphore(capacity / 2), users: 0 };
    this.#connectionsByKey.set(key, entry);
    entry.users += 1;
    try {
      await use(entry.permits);
    } finally {
      entry.users -= 1;
      if (entry.users === 0) this.#connectionsByKey.delete(key);
    }
  }
}

/** Returns what a host is counted by, in a fixed order: one key for its name and one for each address. */
function listKeys({ name, addresses }: CustomHost): string[] {
  return [`${NAME_PREFIX}${name}`, ...addresses.map((address) => `address ${address}`).sort()];
}
