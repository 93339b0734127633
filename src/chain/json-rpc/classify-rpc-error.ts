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
