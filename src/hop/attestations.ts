import { ExchangeError } from "../remote/exchange.js";

/** Circle's signatures under CCTP messages, by message hash. */
export interface Attestations {
  /**
   * The attestation as 0x-prefixed hex, or undefined when there is none.
   * @throws ExchangeError when the source gives no answer.
   */
  find(messageHash: string, signal: AbortSignal): Promise<string | undefined>;
}

export interface AttestationsOptions {
  readonly baseUrl: string;
  readonly fetchJson: (url: string, signal: AbortSignal) => Promise<unknown>;
  readonly now: () => number;
}

/** How long "there is none" is remembered, in milliseconds; an attestation itself never changes. */
const absentMs = 60_000;

export function createAttestations({ baseUrl, fetchJson, now }: AttestationsOptions): Attestations {
  // The SDK asks for one fixed message per destination chain: a handful of entries.
  const known = new Map<string, { readonly attestation: string | undefined; readonly at: number }>();

  return {
    async find(messageHash, signal) {
      const cached = known.get(messageHash);
      if (cached !== undefined && (cached.attestation !== undefined || now() - cached.at < absentMs)) {
        return cached.attestation;
      }
      const attestation = await read(`${baseUrl}/v1/attestations/${messageHash}`, signal);
      known.set(messageHash, { attestation, at: now() });
      return attestation;
    },
  };

  async function read(url: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const { attestation } = ((await fetchJson(url, signal)) ?? {}) as { attestation?: unknown };
      return typeof attestation === "string" && attestation.startsWith("0x") ? attestation : undefined;
    } catch (error) {
      // "Not found" is an answer: this message has no attestation.
      if (error instanceof ExchangeError && error.status === 404) return undefined;
      throw error;
    }
  }
}
