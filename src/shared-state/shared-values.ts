import type { CacheEntry, CachePeers, StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";
import type { SharedState } from "./shared-state.js";

/** How a value crosses to other processes, as data that JSON can hold. */
export interface ValueCodec<T> {
  encode(value: T): unknown;
  /** @throws TypeError for anything that is not such a value */
  decode(json: unknown): T;
}

type SharedCache<T> = Pick<StaleWhileRevalidateCache<T>, "offer" | "findNewer">;

/** A value under its key. Times are on the shared clock. */
interface ValueMessage {
  readonly key: string;
  readonly readAt: number;
  readonly value: unknown;
}

interface RequestMessage {
  readonly key: string;
  /** When the value was read that the requester has; null: it has none. */
  readonly newerThan: number | null;
}

/**
 * Connects the caches of a topic with those of the other processes, so that one process loads for all.
 * @param findCache returns the cache of a key, also of one that only other processes have used; undefined: no such key
 * @returns a function that returns the peers of the cache of a key
 */
export function shareValues<T>(
  sharedState: SharedState,
  name: string,
  codec: ValueCodec<T>,
  findCache: (key: string) => SharedCache<T> | undefined,
): (key: string) => CachePeers<T> {
  const { clock } = sharedState;

  function encode(key: string, { value, readAt }: CacheEntry<T>): string {
    const message: ValueMessage = { key, readAt: clock.toShared(readAt), value: codec.encode(value) };
    return JSON.stringify(message);
  }

  function decode(text: string): { readonly key: string; readonly entry: CacheEntry<T> } {
    const { key, readAt, value } = JSON.parse(text) as ValueMessage;
    if (typeof key !== "string" || !Number.isFinite(readAt)) throw new TypeError("not a shared value");
    return { key, entry: { value: codec.decode(value), readAt: clock.toMonotonic(readAt) } };
  }

  const topic = sharedState.join(name, {
    onPublished(text) {
      const { key, entry } = decode(text);
      findCache(key)?.offer(entry);
    },
    async onRequest(text) {
      const { key, newerThan } = JSON.parse(text) as RequestMessage;
      const since = newerThan === null ? undefined : clock.toMonotonic(newerThan);
      const entry = await findCache(key)?.findNewer(since);
      return entry && encode(key, entry);
    },
    // The next caller that needs a newer value loads it.
    onBecomeReader() {},
  });

  return (key) => ({
    async request(newerThan) {
      const request: RequestMessage = { key, newerThan: newerThan === undefined ? null : clock.toShared(newerThan) };
      const reply = await topic.request(JSON.stringify(request));
      if (reply === undefined) return undefined;
      try {
        return decode(reply).entry;
      } catch {
        return undefined;
      }
    },
    publish: (entry) => topic.publish(encode(key, entry)),
  });
}
