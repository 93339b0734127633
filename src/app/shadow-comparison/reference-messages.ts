import type { FeeSettings } from "../../hop/fee-settings.js";
import type { PrintedQuote, PrintedRequest } from "../../quotes/shadow-comparison/comparison-case.js";

/** What the process of the reference engine is to quote; the first message to it. */
export interface ReferenceTask {
  readonly request: PrintedRequest;
  readonly settings: FeeSettings;
  /** Unix seconds from which deadlines count. */
  readonly nowSeconds: number;
}

/** Messages from the process: questions, and in the end the quote. It has no other way to learn anything. */
export type FromReferenceProcess =
  | { readonly id: number; readonly ask: "call"; readonly chain: string; readonly call: ReferenceCall }
  | { readonly id: number; readonly ask: "price"; readonly symbol: string }
  | { readonly id: number; readonly ask: "attestation"; readonly hash: string }
  | { readonly quote: PrintedQuote }
  | { readonly failure: string };

interface ReferenceCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** The answer to a question. */
export interface ToReferenceProcess {
  readonly id: number;
  /** Absent: there is none. */
  readonly result?: unknown;
  readonly revert?: { readonly code: number; readonly data?: string | undefined };
  /** Why there is no answer. */
  readonly failure?: string;
}
