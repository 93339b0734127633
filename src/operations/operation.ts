/**
 * How an answer may be kept: "private" is by nobody, else for how long. `ageSeconds` is how old its facts are already;
 * from then on it may be used until it is `maxAgeSeconds` old, and for `staleWhileRevalidateSeconds` more, where given,
 * while a newer one is fetched.
 */
export type CachePolicy =
  | "private"
  | { readonly ageSeconds: number; readonly maxAgeSeconds: number; readonly staleWhileRevalidateSeconds?: number };

/** What an operation knows of the call that it serves, whatever the transport. */
export interface CallContext {
  /** Id of the request, for the log. */
  readonly requestId: string;
  /** By what callers are told apart: an IPv4 address, or the /64 of an IPv6 one. */
  readonly caller: string;
  /** Fires when the caller is gone. Made when it is first read: who answers at once should not read it. */
  readonly signal: AbortSignal;
  /** How long the caller will wait, in milliseconds; undefined: it did not say. */
  readonly timeoutMs: number | undefined;
  /** Adds facts to the one log line of this request. */
  addLogFields(facts: Readonly<Record<string, string | number | boolean>>): void;
  /** Says how old the answer's facts are and how long it may be used; or that nobody may keep it. Not called: nothing is said. */
  setCachePolicy(policy: CachePolicy): void;
  /**
   * Says something of the answer beside its message, which every protocol sends as headers; not with an error. Names
   * are lower case and none that a protocol uses itself, values visible ASCII: anything else is an error thrown.
   */
  setResponseMetadata(entries: Readonly<Record<string, string>>): void;
}

/**
 * An operation of the contract: takes a request message, gives a response message or throws a ServiceError. One that
 * needs to wait for nothing answers without a promise. One that gives the same message again
 * and again freezes it, with all that it holds: what is made of it then needs to be made once only.
 */
export type Operation<Request, Response> = (request: Request, context: CallContext) => Response | Promise<Response>;
