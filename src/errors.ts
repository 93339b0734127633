/** The reasons for which a call can fail; a stable part of the contract. */
export type ErrorReason =
  | "MISSING_PARAMETER"
  | "INVALID_PARAMETER"
  | "UNKNOWN_PARAMETER"
  | "UNSUPPORTED_NETWORK"
  | "UNSUPPORTED_TOKEN"
  | "UNSUPPORTED_CHAIN"
  | "UNSUPPORTED_ROUTE"
  | "RPC_URL_FORBIDDEN"
  | "INDEX_REQUIRED"
  | "TRANSFER_NOT_FOUND"
  | "PATH_NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "RATE_LIMITED"
  | "OVERLOADED"
  | "UPSTREAM_UNAVAILABLE"
  | "CHAIN_STALLED"
  | "DEADLINE_EXCEEDED"
  | "INTERNAL";

/**
 * A failure that is reported to the caller. The message is part of the response, so it must never contain a URL, a key or
 * text from an upstream. Any other thrown error is reported as INTERNAL.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly reason: ErrorReason;
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    reason: ErrorReason,
    message: string,
    options: {
      /** Name of the invalid parameter in lowerCamelCase. */
      field?: string;
      /** When the caller may retry; for RATE_LIMITED and OVERLOADED. */
      retryAfterSeconds?: number;
      /** The original error; logged, but never shown to the caller. */
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.field = options.field;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Returns a one-line description of an error for the log. */
export function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
