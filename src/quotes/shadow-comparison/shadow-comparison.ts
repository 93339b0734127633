import { createHash } from "node:crypto";
import type { NetworkChainClients } from "../../chain/chains.js";
import { getErrorMessage } from "../../errors.js";
import type { AttestationClient } from "../../hop/cctp/attestation-client.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { FeeSettingsSource } from "../../hop/fee-settings-source.js";
import type { NetworkSlug } from "../../hop/networks.js";
import type { ServedQuote } from "../snapshot-engine.js";
import type { QuoteRequest } from "../state/quote-request.js";
import { createChainPin, type RecordedChains, recordChains } from "./chain-recording.js";
import {
  type ComparisonCase,
  type ComparisonInputs,
  listDifferences,
  type PrintedQuote,
  printQuote,
  printRequest,
} from "./comparison-case.js";
import { recomputeQuote } from "./recompute-quote.js";

/**
 * What came out of a comparison.
 * - unconfirmed: the quotes differed once, and not when they were made again
 * - failed: there was nothing to compare, since a chain or the reference engine gave no result
 */
export type ComparisonResult =
  | { readonly outcome: "equal"; readonly quote: PrintedQuote }
  | { readonly outcome: "different"; readonly case: ComparisonCase }
  | { readonly outcome: "unconfirmed"; readonly differences: Readonly<Record<string, readonly [string, string]>> }
  | { readonly outcome: "failed"; readonly reason: string };

/** Quotes with the SDK, from the inputs of a quote. */
export interface ReferenceEngine {
  quote(request: QuoteRequest, sources: ReferenceSources, signal: AbortSignal): Promise<PrintedQuote>;
}

/** All inputs of the reference engine. */
export interface ReferenceSources {
  readonly chains: NetworkChainClients;
  readonly settings: FeeSettings;
  /** Unix seconds from which deadlines count. */
  readonly nowSeconds: number;
  getUsdPrice(symbol: string): number;
  findAttestation(messageHash: string): Promise<string | undefined>;
}

export interface ShadowComparisonDeps {
  /** Quotes as for a caller, and returns the quote with its inputs. */
  readonly quote: (request: QuoteRequest, signal: AbortSignal) => Promise<ServedQuote>;
  readonly referenceEngine: ReferenceEngine;
  readonly settings: Pick<FeeSettingsSource, "getCurrent" | "peek">;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<AttestationClient, "find"> | undefined;
  readonly chains: (network: NetworkSlug) => NetworkChainClients;
  /** Versions to name in a case. */
  readonly versions: Readonly<Record<string, string>>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A quote of each engine from the same inputs. */
interface ComparedQuotes {
  readonly servedQuote: PrintedQuote;
  readonly sdkQuote: PrintedQuote;
  readonly inputs: ComparisonInputs;
  readonly chains: RecordedChains;
  readonly request: QuoteRequest;
  /** Whether both quotes are of the same blocks. */
  readonly isPinned: boolean;
}

/**
 * When quotes that differ are made again. A block that was reorganized, or that an endpoint does not have, is replaced
 * within seconds; a route that was planned without an attestation is planned again within a minute.
 */
const REPEAT_DELAYS_MS = [5_000, 65_000];
const ID_DIGITS = 12;

/**
 * Returns a function that quotes a request as for a caller, lets the reference engine quote it at the same blocks and with
 * the same inputs, and compares the two. A difference counts if it is there every time that both quotes are made again.
 */
export function createShadowComparison(
  deps: ShadowComparisonDeps,
): (request: QuoteRequest, signal: AbortSignal) => Promise<ComparisonResult> {
  const { settings, attestations, referenceEngine, versions, now, sleep } = deps;

  async function makeQuotes(request: QuoteRequest, signal: AbortSignal): Promise<ComparedQuotes> {
    const { network, source, destination } = request;
    const currentSettings = await settings.getCurrent(network);
    const served = await deps.quote(request, signal);
    if (settings.peek(network) !== currentSettings) throw new Error("the fee settings have changed meanwhile");
    const { sourceState, destinationState, priceTable, amountIn } = served;
    const pins = new Map([
      [source.slug, createChainPin(sourceState)],
      [destination.slug, createChainPin(destinationState)],
    ]);
    const chains = recordChains(deps.chains(network), pins);
    const pricesUsd: Record<string, number> = {};
    const foundAttestations: Record<string, string | null> = {};
    // Only affects the deadline in the calldata of deliveries.
    const nowSeconds = destinationState?.readAtUnixSeconds ?? Math.floor(now() / 1_000);
    const comparedRequest = { ...request, amountIn, receiveAmount: undefined };
    const sdkQuote = await referenceEngine.quote(
      comparedRequest,
      {
        chains,
        settings: currentSettings,
        nowSeconds,
        getUsdPrice(symbol) {
          const usd = priceTable.getUsdPrice(symbol);
          pricesUsd[symbol] = usd;
          return usd;
        },
        async findAttestation(hash) {
          const attestation = await attestations?.find(hash);
          foundAttestations[hash] = attestation ?? null;
          return attestation;
        },
      },
      signal,
    );
    return {
      servedQuote: printQuote(served.quote),
      sdkQuote,
      inputs: { nowSeconds, settings: currentSettings, pricesUsd, attestations: foundAttestations },
      chains,
      request: comparedRequest,
      isPinned: !served.hasSeparateSwap,
    };
  }

  async function createCase(quotes: ComparedQuotes, signal: AbortSignal): Promise<ComparisonCase> {
    const { servedQuote, sdkQuote, inputs, chains } = quotes;
    const request = printRequest(quotes.request);
    const recomputedQuote = await recomputeQuote(quotes.request, inputs, chains, signal).catch((error: unknown) => {
      return { error: getErrorMessage(error) };
    });
    const recordings = chains.recordings();
    const digest = createHash("sha256").update(JSON.stringify([request, inputs.nowSeconds, servedQuote, sdkQuote]));
    return {
      id: digest.digest("hex").slice(0, ID_DIGITS),
      foundAt: new Date(now()).toISOString(),
      ...{ versions, request, servedQuote, sdkQuote, recomputedQuote, inputs },
      chains: recordings,
    };
  }

  async function compare(request: QuoteRequest, signal: AbortSignal): Promise<ComparisonResult> {
    const first = await makeQuotes(request, signal);
    if (isEqual(first)) return { outcome: "equal", quote: first.servedQuote };
    const unconfirmed = { outcome: "unconfirmed", differences: pairDifferences(first) } as const;
    let last = first;
    for (const delayMs of REPEAT_DELAYS_MS) {
      await sleep(delayMs, signal);
      const repeated = await makeQuotes(request, signal).catch(() => undefined);
      if (repeated === undefined || isEqual(repeated)) return unconfirmed;
      last = repeated;
    }
    return last.isPinned ? { outcome: "different", case: await createCase(last, signal) } : unconfirmed;
  }

  return (request, signal) =>
    compare(request, signal).catch((error: unknown) => ({ outcome: "failed", reason: getErrorMessage(error) }));
}

function isEqual({ servedQuote, sdkQuote }: ComparedQuotes): boolean {
  return listDifferences(servedQuote, sdkQuote).length === 0;
}

/** Returns the served value and the SDK's, by the names of the values that differ. */
function pairDifferences({ servedQuote, sdkQuote }: ComparedQuotes): Record<string, readonly [string, string]> {
  const names = listDifferences(servedQuote, sdkQuote);
  return Object.fromEntries(names.map((name) => [name, [servedQuote[name] ?? "", sdkQuote[name] ?? ""]]));
}
