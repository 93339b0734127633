import { ServiceError } from "../../errors.js";
import {
  type CachePeers,
  createStaleWhileRevalidateCache,
  type SourceHealth,
  type StaleWhileRevalidateCache,
} from "../../resilience/stale-while-revalidate.js";
import { UpstreamError } from "../../resilience/upstream-error.js";

/** Client of Circle's attestation API, which returns the signatures of CCTP messages. */
export interface AttestationClient {
  /**
   * Returns the attestation of a message by its hash, as 0x-prefixed hex; undefined when there is none. Concurrent calls
   * share one request. Attestations are cached forever, their absence for a minute.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the source does not respond and never has for this message.
   */
  find(messageHash: string): Promise<string | undefined>;
  /** Returns the health of the source; failing if the last request for any message failed. */
  health(): SourceHealth;
}

export interface AttestationClientOptions {
  readonly baseUrl: string;
  readonly fetchJson: (url: string) => Promise<unknown>;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  /**
   * Connects the caches with those of other processes; undefined: there are none.
   * @param findCache returns the cache of a message hash; undefined: not such a hash, or too many
   * @returns a function that returns the peers of the cache of a hash
   */
  readonly share?:
    | ((findCache: (messageHash: string) => SharedCache | undefined) => (messageHash: string) => AttestationPeers)
    | undefined;
}

type AttestationCache = StaleWhileRevalidateCache<string | undefined>;
type SharedCache = Pick<AttestationCache, "offer" | "findNewer">;
type AttestationPeers = CachePeers<string | undefined>;

/** How attestations cross to other processes: null stands for absent. */
export const attestationCodec = {
  encode: (attestation: string | undefined): string | null => attestation ?? null,
  decode(json: unknown): string | undefined {
    if (json === null) return undefined;
    if (typeof json === "string" && ATTESTATION_PATTERN.test(json)) return json;
    throw new TypeError("not an attestation");
  },
};

/** Signatures of 65 bytes, one per attester. */
const ATTESTATION_PATTERN = /^0x(?:[0-9a-f]{2}){1,4096}$/i;
const ABSENT_TTL_MS = 60_000;
/** Pause between requests after a failure. */
const ERROR_TTL_MS = 1_000;
const MESSAGE_HASH_PATTERN = /^0x[0-9a-f]{64}$/;
/** There is one sample message per destination chain. */
const MAX_CACHES = 64;

export function createAttestationClient(options: AttestationClientOptions): AttestationClient {
  const { baseUrl, fetchJson, now } = options;
  const caches = new Map<string, AttestationCache>();
  const getPeers = options.share?.((messageHash) => {
    const isAcceptable = MESSAGE_HASH_PATTERN.test(messageHash) && caches.size < MAX_CACHES;
    const cache = isAcceptable ? getCache(messageHash) : caches.get(messageHash);
    return cache && toSharedCache(cache);
  });

  function getCache(messageHash: string): AttestationCache {
    const existing = caches.get(messageHash);
    if (existing !== undefined) return existing;
    const cache: AttestationCache = createStaleWhileRevalidateCache<string | undefined>({
      // An attestation never changes; other processes may ask for one that is no longer fresh.
      load: async () => cache.peekStale()?.value ?? fetchAttestation(`${baseUrl}/v1/attestations/${messageHash}`),
      now,
      freshMs: ABSENT_TTL_MS,
      staleMs: Number.POSITIVE_INFINITY,
      errorTtlMs: ERROR_TTL_MS,
      onError: () => {},
      peers: getPeers?.(messageHash),
    });
    caches.set(messageHash, cache);
    return cache;
  }

  async function fetchAttestation(url: string): Promise<string | undefined> {
    try {
      const { attestation } = ((await fetchJson(url)) ?? {}) as { attestation?: unknown };
      if (attestation === "PENDING") return undefined;
      if (typeof attestation === "string" && ATTESTATION_PATTERN.test(attestation)) return attestation;
      // An error, since without an attestation the fee would be a different one.
      throw new TypeError("the attestation has an unexpected format");
    } catch (error) {
      // 404 means that the message has no attestation.
      if (error instanceof UpstreamError && error.status === 404) return undefined;
      throw error;
    }
  }

  return {
    async find(messageHash) {
      const cache = getCache(messageHash);
      // An attestation never changes, so it is served at any age.
      const attestation = cache.peekStale()?.value;
      if (attestation !== undefined) return attestation;
      try {
        return (await cache.get()).value;
      } catch (cause) {
        throw new ServiceError("UPSTREAM_UNAVAILABLE", "the CCTP attestation source does not respond", { cause });
      }
    },
    health() {
      const all = [...caches.values()].map((cache) => cache.health());
      const ages = all.flatMap(({ ageMs }) => ageMs ?? []);
      const isFailing = all.some(({ state }) => state === "failing");
      return {
        state: isFailing ? "failing" : ages.length > 0 ? "ok" : "unknown",
        ageMs: ages.length > 0 ? Math.min(...ages) : undefined,
      };
    },
  };
}

/** Returns the cache as other processes see it: that they have not found an attestation replaces none that is known. */
function toSharedCache(cache: AttestationCache): SharedCache {
  return {
    findNewer: cache.findNewer,
    offer(entry) {
      if (entry.value !== undefined || cache.peekStale()?.value === undefined) cache.offer(entry);
    },
  };
}
