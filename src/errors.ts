/** Every reason for which a call can fail, as interface and clients know it. Stable. */
export type ErrorReason =
  | "MISSING_PARAMETER"
  | "INVALID_PARAMETER"
  | "UNKNOWN_PARAMETER"
  | "UNSUPPORTED_NETWORK"
  | "UNSUPPORTED_TOKEN"
  | "UNSUPPORTED_CHAIN"
  | "UNSUPPORTED_ROUTE"
  | "RPC_URL_FORBIDDEN"
  | "TRANSFER_NOT_FOUND"
  | "PATH_NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "RATE_LIMITED"
  | "OVERLOADED"
  | "UPSTREAM_UNAVAILABLE"
  | "DEADLINE_EXCEEDED"
  | "INTERNAL";

export interface ServiceErrorOptions {
  /** Name of the one parameter at fault, in lowerCamelCase. */
  field?: string;
  /** When the caller may come back; for RATE_LIMITED and OVERLOADED. */
  retryAfterSeconds?: number;
  /** What lies behind it: for the log, never shown to the caller. */
  cause?: unknown;
}

/**
 * A failure that the caller is told about. The message is shown as it is, so it never holds a URL, a key or what an
 * upstream said. Everything thrown that is no ServiceError is answered as INTERNAL.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly reason: ErrorReason;
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(reason: ErrorReason, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.field = options.field;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** What went wrong, in a line, for the log. */
export function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
