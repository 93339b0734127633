/**
 * The contract of the service with its types, for TypeScript programs that call it over Connect, gRPC or gRPC-Web, and
 * helpers: `watchTransfers` follows transfers and resumes by itself, `listTransfers` goes through all pages,
 * `verifyWithdrawal` and `encodeWithdrawal` make a transaction of a withdrawal, and `getErrorDetails` reads the reason of a
 * failed call. Loads neither the service nor the SDK and runs in browsers too. `hop-gateway/node-client` has a client.
 *
 * @example
 * import { getErrorDetails, watchTransfers } from "hop-gateway/client";
 * import { createBridgeClient } from "hop-gateway/node-client";
 *
 * const bridge = createBridgeClient("http://127.0.0.1:8000");
 * try {
 *   for await (const { event } of watchTransfers(bridge, { transferHash: [hash] }))
 *     console.log(event.case === "transfer" ? event.value.state : "not known yet");
 * } catch (error) {
 *   console.log(getErrorDetails(error)?.reason);
 * }
 */
import type { ErrorReason } from "./errors.js";

// biome-ignore lint/performance/noBarrelFile: the one file that clients import; the rest of the package is closed to them
export * from "../gen/hop/bridge/v1/bridge_pb.js";
export { type ErrorDetails, getErrorDetails } from "./client/error-details.js";
export { type ListTransfersOptions, listTransfers } from "./client/list-transfers.js";
export { type WatchEvent, type WatchTransfersOptions, watchTransfers } from "./client/watch-transfers.js";
export { encodeWithdrawal, verifyWithdrawal, type Withdrawal, type WithdrawalCall } from "./client/withdrawal.js";
export type { ErrorReason };
