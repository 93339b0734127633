import type { MaybePromise } from "../resilience/maybe-async.js";

/**
 * How a response may be cached: "private" means not at all. `ageSeconds` is the current age of its data; it may be used
 * until the age is `maxAgeSeconds`, and for `staleWhileRevalidateSeconds` more while a newer one is fetched.
 */
export type CachePolicy =
  | "private"
  | { readonly ageSeconds: number; readonly maxAgeSeconds: number; readonly staleWhileRevalidateSeconds?: number };

/** What callers get to know of a failure. */
export interface PublicError {
  /** Name of the Connect code, such as `invalid_argument`. */
  readonly code: string;
  readonly message: string;
  readonly reason: string;
  /** Name of the invalid parameter; empty if the failure concerns no single one. */
  readonly field: string;
}

/** The call that an operation serves, independent of the transport. Its methods must be called on it. */
export interface CallContext {
  /** Request id for the log. */
  readonly requestId: string;
  /** Key that distinguishes callers: an IPv4 address, or the /64 prefix of an IPv6 address. */
  readonly caller: string;
  /**
   * Fires when the caller disconnects, at the deadline of a unary call, and when that is answered: nobody waits for what it has
   * begun. Created on first read: operations that respond synchronously should not read it.
   */
  readonly signal: AbortSignal;
  /** Returns the time until the deadline of a unary call, in milliseconds; infinite for a stream. */
  remainingMs(): number;
  /** Time that it has taken of the event loop while others waited, and is about to take: see WorkOwner. In milliseconds. */
  takenMs: number;
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
  /**
   * Adds a warning to a successful response: the header `Warning: 299 - "text"` (RFC 7234 5.5), metadata over gRPC. For what
   * a caller should know of an answer that is right.
   */
  addWarning(text: string): void;
  /**
   * Counts the call as several requests against the rate limit of its caller, at most as all of one window. To be called
   * before any work. Returns undefined if there is no limit.
   * @throws ServiceError RATE_LIMITED; the promise rejects with it
   */
  countAsRequests(count: number): Promise<void> | undefined;
  /**
   * Returns the public form of a failure of a part of the call, and logs the error if it is INTERNAL. The call itself
   * does not fail.
   */
  describeFailure(error: unknown): PublicError;
}

/**
 * An operation of the contract. Returns a response message or throws a ServiceError; returns synchronously if it does not
 * have to wait. An operation that returns the same message repeatedly freezes it deeply, so that transports can memoize
 * its serialized form. One that returns equal messages for as long as nothing changes makes them non-extensible at least:
 * transports then send a validator, such as an ETag.
 */
export type Operation<Request, Response> = (request: Request, context: CallContext) => MaybePromise<Response>;

/** The open response of a server-streaming operation. Calls after its end do nothing. */
export interface MessageStream<Response> {
  /**
   * Returns whether the caller has read what was sent. While it has not, the operation keeps only the newest state of
   * each thing, and sends it at `onReady`.
   */
  isReady(): boolean;
  /** Sends a message. Accepted while the stream is not ready too, for single messages such as the last one. */
  send(message: Response): void;
  /**
   * Ends the stream: with an error, or as complete, so that the caller does not ask again. Complete without a message is
   * 204 over Server-Sent Events, and an empty stream elsewhere.
   */
  end(error?: unknown): void;
  /** Ends the stream so that the caller resumes it. The last message should tell where: a bookmark. */
  interrupt(): void;
}

/** What an operation does while its stream is open. */
export interface StreamHandlers {
  /** Called when the stream is ready again after `isReady` returned false. */
  onReady(): void;
  /** Called when the server stops: sends a bookmark and interrupts the stream. A second later it ends anyway. */
  onDrain(): void;
  /**
   * Called once when the stream has ended in any way: by `end` or `interrupt`, before they return; at the deadline; or
   * because the caller is gone.
   */
  onEnd(): void;
}

/**
 * A server-streaming operation of the contract. Throws a ServiceError for a bad request, before its first message. The
 * time of an answer does not limit it, the caller's own timeout does.
 */
export type StreamOperation<Request, Response> = (
  request: Request,
  stream: MessageStream<Response>,
  context: CallContext,
) => StreamHandlers;
