import { UpstreamError } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcOutcome } from "../chain-client.js";
import { isHexData, isQuantity } from "../hex.js";
import { classifyRpcError, type RpcErrorClassification } from "./classify-rpc-error.js";
import { parseRevert } from "./revert-error.js";

/** A node's own refusal of a call: it is there and answers, but gives no result for this one. */
export class RpcError extends UpstreamError {
  readonly classification: RpcErrorClassification | undefined;

  constructor(message: string, refusal?: RpcErrorClassification) {
    super(message, { kind: "rpc_error" });
    // Not in logs: its numbers are the upstream's words.
    Object.defineProperty(this, "classification", { value: refusal, enumerable: false });
  }
}

/** A result that the chain cannot have given: the node lacks what is asked for, or makes something up. */
export class InvalidResultError extends UpstreamError {
  /** Whether it is no bytes at all: what a contract answers that is not there. */
  readonly isEmpty: boolean;

  constructor(result: unknown) {
    super("answered what its chain could not");
    this.isEmpty = result === "0x";
  }
}

const isObjectOrNull = (result: unknown): boolean => typeof result === "object" && !Array.isArray(result);

/** The form of each method's results. */
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

/** JSON text of calls with ids that count up from `firstId`: an object for one, a list for several. */
export function encodeRequest(calls: readonly RpcCall[], firstId: number): string {
  const requests = calls.map(({ method, params }, index) => ({ jsonrpc: "2.0", id: firstId + index, method, params }));
  return JSON.stringify(requests.length === 1 ? requests[0] : requests);
}

/**
 * Outcome of one call.
 * @throws ExchangeError when it is no JSON-RPC answer to this id; CallRefused for an error that is no revert, and where
 * the node does not have what is there; UnfitResult
 */
export function parseResponse(answer: unknown, { method, validate }: RpcCall, id: number): RpcOutcome {
  if (typeof answer !== "object" || answer === null) throw invalidRpcResponse();
  const { id: answered, result, error } = answer as { id?: unknown; result?: unknown; error?: unknown };
  if (error !== undefined && error !== null) {
    const revert = parseRevert(method, error);
    if (revert !== undefined) return { revert };
    const { code } = error as { code?: unknown };
    const message = `answered JSON-RPC error ${typeof code === "number" ? code : "without a code"}`;
    throw new RpcError(message, classifyRpcError(error));
  }
  if (result === undefined || answered !== id) throw invalidRpcResponse();
  if (RESULT_VALIDATORS.get(method)?.(result) === false) throw new InvalidResultError(result);
  if (validate?.(result) !== false) return { result };
  // A node may keep no old blocks or transactions, and be well otherwise.
  throw result === null ? new RpcError("does not have what its chain has") : new InvalidResultError(result);
}

/**
 * Outcomes of a batch, whose answers may come in any order.
 * @throws ExchangeError unless each call has exactly one answer; CallRefused for an error that is no revert; UnfitResult
 */
export function parseBatchResponse(
  answers: readonly unknown[],
  calls: readonly RpcCall[],
  firstId: number,
): readonly RpcOutcome[] {
  const byId = new Map(answers.map((answer) => [(answer as { id?: unknown } | null)?.id, answer]));
  if (answers.length !== calls.length || byId.size !== calls.length) throw invalidRpcResponse();
  return calls.map((call, index) => parseResponse(byId.get(firstId + index), call, firstId + index));
}

/** Whether an answer refuses a batch as a whole: it is no list, or a list of nothing but errors that are no reverts. */
export function isBatchRejected(answer: unknown): boolean {
  if (!Array.isArray(answer)) return true;
  return answer.length > 0 && answer.every(isErrorResponse);
}

function isErrorResponse(answer: unknown): boolean {
  if (typeof answer !== "object" || answer === null) return false;
  const { error } = answer as { error?: unknown };
  return error !== undefined && error !== null && parseRevert("eth_call", error) === undefined;
}

function invalidRpcResponse(): UpstreamError {
  return new UpstreamError("answered no JSON-RPC");
}
