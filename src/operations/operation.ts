import type { MaybePromise } from "../resilience/maybe-async.js";

/**
 * How a response may be cached: "private" means not at all. `ageSeconds` is the current age of its data; it may be used
 * until the age is `maxAgeSeconds`, and for `staleWhileRevalidateSeconds` more while a newer one is fetched.
 */
export type CachePolicy =
  | "private"
  | { readonly ageSeconds: number; readonly maxAgeSeconds: number; readonly staleWhileRevalidateSeconds?: number };

/** The call that an operation serves, independent of the transport. Its methods must be called on it. */
export interface CallContext {
  /** Request id for the log. */
  readonly requestId: string;
  /** Key that distinguishes callers: an IPv4 address, or the /64 prefix of an IPv6 address. */
  readonly caller: string;
  /** Fires when the caller disconnects. Created on first read: operations that respond synchronously should not read it. */
  readonly signal: AbortSignal;
  /** The caller's timeout in milliseconds; undefined: none given. */
  readonly timeoutMs: number | undefined;
  /** Adds fields to the log line of this request. */
  addLogFields(fields: Readonly<Record<string, string | number | boolean>>): void;
  /** Sets how the response may be cached. Without a call, the response says nothing about it. */
  setCachePolicy(policy: CachePolicy): void;
  /**
   * Sets response metadata, which every protocol sends as headers; not sent with an error.
   * @throws Error for names that are not lower case or that a protocol uses itself, and for values that are not visible
   *   ASCII.
   */
  setResponseMetadata(entries: Readonly<Record<string, string>>): void;
}

/**
 * An operation of the contract. Returns a response message or throws a ServiceError; returns synchronously if it does not
 * have to wait. An operation that returns the same message repeatedly freezes it deeply, so that transports can memoize
 * its serialized form. One that returns equal messages for as long as nothing changes makes them non-extensible at least:
 * transports then send a validator, such as an ETag.
 */
export type Operation<Request, Response> = (request: Request, context: CallContext) => MaybePromise<Response>;
