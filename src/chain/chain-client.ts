import type { RevertError } from "./rpc-error.js";

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What one call of a batch gave: the node's result, or the revert of the contract that it ran. */
export type RpcOutcome = { readonly result: unknown } | { readonly revert: RevertError };

/** Speaks JSON-RPC with one chain. */
export interface ChainClient {
  readonly slug: string;
  /**
   * Calls one method and gives its result.
   * @throws RevertError when the call itself reverts.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain gives an answer.
   */
  send(method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown>;
  /**
   * Calls several methods on one endpoint, in one HTTP request where the endpoint takes batches, and gives their
   * outcomes in the order of the calls.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain answers all of them.
   */
  batch(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]>;
}

/** The result of a call; undefined where there is none, or where it reverted. */
export function resultOf(outcome: RpcOutcome | undefined): unknown {
  return outcome !== undefined && "result" in outcome ? outcome.result : undefined;
}

export function isRevert(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && "revert" in outcome;
}

/** Whether a value is a number as JSON-RPC writes it: 0x and up to 32 hex digits. */
export function isQuantity(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-f]{1,32}$/i.test(value);
}
