import type { FeeSettings } from "../../hop/fee-settings.js";
import type { DetailedQuote } from "../quote-engine.js";
import type { QuoteWithBreakdown } from "../sdk-engine.js";
import type { QuoteRequest } from "../state/quote-request.js";
import type { ChainRecording } from "./chain-recording.js";

/** A quote that differs from the SDK's, as JSON with all that both were computed from. Contains no URL. */
export interface ComparisonCase {
  readonly id: string;
  readonly foundAt: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly request: ReturnType<typeof printRequest>;
  readonly inputs: ComparisonInputs;
  readonly chains: Readonly<Record<string, ChainRecording>>;
  /** The quote of this service. */
  readonly servedQuote: PrintedQuote;
  readonly sdkQuote: PrintedQuote;
}

/** The inputs of a quote that are not read from its chains. */
export interface ComparisonInputs {
  /** Unix seconds from which the deadlines in the calldata of deliveries count. */
  readonly nowSeconds: number;
  readonly settings: FeeSettings;
  readonly pricesUsd: Readonly<Record<string, number>>;
  /** By hash of the message; null: there is none. */
  readonly attestations: Readonly<Record<string, string | null>>;
}

/** The values of a quote that do not depend on the time of the request, as text; or why there is no quote. */
export type PrintedQuote = Readonly<Record<string, string>>;

/** They depend on the time of the request. */
const DEADLINES: ReadonlySet<string> = new Set(["deadline", "destinationDeadline"]);

/** Returns a request as JSON. */
export function printRequest(request: QuoteRequest) {
  const { network, token, source, destination, amountIn, slippagePercent } = request;
  return {
    network,
    token: token.requestedSymbol,
    fromChain: source.slug,
    toChain: destination.slug,
    amount: String(amountIn),
    slippagePercent,
  };
}

export function toPrintedQuote({
  details,
  breakdown = details?.breakdown,
  ...quote
}: DetailedQuote & Partial<QuoteWithBreakdown>): PrintedQuote {
  const values = Object.entries({ ...quote, ...breakdown }).filter(([name]) => !DEADLINES.has(name));
  return Object.fromEntries(values.map(([name, value]) => [name, String(value)]));
}

/** Returns the numbers of the blocks by slug. */
export function listPinnedBlocks(chains: ComparisonCase["chains"]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(chains).flatMap(([slug, { pin }]) => (pin.block === undefined ? [] : [[slug, Number(pin.block)]])),
  );
}

/** Returns the names of the values that two quotes do not have in common. */
export function listDifferences(quote: PrintedQuote, reference: PrintedQuote): readonly string[] {
  return [...new Set([...Object.keys(quote), ...Object.keys(reference)])].filter(
    (name) => quote[name] !== reference[name],
  );
}
