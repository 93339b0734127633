import { unescape as decode } from "node:querystring";
import type { JsonLimits } from "../../resilience/http-client/json-size.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { isHexData, isQuantity } from "../hex.js";
import {
  classifyRpcError,
  InvalidResultError,
  parseRevert,
  RpcError,
  type RpcErrorClassification,
} from "./rpc-errors.js";

export const CHAIN_ID_CALL: RpcCall = { method: "eth_chainId", params: [] };
export const LATEST_BLOCK_CALL: RpcCall = { method: "eth_getBlockByNumber", params: ["latest", false] };

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

/** Moves user and password of a URL to an Authorization header, because HTTP clients do not send them from the URL. */
export function extractBasicAuth(text: string): {
  readonly url: string;
  readonly headers: { readonly authorization?: string };
} {
  const url = new URL(text);
  const { username, password } = url;
  if (username === "" && password === "") return { url: text, headers: {} };
  url.username = "";
  url.password = "";
  const userInfo = `${decode(username)}:${decode(password)}`;
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(userInfo).toString("base64")}` } };
}

/** More than a block header, a transaction or a receipt without logs has. */
export const MEMBERS_PER_CALL = 128;
/** Less than a log, a hash, a withdrawal or an address of an access list takes for each of its members. */
export const BYTES_PER_MEMBER = 18;

/** Returns how many members the JSON of the response to calls may have. */
export function limitResponseMembers(calls: readonly RpcCall[]): Pick<JsonLimits, "members" | "bytesPerMember"> {
  return { members: calls.length * MEMBERS_PER_CALL, bytesPerMember: BYTES_PER_MEMBER };
}

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

/**
 * Returns why a response rejects a batch as a whole: it is no list, or a list of only errors that are not reverts.
 * undefined: it does not.
 */
export function findBatchRejection(response: unknown): RpcErrorClassification | undefined {
  const members = Array.isArray(response) ? response : [response];
  if (Array.isArray(response) && (members.length === 0 || !members.every(isErrorResponse))) return undefined;
  return classifyRpcError((members[0] as { error?: unknown } | null)?.error);
}

/** Returns whether a response is one object with an error that is not a revert. */
export function isErrorResponse(response: unknown): boolean {
  if (typeof response !== "object" || response === null) return false;
  const { error } = response as { error?: unknown };
  return error !== undefined && error !== null && parseRevert("eth_call", error) === undefined;
}

function invalidRpcResponse(): UpstreamError {
  return new UpstreamError("returned no valid JSON-RPC response");
}
