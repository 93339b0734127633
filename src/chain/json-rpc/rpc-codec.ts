import { UpstreamError } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { isHexData, isQuantity } from "../hex.js";
import { classifyRpcError, type RpcErrorClassification } from "./classify-rpc-error.js";
import { parseRevert } from "./revert-error.js";

/** A JSON-RPC error that is not a revert: the node responds, but has no result for this call. */
export class RpcError extends UpstreamError {
  readonly classification: RpcErrorClassification | undefined;

  constructor(message: string, classification?: RpcErrorClassification) {
    super(message, { kind: "rpc_error" });
    // Not enumerable, to keep it out of logs: its numbers are the upstream's own text.
    Object.defineProperty(this, "classification", { value: classification, enumerable: false });
  }
}

/** A result that the chain cannot have: the node lacks the requested data, or invents some. */
export class InvalidResultError extends UpstreamError {
  /** Whether the result is `0x`, as for a call to an address without a contract. */
  readonly isEmpty: boolean;

  constructor(result: unknown) {
    super("returned an impossible result");
    this.isEmpty = result === "0x";
  }
}

const isObjectOrNull = (result: unknown): boolean => typeof result === "object" && !Array.isArray(result);

/** Validates the form of results by method. */
const RESULT_VALIDATORS: ReadonlyMap<string, (result: unknown) => boolean> = new Map([
  ["eth_blockNumber", isQuantity],
  ["eth_call", isHexData],
  ["eth_chainId", isQuantity],
  ["eth_estimateGas", isQuantity],
  ["eth_gasPrice", isQuantity],
  ["eth_getBlockByHash", isObjectOrNull],
  ["eth_getBlockByNumber", isObjectOrNull],
  ["eth_getLogs", Array.isArray],
  ["eth_getTransactionByHash", isObjectOrNull],
  ["eth_getTransactionReceipt", isObjectOrNull],
]);

/** Encodes calls with ids that count up from `firstId`: one call as an object, several as a batch. */
export function encodeRequest(calls: readonly RpcCall[], firstId: number): string {
  const requests = calls.map(({ method, params }, index) => ({ jsonrpc: "2.0", id: firstId + index, method, params }));
  return JSON.stringify(requests.length === 1 ? requests[0] : requests);
}

/**
 * Parses the response to one call.
 * @throws UpstreamError when it is not a JSON-RPC response with this id
 * @throws RpcError for an error that is not a revert, and for `null` where the call requires data
 * @throws InvalidResultError for a result that is invalid for the call
 */
export function parseResponse(response: unknown, { method, validate }: RpcCall, id: number): RpcCallResult {
  if (typeof response !== "object" || response === null) throw invalidRpcResponse();
  const { id: responseId, result, error } = response as { id?: unknown; result?: unknown; error?: unknown };
  if (error !== undefined && error !== null) {
    const revert = parseRevert(method, error);
    if (revert !== undefined) return { revert };
    const { code } = error as { code?: unknown };
    const message = `answered JSON-RPC error ${typeof code === "number" ? code : "without a code"}`;
    throw new RpcError(message, classifyRpcError(error));
  }
  if (result === undefined || responseId !== id) throw invalidRpcResponse();
  if (RESULT_VALIDATORS.get(method)?.(result) === false) throw new InvalidResultError(result);
  if (validate?.(result) !== false) return { result };
  // A healthy node may not keep old blocks or transactions.
  throw result === null ? new RpcError("does not have data that its chain has") : new InvalidResultError(result);
}

/**
 * Parses the response to a batch, whose members may come in any order.
 * @throws UpstreamError unless each call has exactly one response; RpcError and InvalidResultError as parseResponse
 */
export function parseBatchResponse(
  responses: readonly unknown[],
  calls: readonly RpcCall[],
  firstId: number,
): readonly RpcCallResult[] {
  const byId = new Map(responses.map((response) => [(response as { id?: unknown } | null)?.id, response]));
  if (responses.length !== calls.length || byId.size !== calls.length) throw invalidRpcResponse();
  return calls.map((call, index) => parseResponse(byId.get(firstId + index), call, firstId + index));
}

/** Parses the response to a batch. Returns undefined when it is a list in which the ids are mixed up. */
export function parseBatchUnlessMixedUp(
  response: unknown,
  calls: readonly RpcCall[],
  firstId: number,
): readonly RpcCallResult[] | undefined {
  try {
    return parseBatchResponse(Array.isArray(response) ? response : [], calls, firstId);
  } catch (error) {
    if (!Array.isArray(response) || error instanceof RpcError || error instanceof InvalidResultError) throw error;
    return undefined;
  }
}

/** Returns whether a response rejects a batch as a whole: no list, or a list of only errors that are not reverts. */
export function isBatchRejected(response: unknown): boolean {
  if (!Array.isArray(response)) return true;
  return response.length > 0 && response.every(isErrorResponse);
}

function isErrorResponse(response: unknown): boolean {
  if (typeof response !== "object" || response === null) return false;
  const { error } = response as { error?: unknown };
  return error !== undefined && error !== null && parseRevert("eth_call", error) === undefined;
}

function invalidRpcResponse(): UpstreamError {
  return new UpstreamError("returned no valid JSON-RPC response");
}
