import { ServiceError } from "../../errors.js";
import type { SourceHealth } from "../../resilience/stale-while-revalidate.js";
import { UpstreamError } from "../../resilience/upstream-error.js";

/** Circle's signatures under CCTP messages, by message hash. */
export interface AttestationClient {
  /**
   * The attestation as 0x-prefixed hex, or undefined when there is none. Callers share one request.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the source gives no answer and has never given one.
   */
  find(messageHash: string): Promise<string | undefined>;
  /** How the source is; failing where it fails for any of the messages. */
  health(): SourceHealth;
}

export interface AttestationClientOptions {
  readonly baseUrl: string;
  readonly fetchJson: (url: string) => Promise<unknown>;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** Signatures of 65 bytes, one of each attester. */
const ATTESTATION_PATTERN = /^0x(?:[0-9a-f]{2}){1,4096}$/i;
/** How long "there is none" is believed; an attestation itself never changes. */
const ABSENT_TTL_MS = 60_000;
/** How long a source that failed is left alone. */
const ERROR_TTL_MS = 1_000;

interface AttestationEntry {
  /** The last answer. */
  lastAnswer: { readonly attestation: string | undefined; readonly at: number } | undefined;
  failure: { readonly error: unknown; readonly at: number } | undefined;
  pendingRead: Promise<void> | undefined;
}

export function createAttestationClient({ baseUrl, fetchJson, now }: AttestationClientOptions): AttestationClient {
  // One fixed message for each destination chain is asked for: a handful of entries.
  const entries = new Map<string, AttestationEntry>();

  async function refresh(messageHash: string, entry: AttestationEntry): Promise<void> {
    try {
      entry.lastAnswer = { attestation: await read(`${baseUrl}/v1/attestations/${messageHash}`), at: now() };
      entry.failure = undefined;
    } catch (error) {
      entry.failure = { error, at: now() };
    } finally {
      entry.pendingRead = undefined;
    }
  }

  async function read(url: string): Promise<string | undefined> {
    try {
      const { attestation } = ((await fetchJson(url)) ?? {}) as { attestation?: unknown };
      if (attestation === "PENDING") return undefined;
      if (typeof attestation === "string" && ATTESTATION_PATTERN.test(attestation)) return attestation;
      // "There is none" would make another fee: that has to be said.
      throw new TypeError("the attestation has another form");
    } catch (error) {
      // "Not found" is an answer: this message has no attestation.
      if (error instanceof UpstreamError && error.status === 404) return undefined;
      throw error;
    }
  }

  return {
    async find(messageHash) {
      const entry = entries.get(messageHash) ?? { lastAnswer: undefined, failure: undefined, pendingRead: undefined };
      entries.set(messageHash, entry);
      const { lastAnswer, failure } = entry;
      if (
        lastAnswer?.attestation !== undefined ||
        (lastAnswer !== undefined && now() - lastAnswer.at < ABSENT_TTL_MS)
      ) {
        return lastAnswer.attestation;
      }
      const isResting = failure !== undefined && now() - failure.at < ERROR_TTL_MS;
      if (!isResting) entry.pendingRead ??= refresh(messageHash, entry);
      if (lastAnswer === undefined) await entry.pendingRead;
      if (entry.lastAnswer !== undefined) return entry.lastAnswer.attestation;
      const message = "the CCTP attestation source gives no answer";
      throw new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: entry.failure?.error });
    },
    health() {
      const all = [...entries.values()];
      const answeredAt = Math.max(...all.map(({ lastAnswer }) => lastAnswer?.at ?? Number.NEGATIVE_INFINITY));
      const hasAnswered = answeredAt > Number.NEGATIVE_INFINITY;
      const isFailing = all.some(({ failure }) => failure !== undefined);
      const state = isFailing ? "failing" : hasAnswered ? "ok" : "unknown";
      return { state, ageMs: hasAnswered ? now() - answeredAt : undefined };
    },
  };
}
