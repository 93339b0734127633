import type { RpcCall } from "../chain-client.js";

export const CHAIN_ID_CALL: RpcCall = { method: "eth_chainId", params: [] };
export const LATEST_BLOCK_CALL: RpcCall = { method: "eth_getBlockByNumber", params: ["latest", false] };
