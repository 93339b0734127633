/**
 * How a request to an upstream failed.
 * - rpc_error: the upstream is reachable and declines this call
 * - aborted: every caller has left
 * - too_large: the response exceeds the size limit
 * - too_complex: the response has too many members, or lists and objects too deep inside each other
 * - invalid_response: the response has no usable form
 */
export type UpstreamErrorKind =
  | "rpc_error"
  | "timeout"
  | "aborted"
  | "network_error"
  | "http_error"
  | "invalid_response"
  | "too_large"
  | "too_complex"
  | "wrong_chain";

/** Returns how an upstream failed, in words without a URL; undefined where an error or its causes do not say. */
export function describeUpstreamFailure(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof UpstreamError) return cause.message;
  return undefined;
}

/** Why a request to an upstream gave no usable response. The message contains no URL; the cause may contain one. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly kind: UpstreamErrorKind;
  /** HTTP status; undefined when there was no response. */
  readonly status: number | undefined;
  /** How long the upstream asks clients to wait, in milliseconds (Retry-After). */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: {
      /** Default: invalid_response. */
      readonly kind?: UpstreamErrorKind;
      readonly status?: number;
      readonly retryAfterMs?: number | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.kind = options.kind ?? "invalid_response";
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}
