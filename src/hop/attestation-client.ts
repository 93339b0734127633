import { LRUCache } from "lru-cache";
import { ServiceError } from "../errors.js";
import { raceAbort } from "../resilience/abort-scope.js";
import { UpstreamError } from "../resilience/http-client/upstream-error.js";
import {
  type SourceHealth,
  StaleWhileRevalidateCache,
  type StaleWhileRevalidateOptions,
} from "../resilience/stale-while-revalidate.js";
import { buildSampleCctpMessage } from "./cctp.js";

type AttestationCacheOptions = StaleWhileRevalidateOptions<string | undefined>;
type AttestationCache = StaleWhileRevalidateCache<string | undefined>;

/** Signatures of 65 bytes, one per attester. */
const ATTESTATION_PATTERN = /^0x(?:[0-9a-f]{2}){1,4096}$/i;
/** The message by which `findOutage` tells whether the source works. */
const PROBED_MESSAGE = buildSampleCctpMessage("ethereum")?.hash ?? "";
const UNKNOWN_ATTESTATION = "does not know messages that it has attested";
const ABSENT_TTL_MS = 60_000;
/** How long a message that waits for its attestation is not asked for again. Circle accepts 35 requests a second. */
const WAITING_TTL_MS = 10_000;
/** Messages of transfers whose attestations are kept, at most a kilobyte each. */
const MAX_TRANSFER_MESSAGES = 1_000;
/** Pause between requests after a failure. */
const ERROR_TTL_MS = 1_000;

/** Client of Circle's attestation API, which returns the signatures of CCTP messages. */
export class AttestationClient {
  readonly #options;
  readonly #caches = new Map<string, AttestationCache>();
  readonly #ofTransfers: LRUCache<string, { readonly attestation: string | undefined; readonly failure?: unknown }>;
  /** Whether the source knows the attestation of a message that it has attested long ago. */
  readonly #probe: StaleWhileRevalidateCache<boolean>;

  constructor(options: {
    readonly baseUrl: string;
    readonly fetchJson: (url: string) => Promise<unknown>;
    /** Milliseconds on a monotonic clock. */
    readonly now: () => number;
    /**
     * Returns a function that loads the attestation of a message once for several processes.
     * @param ttlMs how long others use it
     */
    readonly share?: ((messageHash: string, ttlMs: number) => AttestationCacheOptions["share"]) | undefined;
  }) {
    this.#options = options;
    const { baseUrl, now } = options;
    this.#ofTransfers = new LRUCache({
      max: MAX_TRANSFER_MESSAGES,
      perf: { now },
      ttlResolution: 0,
      fetchMethod: async (hash, _, { options: entry }) => {
        try {
          const attestation = await this.#fetchAttestation(`${baseUrl}/v1/attestations/${hash}`);
          entry.ttl = attestation === undefined ? WAITING_TTL_MS : 0;
          return { attestation };
        } catch (failure) {
          entry.ttl = ERROR_TTL_MS;
          return { attestation: undefined, failure };
        }
      },
    });
    this.#probe = new StaleWhileRevalidateCache({
      load: async () => (await this.#fetchAttestation(`${baseUrl}/v1/attestations/${PROBED_MESSAGE}`)) !== undefined,
      now,
      freshMs: ABSENT_TTL_MS,
      staleMs: ABSENT_TTL_MS,
      errorTtlMs: ERROR_TTL_MS,
      onError: () => {},
    });
  }

  /**
   * Returns the attestation of a message by its hash, as 0x-prefixed hex; undefined when there is none. Concurrent calls
   * share one request. Attestations are cached forever, their absence for a minute.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the source does not respond and never has for this message.
   */
  async find(messageHash: string): Promise<string | undefined> {
    const cache = this.#caches.get(messageHash) ?? this.#createCache(messageHash);
    // An attestation never changes, so it is served at any age.
    const attestation = cache.peekStale()?.value;
    if (attestation !== undefined) return attestation;
    try {
      return (await cache.get()).value;
    } catch (cause) {
      throw notRespondingError(cause);
    }
  }

  /**
   * Returns the attestation of a transfer's message by its hash, as the source has it now; undefined: it waits for one. A
   * request that the caller no longer waits for goes on, for the next caller.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the source does not respond, or not before the signal fires
   */
  async findCurrent(messageHash: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const found = await raceAbort(this.#ofTransfers.fetch(messageHash), signal);
      if (found?.failure !== undefined) throw found.failure;
      return found?.attestation?.toLowerCase();
    } catch (cause) {
      throw notRespondingError(cause);
    }
  }

  /**
   * Returns why attestations cannot be had now, as the end of a sentence about the source; undefined: they can. Asks for a
   * message that is attested, at most once a minute, and does not wait for a source that has failed.
   */
  async findOutage(): Promise<string | undefined> {
    const cached = this.#probe.peek();
    const isFailing = (): boolean => this.#probe.health().state === "failing";
    const entry = cached ?? (isFailing() ? undefined : await this.#probe.get().catch(() => undefined));
    if (entry === undefined || isFailing()) return "does not respond";
    return entry.value ? undefined : UNKNOWN_ATTESTATION;
  }

  /**
   * Checks, for operators, what `findOutage` tells callers.
   * @throws UpstreamError how the source fails, in words without a URL; Error if it does not know what it has attested
   */
  async check(): Promise<void> {
    const { value: isKnown } = await this.#probe.get();
    if (!isKnown) throw new Error(UNKNOWN_ATTESTATION);
  }

  /** Returns the health of the source; failing if the last request for any message failed. */
  health(): SourceHealth {
    const all = [...this.#caches.values()].map((cache) => cache.health());
    const ages = all.flatMap(({ ageMs }) => ageMs ?? []);
    const isFailing = all.some(({ state }) => state === "failing");
    return {
      state: isFailing ? "failing" : ages.length > 0 ? "ok" : "unknown",
      ageMs: ages.length > 0 ? Math.min(...ages) : undefined,
      failure: all.find(({ failure }) => failure !== undefined)?.failure,
    };
  }

  #createCache(messageHash: string): AttestationCache {
    const { baseUrl, now, share } = this.#options;
    const cache: AttestationCache = new StaleWhileRevalidateCache<string | undefined>({
      load: () => this.#fetchAttestation(`${baseUrl}/v1/attestations/${messageHash}`),
      now,
      freshMs: ABSENT_TTL_MS,
      staleMs: Number.POSITIVE_INFINITY,
      errorTtlMs: ERROR_TTL_MS,
      onError: () => {},
      share: share?.(messageHash, ABSENT_TTL_MS),
    });
    this.#caches.set(messageHash, cache);
    return cache;
  }

  async #fetchAttestation(url: string): Promise<string | undefined> {
    try {
      const { attestation } = ((await this.#options.fetchJson(url)) ?? {}) as { attestation?: unknown };
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
}

function notRespondingError(cause: unknown): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", "the CCTP attestation source does not respond", { cause });
}
