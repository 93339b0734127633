import type { ChainHead, HeadTracker } from "./heads/head-tracker.js";
import type { RevertError } from "./json-rpc/rpc-errors.js";

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
  /**
   * Returns whether a result is valid for this call, beyond the form that its method prescribes. An invalid result counts
   * as a failure of the endpoint, and the next endpoint is tried.
   */
  readonly validate?: ((result: unknown) => boolean) | undefined;
  /** Returns the newest block that a result names, so that the endpoint's head is known without another read. */
  readonly parseHead?: ((result: unknown) => ChainHead | undefined) | undefined;
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

/** A search for logs in a range of blocks. */
export interface LogSearch {
  readonly filter: LogFilter;
  /** Not empty; `to` is Infinity for a search up to the endpoint's head. */
  readonly range: BlockRange;
  /** Whether the end of the range is searched first. Default: its beginning. */
  readonly newestFirst?: boolean | undefined;
  /** As in RpcCall; called for requests that are rejected too. */
  readonly onRequest?: RpcCall["onRequest"];
  readonly isBackground?: boolean;
}

/** JSON-RPC client of one chain. */
export interface ChainClient {
  readonly slug: string;
  /**
   * What is known about the heads of the chain. It also identifies chain and endpoints in caches: see getHeadTracker. A client
   * that decorates another has its heads.
   */
  readonly heads?: HeadTracker;
  /**
   * Calls one method and returns its result.
   * @param options as in RpcCall; `onRequest` is called for retries and hedges too
   * @throws RevertError when the call itself reverts
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain responds
   */
  send(
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    options?: Pick<RpcCall, "validate" | "onRequest">,
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
   * @returns undefined when no endpoint accepts a range without an end
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain responds
   */
  getLogs(search: LogSearch, signal: AbortSignal): Promise<LogsResult | undefined>;
}

/** Returns the result of a call; undefined when the call has none or has reverted. */
export function findRpcResult(outcome: RpcCallResult | undefined): unknown {
  return outcome !== undefined && "result" in outcome ? outcome.result : undefined;
}

export function isReverted(outcome: RpcCallResult | undefined): boolean {
  return outcome !== undefined && "revert" in outcome;
}

/**
 * Creates a client from what sends its requests.
 * @param parts.isBackground as in RpcCall, for all calls of the client
 */
export function createChainClient(
  parts: Pick<ChainClient, "slug" | "heads"> & {
    readonly request: ChainClient["sendBatch"];
    readonly searchLogs: ChainClient["getLogs"];
    readonly isBackground?: boolean;
  },
): ChainClient {
  const { request, searchLogs, isBackground = false, ...chain } = parts;
  return {
    ...chain,
    async send(method, params, signal, options) {
      const [outcome] = await request([{ ...options, method, params, isBackground }], signal);
      if (outcome === undefined) throw new Error("the request has no outcome");
      if ("revert" in outcome) throw outcome.revert;
      return outcome.result;
    },
    async sendBatch(calls, signal) {
      if (calls.length === 0) return [];
      return request(isBackground ? calls.map((call) => ({ ...call, isBackground })) : calls, signal);
    },
    getLogs: (search, signal) => searchLogs({ ...search, isBackground }, signal),
  };
}
