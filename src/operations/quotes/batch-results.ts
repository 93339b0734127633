import {
  type BatchGetQuotesResponse,
  BatchGetQuotesResponseSchema,
  type GetQuoteRequest,
  type GetQuoteResponse,
  QuoteErrorSchema,
  type QuoteResult,
  QuoteResultSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { QuoteFreshness } from "../../quotes/quote-engine.js";
import type { CachePolicy, PublicError } from "../operation.js";
import { toQuoteCachePolicy } from "./quote-response.js";

/** The results of a batch, which come in any order. */
export interface BatchResults {
  /** Sets a result unless it is set already. */
  setQuote(index: number, quote: GetQuoteResponse, freshness: QuoteFreshness): void;
  setError(index: number, error: PublicError): void;
  isSet(index: number): boolean;
  /** Returns whether all results are set. */
  isComplete(): boolean;
  /** Resolves when all results are set. */
  waitUntilComplete(): Promise<void>;
  /** Returns the number of results by their reason; quotes have an empty one. */
  countByReason(): ReadonlyMap<string, number>;
  /** Returns how long all quotes may be kept. No error is kept. */
  getCachePolicy(): CachePolicy;
  toResponse(): BatchGetQuotesResponse;
}

/** Longest text of a request that its result repeats. Valid ones are shorter. */
const MAX_REPEATED_CHARS = 100;

export function createBatchResults(requests: readonly GetQuoteRequest[]): BatchResults {
  const results = requests.map(createPendingResult);
  const counts = new Map<string, number>();
  let unset = results.length;
  let freshness: QuoteFreshness | undefined;
  let onComplete: (() => void) | undefined;

  function set(index: number, reason: string, result: QuoteResult["result"]): boolean {
    const target = results[index];
    if (target === undefined || target.result.case !== undefined) return false;
    target.result = result;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
    unset -= 1;
    if (unset === 0) onComplete?.();
    return true;
  }

  return {
    setQuote(index, value, quoteFreshness) {
      if (!set(index, "", { case: "quote", value })) return;
      freshness = freshness === undefined ? quoteFreshness : combineFreshness(freshness, quoteFreshness);
    },
    setError(index, error) {
      set(index, error.reason, { case: "error", value: { $typeName: QuoteErrorSchema.typeName, ...error } });
    },
    isSet: (index) => results[index]?.result.case !== undefined,
    isComplete: () => unset === 0,
    waitUntilComplete: () =>
      new Promise((resolve) => {
        onComplete = resolve;
        if (unset === 0) resolve();
      }),
    countByReason: () => counts,
    getCachePolicy: () =>
      freshness === undefined || counts.get("") !== results.length ? "private" : toQuoteCachePolicy(freshness),
    toResponse: () => ({ $typeName: BatchGetQuotesResponseSchema.typeName, results }),
  };
}

function createPendingResult({ fromChain, toChain, token, amount }: GetQuoteRequest): QuoteResult {
  return {
    $typeName: QuoteResultSchema.typeName,
    fromChain: shorten(fromChain),
    toChain: shorten(toChain),
    token: shorten(token),
    amount: shorten(amount),
    result: { case: undefined },
  };
}

/** A long invalid text in a small request would make a response of megabytes, because each result repeats it. */
function shorten(text: string): string {
  return text.length <= MAX_REPEATED_CHARS ? text : text.slice(0, MAX_REPEATED_CHARS);
}

/** Returns the age of the older of two quotes, and the time that is left to both. */
function combineFreshness(first: QuoteFreshness, second: QuoteFreshness): QuoteFreshness {
  const ageMs = Math.max(first.ageMs, second.ageMs);
  const leftMs = Math.min(first.maxAgeMs - first.ageMs, second.maxAgeMs - second.ageMs);
  return { ageMs, maxAgeMs: ageMs + leftMs, refreshMs: Math.min(first.refreshMs, second.refreshMs) };
}
