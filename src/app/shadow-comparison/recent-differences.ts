import type { DynamicDocument } from "../../http/documents.js";
import type { ComparisonCase } from "../../quotes/shadow-comparison/comparison-case.js";

/** The last quotes that differed from the SDK's, found by any process of the service. */
export interface RecentDifferences {
  /** Adds the JSON of a case, once. Beyond the limits, the oldest are dropped. @throws TypeError for anything else */
  add(text: string): void;
  /** Returns all of them as `{"differences":[...]}`, the newest first. */
  readDocument(): DynamicDocument;
}

/** The topic whose reader compares for all workers and replicas, and publishes the cases. */
export const COMPARISON_TOPIC = "quote comparison";
/** Path of the document on the port of the metrics. */
export const DIFFERENCES_PATH = "/quote-differences";

/** One takes about 50 KB. */
const MAX_DIFFERENCES = 20;
const MAX_TOTAL_CHARS = 2 * 1024 * 1024;
/** Below the limit of messages between processes. */
const MAX_CASE_CHARS = 512 * 1024;

export function createRecentDifferences(): RecentDifferences {
  /** By id, oldest first. */
  const texts = new Map<string, string>();

  function countChars(): number {
    return [...texts.values()].reduce((sum, { length }) => sum + length, 0);
  }

  return {
    add(text) {
      if (text.length > MAX_CASE_CHARS) throw new TypeError("too long for a case");
      const { id } = (JSON.parse(text) ?? {}) as { readonly id?: unknown };
      if (typeof id !== "string") throw new TypeError("not a case");
      texts.set(id, text);
      for (const oldest of texts.keys()) {
        if (texts.size <= MAX_DIFFERENCES && countChars() <= MAX_TOTAL_CHARS) break;
        texts.delete(oldest);
      }
    },
    readDocument: () => ({
      status: 200,
      contentType: "application/json; charset=utf-8",
      body: `{"differences":[${[...texts.values()].reverse().join(",")}]}\n`,
    }),
  };
}

/** Prints a case; without the recorded calls if it would be too long. */
export function printCase(found: ComparisonCase): string {
  const text = JSON.stringify(found);
  return text.length <= MAX_CASE_CHARS ? text : JSON.stringify({ ...found, chains: {} });
}
