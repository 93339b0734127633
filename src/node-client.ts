import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { BridgeService } from "../gen/hop/bridge/v1/bridge_pb.js";

/** The operations of the contract as functions. */
export type BridgeClient = Client<typeof BridgeService>;

export interface BridgeClientOptions {
  /** Timeout of calls that set none themselves, in milliseconds. Default: none. */
  readonly timeoutMs?: number;
}

/**
 * Creates a client for Node.js over Connect and HTTP/1.1. It keeps connections alive without keeping the process
 * running. Calls fail with a ConnectError; `getErrorDetails` of `hop-gateway/client` reads it.
 * @param baseUrl URL of the service, such as `http://127.0.0.1:8000`
 */
export function createBridgeClient(baseUrl: string, { timeoutMs }: BridgeClientOptions = {}): BridgeClient {
  const limit = timeoutMs === undefined ? {} : { defaultTimeoutMs: timeoutMs };
  return createClient(BridgeService, createConnectTransport({ baseUrl, httpVersion: "1.1", ...limit }));
}
