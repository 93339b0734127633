import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ErrorReason } from "../errors.js";

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
  };
}
