import type { RpcCall } from "../../chain-client.js";
import { isQuantity, toQuantity } from "../../hex.js";
import { getReadKind } from "./canonical-answer.js";

// Endpoints can only be compared at the same block: `latest` becomes the number of a block that all of them have. Pure.

/** Index of the block among the parameters, by method. */
const BLOCK_PARAMETERS: ReadonlyMap<string, number> = new Map([
  ["eth_call", 1],
  ["eth_getBalance", 1],
  ["eth_getBlockByNumber", 0],
  ["eth_getCode", 1],
  ["eth_getStorageAt", 2],
  ["eth_getTransactionCount", 1],
]);
/** What changes with the head although the call names no block. */
const HEAD_DEPENDENT: ReadonlySet<string> = new Set([
  "eth_blockNumber",
  "eth_getBlockByHash",
  "eth_getTransactionByHash",
  "eth_getTransactionReceipt",
]);

type Call = Pick<RpcCall, "method" | "params">;

/** Returns whether the answer depends on which block is the latest. */
export function needsHead(call: Call): boolean {
  return HEAD_DEPENDENT.has(call.method) || getReadKind(call) === "finality" || hasLatestTag(call);
}

/** Returns the call about a block instead of the latest one. */
export function pinCall<C extends Call>(call: C, block: number | undefined): C {
  if (block === undefined || !hasLatestTag(call)) return call;
  const params = [...call.params];
  if (call.method === "eth_getLogs") params[0] = { ...(params[0] as object), ...pinFilter(params[0], block) };
  else params[BLOCK_PARAMETERS.get(call.method) ?? 0] = toQuantity(block);
  return { ...call, params };
}

/** Returns the number of the block that an endpoint has to have for this call; undefined: any head will do. */
export function getNamedBlock({ method, params }: Call): number | undefined {
  const index = BLOCK_PARAMETERS.get(method);
  const named = method === "eth_getLogs" ? (params[0] as { toBlock?: unknown }).toBlock : params[index ?? 0];
  return (index !== undefined || method === "eth_getLogs") && isQuantity(named) ? Number(named) : undefined;
}

function hasLatestTag({ method, params }: Call): boolean {
  if (method === "eth_getLogs") return Object.keys(pinFilter(params[0], 0)).length > 0;
  const index = BLOCK_PARAMETERS.get(method);
  return index !== undefined && (params[index] === "latest" || params[index] === undefined);
}

function pinFilter(filter: unknown, block: number): Record<string, string> {
  const { fromBlock, toBlock = "latest", blockHash } = (filter ?? {}) as Record<string, unknown>;
  if (blockHash !== undefined) return {};
  return {
    ...(fromBlock === "latest" && { fromBlock: toQuantity(block) }),
    ...(toBlock === "latest" && { toBlock: toQuantity(block) }),
  };
}
