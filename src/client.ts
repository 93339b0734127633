/**
 * A client of the service for browsers and Node.js (`createBridgeClient`), the contract with its types, for clients over other
 * transports, and helpers: `watchTransfers` follows transfers and resumes by itself, `listTransfers` goes through all pages,
 * `verifyWithdrawal` and `encodeWithdrawal` make a transaction of a withdrawal, and `getErrorDetails` reads the reason of a
 * failed call. The package `hop-gateway-client` contains this and nothing else; it loads neither the service nor the SDK.
 *
 * @example
 * import { createBridgeClient, getErrorDetails, watchTransfers } from "hop-gateway-client";
 *
 * const bridge = createBridgeClient("http://127.0.0.1:8000");
 * try {
 *   for await (const { event } of watchTransfers(bridge, { transferHash: [hash] }))
 *     console.log(event.case === "transfer" ? event.value.state : "not known yet");
 * } catch (error) {
 *   console.log(getErrorDetails(error)?.reason);
 * }
 */
import { Code, ConnectError } from "@connectrpc/connect";
import type { ErrorReason } from "./errors.js";

// biome-ignore lint/performance/noBarrelFile: the one file that clients import; the rest of the package is closed to them
export * from "../gen/hop/bridge/v1/bridge_pb.js";
export { type BridgeClient, type BridgeClientOptions, createBridgeClient } from "./client/bridge-client.js";
export { type ErrorDetails, getErrorDetails } from "./client/error-details.js";
export { type ListTransfersOptions, listTransfers } from "./client/list-transfers.js";
export { type WatchEvent, type WatchTransfersOptions, watchTransfers } from "./client/watch-transfers.js";
export { encodeWithdrawal, verifyWithdrawal, type Withdrawal, type WithdrawalCall } from "./client/withdrawal.js";
export type { ErrorReason };
export { Code, ConnectError };
