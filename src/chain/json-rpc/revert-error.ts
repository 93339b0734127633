/**
 * The node's own word that a call cannot succeed: it ran and reverted. Every other failure is an upstream's and is a
 * ServiceError with reason UPSTREAM_UNAVAILABLE.
 */
export class RevertError extends Error {
  override readonly name = "RevertError";
  /** JSON-RPC error code. */
  readonly code: number;
  /** What the contract returned with its revert, as hex, where the node says so. */
  readonly data: string | undefined;

  constructor(message: string, code: number, data: string | undefined) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Words by which nodes of several makers tell that execution failed, as against the node itself. */
const EXECUTION_FAILURE_PATTERN =
  /revert|vm execution error|out of gas|gas required exceeds|invalid opcode|invalid jump|stack (under|over)flow|evm error|always failing transaction/i;

/** Methods that run a contract. */
const EXECUTING_METHODS = new Set(["eth_call", "eth_estimateGas"]);

/** Reads the `error` member of the answer to a method; undefined when it does not tell of a revert. */
export function parseRevert(method: string, error: unknown): RevertError | undefined {
  if (!EXECUTING_METHODS.has(method) || typeof error !== "object" || error === null) return undefined;
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const text = typeof message === "string" ? message : "";
  // 3 is the code that geth and its kin keep for a revert.
  if (code !== 3 && !EXECUTION_FAILURE_PATTERN.test(text)) return undefined;
  return new RevertError(text, typeof code === "number" ? code : -32000, typeof data === "string" ? data : undefined);
}
