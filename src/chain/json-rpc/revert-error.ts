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
