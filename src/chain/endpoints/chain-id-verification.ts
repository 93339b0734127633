import { UpstreamError } from "../../resilience/upstream-error.js";
import { getRpcResult, type RpcCall, type RpcCallResult } from "../chain-client.js";
import { CHAIN_ID_CALL } from "../json-rpc/common-calls.js";

// Decides when an endpoint has to be asked for its chain id. Pure transitions: each returns the next state.

/** Times are milliseconds on the monotonic clock. */
export interface ChainIdVerification {
  /** Start of the last request that returned the right chain id; -Infinity: it has to be verified again. */
  readonly verifiedAt: number;
  /** Whether the endpoint has ever returned the right chain id. */
  readonly wasVerified: boolean;
}

/** How long a verified chain id is valid unless a request fails: several nodes may share one address. */
const CHAIN_ID_TTL_MS = 250;
/** Cooldown of an endpoint that serves another chain. */
const WRONG_CHAIN_COOLDOWN_MS = 30_000;

export const INITIAL_CHAIN_ID_VERIFICATION: ChainIdVerification = {
  verifiedAt: Number.NEGATIVE_INFINITY,
  wasVerified: false,
};

/** @param isOnce whether one verification is enough, until a request fails */
export function isChainIdVerified({ verifiedAt }: ChainIdVerification, now: number, isOnce = false): boolean {
  return now - verifiedAt < (isOnce ? Number.POSITIVE_INFINITY : CHAIN_ID_TTL_MS);
}

/**
 * Returns whether the chain id is read in the same batch as the calls. A single log search stays a request of its own
 * once the endpoint has been verified: the size of the response to it shows how many blocks the endpoint accepts.
 */
export function shouldBatchChainId({ wasVerified }: ChainIdVerification, calls: readonly RpcCall[]): boolean {
  const isSingleLogSearch = calls.length === 1 && calls[0]?.method === "eth_getLogs";
  return !wasVerified || !isSingleLogSearch;
}

/** @param requestedAt when the request started that returned the chain id */
export function onChainIdVerified(requestedAt: number): ChainIdVerification {
  return { verifiedAt: requestedAt, wasVerified: true };
}

/** Another node behind the same address may respond to the next request. */
export function invalidateChainIdVerification(state: ChainIdVerification): ChainIdVerification {
  return { ...state, verifiedAt: Number.NEGATIVE_INFINITY };
}

/** @throws UpstreamError wrong_chain when the first call reads the chain id and the result is another one */
export function assertChainId(
  chainId: number,
  [call]: readonly RpcCall[],
  [outcome]: readonly (RpcCallResult | undefined)[],
): void {
  if (call?.method !== CHAIN_ID_CALL.method || Number(getRpcResult(outcome)) === chainId) return;
  throw new UpstreamError("serves another chain", { kind: "wrong_chain", retryAfterMs: WRONG_CHAIN_COOLDOWN_MS });
}
