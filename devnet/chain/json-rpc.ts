/** Calls one JSON-RPC method of a chain and gives its result. */
export type JsonRpc = (method: string, params?: readonly unknown[]) => Promise<unknown>;

const REQUEST_TIMEOUT_MS = 30_000;

/** A JSON-RPC client for one local node, which is trusted and near: no retries, no failover, a generous time limit. */
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
    const answer = (await response.json()) as { result?: unknown; error?: { message?: string; data?: unknown } };
    if (answer.error !== undefined) {
      const { message = "unknown error", data } = answer.error;
      throw new Error(`${method}: ${message}${typeof data === "string" ? ` (${data})` : ""}`);
    }
    return answer.result;
  };
}

/** A JSON-RPC quantity. */
export function toHexQuantity(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}
