import { UpstreamError } from "../../resilience/http-client/upstream-error.js";

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

/**
 * A call that a node has executed and that reverted. Every other failure is a ServiceError with reason
 * UPSTREAM_UNAVAILABLE.
 */
export class RevertError extends Error {
  override readonly name = "RevertError";
  /** JSON-RPC error code. */
  readonly code: number;
  /** Revert data as hex, if the node returns it. */
  readonly data: string | undefined;

  constructor(message: string, code: number, data: string | undefined) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Messages of various node implementations about failed execution, as opposed to a failed node. */
const EXECUTION_FAILURE_PATTERN =
  /revert|vm execution error|out of gas|gas required exceeds|invalid opcode|invalid jump|stack (under|over)flow|evm error|always failing transaction/i;

/** Methods that run a contract. */
const EXECUTING_METHODS = new Set(["eth_call", "eth_estimateGas"]);

/** Error code of geth and its derivatives for a revert. */
const GETH_REVERT_CODE = 3;
/** JSON-RPC's generic server error. */
const DEFAULT_ERROR_CODE = -32000;

/** Parses the `error` member of the response to a method; undefined: it is not a revert. */
export function parseRevert(method: string, error: unknown): RevertError | undefined {
  if (!EXECUTING_METHODS.has(method) || typeof error !== "object" || error === null) return undefined;
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const text = typeof message === "string" ? message : "";
  if (code !== GETH_REVERT_CODE && !EXECUTION_FAILURE_PATTERN.test(text)) return undefined;
  const errorCode = typeof code === "number" ? code : DEFAULT_ERROR_CODE;
  return new RevertError(text, errorCode, typeof data === "string" ? data : undefined);
}

/** What a node's JSON-RPC error is about, as far as its message tells. */
export interface RpcErrorClassification {
  /**
   * rate_limited: the node wants fewer or later calls. not_found: it has no such method or block. undefined: something
   * else, possibly a call that asks for too much.
   */
  readonly kind: "rate_limited" | "not_found" | undefined;
  /** Numbers that the message contains. */
  readonly numbers: readonly number[];
}

const RATE_LIMIT_PATTERN =
  /\brates?\b|rate.?limit|too many requests|capacity|credits?\b|quota|throttl|overload|\bbusy\b|requests? (count|limit)|per (second|minute|day)|\bdaily\b/i;
const NOT_FOUND_PATTERN =
  /not found|unknown block|cannot be found|block height|head block|(beyond|than) (the )?(current |latest |chain )*head|in the future|pruned/i;
/** JSON-RPC 2.0: method not found. */
const METHOD_NOT_FOUND_CODE = -32601;
/** Some nodes use the HTTP status as the JSON-RPC error code. */
const TOO_MANY_REQUESTS_CODE = 429;
/** Length of the message that is examined. */
const MAX_MESSAGE_LENGTH = 1_000;
/**
 * A standalone number, as `2000`, `10,000` or `10k`: not part of a hash, a hex number or a version, and not followed by
 * another unit than blocks.
 */
const STANDALONE_NUMBER =
  /(?<![\w.,-])([0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3})+)(k?)(?![\w-]|[.,][0-9]|\s*(?:%|ms\b|s\b|sec|min|hour|bytes|kb\b|mb\b|results|logs|entries|events))/gi;

/** Classifies the `error` member of a JSON-RPC response. */
export function classifyRpcError(error: unknown): RpcErrorClassification {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  const text = typeof message === "string" ? message.slice(0, MAX_MESSAGE_LENGTH) : "";
  const numbers = [...text.matchAll(STANDALONE_NUMBER)].map(
    ([, digits = "", thousand]) => Number(digits.replaceAll(",", "")) * (thousand === "" ? 1 : 1_000),
  );
  if (code === TOO_MANY_REQUESTS_CODE || RATE_LIMIT_PATTERN.test(text)) return { kind: "rate_limited", numbers };
  return { kind: code === METHOD_NOT_FOUND_CODE || NOT_FOUND_PATTERN.test(text) ? "not_found" : undefined, numbers };
}
