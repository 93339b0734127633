import type { ChainClient } from "../chain/chain-client.js";
import type { NetworkChains } from "../chain/chains.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Quote } from "./math/quote.js";
import type { SdkEngine } from "./sdk-engine.js";
import type { ServedQuote } from "./snapshot-engine.js";
import type { ChainState } from "./state/chain-state.js";

/** What the SDK made of a quote that was given. */
export interface ComparisonResult {
  readonly served: ServedQuote;
  /** undefined: the SDK could not say, as when the block is gone. */
  readonly referenceQuote: Quote | undefined;
  readonly isEqual: boolean;
  /** Verdicts since the start, this one among them. */
  readonly counts: ComparisonCounts;
}

export interface ComparisonCounts {
  readonly equal: number;
  readonly different: number;
  readonly unknown: number;
}

export interface ShadowComparisonOptions {
  /** Share of quotes, 0 to 1. */
  readonly sampleRate: number;
  readonly referenceEngine: SdkEngine;
  readonly chains: (network: NetworkSlug) => NetworkChains;
  readonly onResult: (verdict: ComparisonResult) => void;
  /** 0 to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Quotes that wait to be verified: the SDK takes milliseconds of CPU for each, and no caller is to notice. */
const MAX_PENDING_COMPARISONS = 100;

const COMPARED_FIELDS = ["amountOutMin", "destinationAmountOutMin", "bonderFee", "estimatedReceived"] as const;

/** Takes quotes that were given to callers and has the SDK compute a share of them again, one after the other. */
export function createShadowComparison(options: ShadowComparisonOptions): (given: ServedQuote) => void {
  const { sampleRate, referenceEngine, chains, onResult, random, signal } = options;
  const waiting: ServedQuote[] = [];
  let isBusy = false;
  const counts = { equal: 0, different: 0, unknown: 0 };

  async function work(): Promise<void> {
    isBusy = true;
    for (let given = waiting.shift(); given !== undefined && !signal.aborted; given = waiting.shift()) {
      const verdict = await judge(given);
      if (!signal.aborted) onResult(verdict);
    }
    isBusy = false;
  }

  async function judge(served: ServedQuote): Promise<ComparisonResult> {
    const { request, quote, sourceState, destinationState } = served;
    const access = pinChainAccess(
      chains(request.network),
      new Map([
        [request.source.slug, sourceState],
        [request.destination.slug, destinationState],
      ]),
    );
    // Deadlines have a part in the price of deliveries alone.
    const nowSeconds = destinationState?.readAtUnixSeconds ?? 0;
    const referenceQuote = await referenceEngine
      .quoteAtTime(request, access, nowSeconds, signal)
      .catch(() => undefined);
    const isEqual =
      referenceQuote !== undefined && COMPARED_FIELDS.every((field) => referenceQuote[field] === quote[field]);
    counts[referenceQuote === undefined ? "unknown" : isEqual ? "equal" : "different"] += 1;
    return { served, referenceQuote, isEqual, counts: { ...counts } };
  }

  return (given) => {
    if (random() >= sampleRate || waiting.length >= MAX_PENDING_COMPARISONS) return;
    waiting.push(given);
    if (!isBusy) void work();
  };
}

/** The chains as they were when facts were read: at those blocks, and at that price of gas. */
function pinChainAccess(access: NetworkChains, facts: ReadonlyMap<string, ChainState | undefined>): NetworkChains {
  return {
    ...access,
    getClient(slug) {
      const client = access.getClient(slug);
      const read = facts.get(slug);
      return read === undefined ? client : pinChainClient(client, read);
    },
  };
}

function pinChainClient(client: ChainClient, facts: ChainState): ChainClient {
  const block = `0x${facts.block.number.toString(16)}`;
  return {
    ...client,
    async send(method, params, signal) {
      if (method === "eth_gasPrice" && facts.gasPrice !== undefined) return `0x${facts.gasPrice.toString(16)}`;
      const [call] = params;
      return client.send(
        method,
        method === "eth_call" || method === "eth_estimateGas" ? [call, block] : params,
        signal,
      );
    },
  };
}
