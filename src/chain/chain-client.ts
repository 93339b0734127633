import type { RevertError } from "./json-rpc/revert-error.js";

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
  /**
   * Returns whether a result is valid for this call, beyond the form that its method prescribes. An invalid result counts
   * as a failure of the endpoint, and the next endpoint is tried.
   */
  readonly validate?: ((result: unknown) => boolean) | undefined;
  /**
   * Called before each HTTP request with this call, or with the read of the chain id that goes with it; what it throws
   * prevents the request and fails the call.
   */
  readonly onRequest?: (() => void) | undefined;
  /** Whether nobody waits for the result: within a budget of calls it comes last. */
  readonly isBackground?: boolean;
}

/** Outcome of one call of a batch: the node's result, or the revert of the contract. */
export type RpcCallResult = { readonly result: unknown } | { readonly revert: RevertError };

/** Block numbers, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

/** Filter of `eth_getLogs`: `null` among the topics matches anything, a list matches any of its entries. */
export interface LogFilter {
  readonly address: string | readonly string[];
  readonly topics: readonly (string | readonly string[] | null)[];
}

/** Result of `eth_getLogs` and the blocks that it covers. */
export interface LogsResult {
  readonly result: unknown;
  readonly range: BlockRange;
}

/** JSON-RPC client of one chain. */
export interface ChainClient {
  readonly slug: string;
  /** Identifies chain and endpoints in caches; absent: the client itself. A client that decorates another has its key. */
  readonly cacheKey?: object;
  /** Returns a client for calls that nobody waits for; absent: the client makes no difference. */
  asBackground?(): ChainClient;
  /**
   * Calls one method and returns its result.
   * @param validate as in RpcCall
   * @param onRequest as in RpcCall; called for retries and hedges too
   * @throws RevertError when the call itself reverts
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain responds
   */
  send(
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    validate?: RpcCall["validate"],
    onRequest?: RpcCall["onRequest"],
  ): Promise<unknown>;
  /**
   * Calls several methods on one endpoint, in one HTTP request where the endpoint accepts batches, and returns their
   * outcomes in the order of the calls.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain responds to all calls
   */
  sendBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcCallResult[]>;
  /**
   * Searches logs in a range of blocks, or in as much of it as an endpoint accepts at once: the beginning of the range, or
   * its end with `newestFirst`. The result names the blocks that were searched.
   * @param range not empty; `to` is Infinity for a search up to the endpoint's head
   * @param onRequest as in RpcCall; called for requests that are rejected too
   * @returns undefined when no endpoint accepts a range without an end
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain responds
   */
  getLogs(
    filter: LogFilter,
    range: BlockRange,
    newestFirst: boolean,
    signal: AbortSignal,
    onRequest?: RpcCall["onRequest"],
  ): Promise<LogsResult | undefined>;
}

/** Returns the key under which caches keep what a client has read. */
export function getCacheKey(client: ChainClient): object {
  return client.cacheKey ?? client;
}

/** Returns the result of a call; undefined when the call has none or has reverted. */
export function getRpcResult(outcome: RpcCallResult | undefined): unknown {
  return outcome !== undefined && "result" in outcome ? outcome.result : undefined;
}

export function isReverted(outcome: RpcCallResult | undefined): boolean {
  return outcome !== undefined && "revert" in outcome;
}
