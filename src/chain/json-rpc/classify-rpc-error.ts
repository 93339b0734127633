/** What a node's refusal of a call is about, as far as its words tell. */
export interface RpcErrorClassification {
  /**
   * "busy": it wants fewer or later calls; "absent": it has no such method or block; undefined: something else, which
   * may be that the call asks for too much.
   */
  readonly kind: "busy" | "absent" | undefined;
  /** Numbers that its words name. */
  readonly numbers: readonly number[];
}

const RATE_LIMIT_PATTERN =
  /\brates?\b|rate.?limit|too many requests|capacity|credits?\b|quota|throttl|overload|\bbusy\b|requests? (count|limit)|per (second|minute|day)|\bdaily\b/i;
const NOT_FOUND_PATTERN =
  /not found|unknown block|cannot be found|block height|head block|(beyond|than) (the )?(current |latest |chain )*head|in the future|pruned/i;
/** JSON-RPC's own code for a method that is not served, and HTTP's for too many requests, which nodes take over. */
const METHOD_NOT_FOUND_CODE = -32601;
const TOO_MANY_REQUESTS_CODE = 429;
/** Longest text that is looked at. */
const MAX_MESSAGE_LENGTH = 1_000;
/**
 * A number that stands for itself, as `2000`, `10,000` or `10k`: no part of a hash, a hex number or a version, and none
 * with another unit than blocks.
 */
const STANDALONE_NUMBER =
  /(?<![\w.,-])([0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3})+)(k?)(?![\w-]|[.,][0-9]|\s*(?:%|ms\b|s\b|sec|min|hour|bytes|kb\b|mb\b|results|logs|entries|events))/gi;

/** Reads the `error` member of an answer. */
export function classifyRpcError(error: unknown): RpcErrorClassification {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  const text = typeof message === "string" ? message.slice(0, MAX_MESSAGE_LENGTH) : "";
  const numbers = [...text.matchAll(STANDALONE_NUMBER)].map(
    ([, digits = "", thousand]) => Number(digits.replaceAll(",", "")) * (thousand === "" ? 1 : 1_000),
  );
  if (code === TOO_MANY_REQUESTS_CODE || RATE_LIMIT_PATTERN.test(text)) return { kind: "busy", numbers };
  return { kind: code === METHOD_NOT_FOUND_CODE || NOT_FOUND_PATTERN.test(text) ? "absent" : undefined, numbers };
}
