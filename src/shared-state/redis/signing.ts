import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Signs what replicas store in Redis or send over it, and checks it, so that neither Redis nor whoever can write to it can
 * change or swap it unnoticed.
 */
export interface Signer {
  /** Signs a text for a place (the name of a key or channel), with the present time. */
  sign(place: string, text: string): string;
  /**
   * Returns the text.
   * @param maxAgeMs how long ago it may have been signed
   * @throws RefusedValueError for anything that was not signed for this place within that time
   */
  verify(place: string, signed: string, maxAgeMs: number): string;
  /** Returns a name that reveals the text only to who has the key and guesses it. */
  pseudonymize(text: string): string;
}

/**
 * - oversized: larger than anything that replicas share
 * - forged: garbage, or signed with another key, for another place, network or version
 * - expired: older than allowed, or from the future
 * - malformed: signed, but not what is expected
 * - fenced: from a replica that is no longer the reader
 */
export type RefusalReason = "oversized" | "forged" | "expired" | "malformed" | "fenced";

export class RefusedValueError extends Error {
  constructor(readonly reason: RefusalReason) {
    super(`a shared value is ${reason}`);
  }
}

/** By how much the clock of another replica may be ahead. */
const MAX_CLOCK_SKEW_MS = 2_000;
const MAC_BYTES = 18;
/** Six bits each. */
const MAC_CHARS = (MAC_BYTES * 4) / 3;
const TIME_PATTERN = /^[0-9]{1,15}$/;

/**
 * @param key the replicas' common secret
 * @param wallNow milliseconds since 1970
 */
export function createSigner(key: string, wallNow: () => number): Signer {
  const computeMac = (purpose: string, text: string): Buffer =>
    createHmac("sha256", key).update(`${purpose}\n${text}`).digest().subarray(0, MAC_BYTES);

  return {
    sign(place, text) {
      const body = `${Math.floor(wallNow())}\n${text}`;
      return computeMac(`signed ${place}`, body).toString("base64url") + body;
    },
    verify(place, signed, maxAgeMs) {
      const mac = Buffer.from(signed.slice(0, MAC_CHARS), "base64url");
      const body = signed.slice(MAC_CHARS);
      const expected = computeMac(`signed ${place}`, body);
      if (mac.length !== MAC_BYTES || !timingSafeEqual(mac, expected)) throw new RefusedValueError("forged");
      const end = body.indexOf("\n");
      const time = body.slice(0, end);
      const ageMs = TIME_PATTERN.test(time) ? wallNow() - Number(time) : Number.NaN;
      if (!(ageMs <= maxAgeMs && ageMs >= -MAX_CLOCK_SKEW_MS)) throw new RefusedValueError("expired");
      return body.slice(end + 1);
    },
    pseudonymize: (text) => computeMac("pseudonym", text).toString("base64url"),
  };
}
