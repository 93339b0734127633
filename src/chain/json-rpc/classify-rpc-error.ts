/** What a node's refusal of a call is about, as far as its words tell. */
export interface Refusal {
  /**
   * "busy": it wants fewer or later calls; "absent": it has no such method or block; undefined: something else, which
   * may be that the call asks for too much.
   */
  readonly about: "busy" | "absent" | undefined;
  /** Numbers that its words name. */
  readonly numbers: readonly number[];
}

const busy =
  /\brates?\b|rate.?limit|too many requests|capacity|credits?\b|quota|throttl|overload|\bbusy\b|requests? (count|limit)|per (second|minute|day)|\bdaily\b/i;
const absent =
  /not found|unknown block|cannot be found|block height|head block|(beyond|than) (the )?(current |latest |chain )*head|in the future|pruned/i;
/** JSON-RPC's own code for a method that is not served, and HTTP's for too many requests, which nodes take over. */
const methodNotFound = -32601;
const tooManyRequests = 429;
/** Longest text that is looked at. */
const maxLength = 1_000;
/**
 * A number that stands for itself, as `2000`, `10,000` or `10k`: no part of a hash, a hex number or a version, and none
 * with another unit than blocks.
 */
const numberAlone =
  /(?<![\w.,-])([0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3})+)(k?)(?![\w-]|[.,][0-9]|\s*(?:%|ms\b|s\b|sec|min|hour|bytes|kb\b|mb\b|results|logs|entries|events))/gi;

/** Reads the `error` member of an answer. */
export function readRefusal(error: unknown): Refusal {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  const text = typeof message === "string" ? message.slice(0, maxLength) : "";
  const numbers = [...text.matchAll(numberAlone)].map(
    ([, digits = "", thousand]) => Number(digits.replaceAll(",", "")) * (thousand === "" ? 1 : 1_000),
  );
  if (code === tooManyRequests || busy.test(text)) return { about: "busy", numbers };
  return { about: code === methodNotFound || absent.test(text) ? "absent" : undefined, numbers };
}
