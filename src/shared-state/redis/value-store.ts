import type { RedisConnection } from "./protocol/connection.js";
import { type RefusalReason, RefusedValueError, type Signer } from "./signing.js";

/** Texts that replicas keep for each other in Redis. */
export interface ValueStore {
  /** Returns a text that was kept within its time; undefined: there is none, or Redis does not reply in 5 ms. */
  get(key: string): Promise<string | undefined>;
  /** Keeps a text. Nobody learns whether it is kept: a Redis that is full drops it. */
  set(key: string, text: string): void;
}

export interface ValueStoreOptions {
  readonly connection: RedisConnection;
  readonly signer: Signer;
  /** Start of the names of all keys; differs between versions of the service. */
  readonly prefix: string;
  readonly ttlMs: number;
  readonly onRefused: (reason: RefusalReason) => void;
}

const MAX_VALUE_CHARS = 64 * 1024;
const WRITE_TIMEOUT_MS = 500;

export function createValueStore({ connection, signer, prefix, ttlMs, onRefused }: ValueStoreOptions): ValueStore {
  return {
    async get(key) {
      const place = prefix + key;
      // Whatever is under the key, the reply is not larger than a value can be.
      const printed = await connection.call(["GETRANGE", place, "0", String(MAX_VALUE_CHARS)]);
      if (typeof printed !== "string" || printed === "") return undefined;
      try {
        if (printed.length > MAX_VALUE_CHARS) throw new RefusedValueError("oversized");
        return signer.verify(place, printed, ttlMs);
      } catch (error) {
        onRefused(error instanceof RefusedValueError ? error.reason : "malformed");
        return undefined;
      }
    },
    set(key, text) {
      const place = prefix + key;
      const printed = signer.sign(place, text);
      if (printed.length > MAX_VALUE_CHARS) return;
      void connection.call(["SET", place, printed, "PX", String(ttlMs)], WRITE_TIMEOUT_MS);
    },
  };
}
