/** Calls a JSON-RPC method of a chain and returns its result. */
export type JsonRpc = (method: string, params?: readonly unknown[]) => Promise<unknown>;

const REQUEST_TIMEOUT_MS = 30_000;

/** Creates a JSON-RPC client for a trusted local node: no retries, no failover, a generous timeout. */
export function createJsonRpc(url: string): JsonRpc {
  let lastId = 0;
  return async (method, params = []) => {
    lastId += 1;
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: lastId, method, params }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    const message = (await response.json()) as { result?: unknown; error?: { message?: string; data?: unknown } };
    if (message.error !== undefined) {
      const { message: reason = "unknown error", data } = message.error;
      throw new Error(`${method}: ${reason}${typeof data === "string" ? ` (${data})` : ""}`);
    }
    return message.result;
  };
}

/** Encodes a JSON-RPC quantity. */
export function toHexQuantity(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}
