/** What an operation knows of the call that it serves, whatever the transport. */
export interface CallContext {
  /** Id of the request, for the log. */
  readonly requestId: string;
  /** Address of the caller, as far as it is known. */
  readonly caller: string;
  /** Fires when the caller is gone. */
  readonly signal: AbortSignal;
  /** How long the caller will wait, in milliseconds; undefined: it did not say. */
  readonly timeoutMs: number | undefined;
  /** Adds facts to the one log line of this request. */
  note(facts: Readonly<Record<string, string | number | boolean>>): void;
}

/** An operation of the contract: takes a request message, gives a response message or throws a ServiceError. */
export type Operation<Request, Response> = (request: Request, context: CallContext) => Promise<Response>;
