import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema, HelpSchema } from "../../gen/google/rpc/error_details_pb.js";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ErrorReason } from "../errors.js";

const BASE_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;
/** A proxy may name any time. */
const MAX_RETRY_AFTER_MS = 600_000;

/** Errors of the service itself that may be gone at the next attempt. */
const TEMPORARY_CODES: ReadonlySet<Code> = new Set([Code.Unavailable, Code.ResourceExhausted, Code.DeadlineExceeded]);

/** What a proxy or another server means to last, if the error does not come from the service. */
const LASTING_CODES: ReadonlySet<Code> = new Set([Code.Unauthenticated, Code.PermissionDenied, Code.Unimplemented]);

/** Why the service rejected a call. */
export interface ErrorDetails {
  /** Stable. Later versions may add reasons. */
  readonly reason: ErrorReason;
  /** For humans; may change. */
  readonly message: string;
  /** Name of the invalid parameter in lowerCamelCase. */
  readonly field: string | undefined;
  /** When to retry; with RATE_LIMITED and OVERLOADED. */
  readonly retryAfterSeconds: number | undefined;
  /** What the documentation says about the reason; undefined if the operator names no documentation. */
  readonly helpUrl: string | undefined;
}

/**
 * Returns the reason of a failed call as the service states it. Returns undefined if the service did not state one: it
 * was not reached, or the caller's own deadline or signal ended the call.
 * @param error what the call threw
 */
export function getErrorDetails(error: unknown): ErrorDetails | undefined {
  const failure = ConnectError.from(error);
  const info = failure.findDetails(ErrorInfoSchema).find(({ domain }) => domain === BridgeService.file.proto.package);
  if (info === undefined) return undefined;
  const retryAfter = failure.metadata.get("retry-after");
  return {
    reason: info.reason as ErrorReason,
    message: failure.rawMessage,
    field: info.metadata.field,
    retryAfterSeconds: retryAfter === null ? undefined : Number(retryAfter),
    helpUrl: failure.findDetails(HelpSchema)[0]?.links[0]?.url,
  };
}

/**
 * Returns whether a call that failed may succeed when it is repeated. An error without a reason of the service is one of
 * the transport: Connect gives such errors many codes, even INVALID_ARGUMENT for a response that is cut off.
 */
export function isTemporary(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return getErrorDetails(error) === undefined ? !LASTING_CODES.has(code) : TEMPORARY_CODES.has(code);
}

/**
 * Returns the time before the next attempt in milliseconds: exponential back-off with jitter, beyond what the error's
 * `Retry-After` asks for.
 * @param failures number of failed attempts in a row before this one
 */
export function computeRetryDelayMs(failures: number, error?: unknown): number {
  const ceiling = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** failures);
  return readRetryAfterMs(error) + (ceiling * (1 + Math.random())) / 2;
}

/** Returns 0 where there is none, or a date. */
function readRetryAfterMs(error: unknown): number {
  const seconds = Number((error instanceof ConnectError && error.metadata.get("retry-after")) || 0);
  return seconds > 0 ? Math.min(seconds * 1_000, MAX_RETRY_AFTER_MS) : 0;
}
