/**
 * The contract of the service with its types, for TypeScript programs that call it over Connect, gRPC or gRPC-Web, and
 * `getErrorDetails`, which reads the reason of a failed call. Loads no code of the service and runs in browsers too.
 * `hop-gateway/node-client` has a client.
 *
 * @example
 * import { getErrorDetails } from "hop-gateway/client";
 * import { createBridgeClient } from "hop-gateway/node-client";
 *
 * const bridge = createBridgeClient("http://127.0.0.1:8000");
 * try {
 *   const { routes } = await bridge.listAvailableRoutes({ token: "rETH" });
 *   console.log(`${routes.length} routes`);
 * } catch (error) {
 *   console.log(getErrorDetails(error)?.reason);
 * }
 */
import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { BridgeService } from "../gen/hop/bridge/v1/bridge_pb.js";
import type { ErrorReason } from "./errors.js";

// biome-ignore lint/performance/noBarrelFile: the one file that clients import; the rest of the package is closed to them
export * from "../gen/hop/bridge/v1/bridge_pb.js";
export type { ErrorReason };

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
