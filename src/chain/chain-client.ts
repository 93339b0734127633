import type { RevertError } from "./json-rpc/revert-error.js";

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
  /**
   * Whether a result can be this call's answer, beyond the form that its method gives. One that cannot is trouble of the
   * endpoint: another is asked.
   */
  readonly validate?: ((result: unknown) => boolean) | undefined;
}

/** What one call of a batch gave: the node's result, or the revert of the contract that it ran. */
export type RpcOutcome = { readonly result: unknown } | { readonly revert: RevertError };

/** Blocks of a chain by number, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

/** Filter of `eth_getLogs`: null in a place of topics matches anything, a list any of its entries. */
export interface LogFilter {
  readonly address: string | readonly string[];
  readonly topics: readonly (string | readonly string[] | null)[];
}

/** What a node gave for the logs of a range of blocks. */
export interface LogsResult {
  readonly result: unknown;
  readonly range: BlockRange;
}

/** Speaks JSON-RPC with one chain. */
export interface ChainClient {
  readonly slug: string;
  /**
   * Calls one method and gives its result.
   * @param isAnswer as in RpcCall
   * @throws RevertError when the call itself reverts.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain gives an answer.
   */
  send(
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    isAnswer?: RpcCall["validate"],
  ): Promise<unknown>;
  /**
   * Calls several methods on one endpoint, in one HTTP request where the endpoint takes batches, and gives their
   * outcomes in the order of the calls.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain answers all of them.
   */
  sendBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]>;
  /**
   * Searches logs in a range of blocks, or in as much of it as an endpoint takes at once: its beginning, or its end when
   * the newest come first. The answer names the blocks that were searched.
   * @param range not empty; `to` is Infinity for all there is, up to the endpoint's head
   * @returns undefined when such a range without an end is more than any endpoint takes
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain gives an answer.
   */
  getLogs(
    filter: LogFilter,
    range: BlockRange,
    newestFirst: boolean,
    signal: AbortSignal,
  ): Promise<LogsResult | undefined>;
}

/** The result of a call; undefined where there is none, or where it reverted. */
export function getResult(outcome: RpcOutcome | undefined): unknown {
  return outcome !== undefined && "result" in outcome ? outcome.result : undefined;
}

export function isReverted(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && "revert" in outcome;
}
