import type { ChainClient } from "../chain/chain-client.js";
import type { NetworkChainClients } from "../chain/chains.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Quote } from "./math/quote.js";
import type { QuoteSteps } from "./math/quote-steps.js";
import type { DetailedQuote } from "./quote-engine.js";
import type { ReferenceQuote, SdkEngine } from "./sdk-engine.js";
import type { ServedQuote } from "./snapshot-engine.js";
import type { ChainState } from "./state/chain-state.js";

/** A served quote compared with the quote of the reference engine. */
export interface ComparisonResult {
  readonly served: ServedQuote;
  /** undefined: the reference engine failed, for example because the block is gone. */
  readonly referenceQuote: Quote | undefined;
  readonly isEqual: boolean;
  /** Results since the start, including this one. */
  readonly counts: ComparisonCounts;
}

export interface ComparisonCounts {
  readonly equal: number;
  readonly different: number;
  readonly unknown: number;
}

export interface ShadowComparisonOptions {
  /** Share of quotes to compare, 0 to 1. */
  readonly sampleRate: number;
  readonly referenceEngine: Pick<SdkEngine, "quoteAtTime">;
  readonly chains: (network: NetworkSlug) => NetworkChainClients;
  readonly onResult: (result: ComparisonResult) => void;
  /** Returns a random number from 0 to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Maximum queue length. Each comparison takes milliseconds of CPU and must not slow down callers. */
const MAX_PENDING_COMPARISONS = 100;

const COMPARED_FIELDS = ["amountOutMin", "destinationAmountOutMin", "bonderFee", "estimatedReceived"] as const;

/** Returns whether two quotes have the same values, and the same intermediate values where the served one has them. */
function areEqual({ details, ...served }: DetailedQuote, reference: ReferenceQuote): boolean {
  const names = details === undefined ? [] : (Object.keys(details.steps) as (keyof QuoteSteps)[]);
  return (
    COMPARED_FIELDS.every((field) => reference[field] === served[field]) &&
    names.every((name) => reference.steps[name] === details?.steps[name])
  );
}

/** Returns a function that takes served quotes and recomputes a sample of them with the reference engine, one at a time. */
export function createShadowComparison(options: ShadowComparisonOptions): (served: ServedQuote) => void {
  const { sampleRate, referenceEngine, chains, onResult, random, signal } = options;
  const queue: ServedQuote[] = [];
  let isDraining = false;
  const counts = { equal: 0, different: 0, unknown: 0 };

  async function drainQueue(): Promise<void> {
    isDraining = true;
    for (let served = queue.shift(); served !== undefined && !signal.aborted; served = queue.shift()) {
      const result = await compare(served);
      if (!signal.aborted) onResult(result);
    }
    isDraining = false;
  }

  async function compare(served: ServedQuote): Promise<ComparisonResult> {
    const { request, quote, sourceState, destinationState } = served;
    const access = pinChainAccess(
      chains(request.network),
      new Map([
        [request.source.slug, sourceState],
        [request.destination.slug, destinationState],
      ]),
    );
    // The clock only affects the deadline in the calldata of deliveries.
    const nowSeconds = destinationState?.readAtUnixSeconds ?? 0;
    const referenceQuote = await referenceEngine
      .quoteAtTime(request, access, nowSeconds, signal)
      .catch(() => undefined);
    const isEqual = referenceQuote !== undefined && areEqual(quote, referenceQuote);
    counts[referenceQuote === undefined ? "unknown" : isEqual ? "equal" : "different"] += 1;
    return { served, referenceQuote, isEqual, counts: { ...counts } };
  }

  return (served) => {
    if (random() >= sampleRate || queue.length >= MAX_PENDING_COMPARISONS) return;
    queue.push(served);
    if (!isDraining) void drainQueue();
  };
}

/** Pins chains to the blocks and gas prices of their state. */
function pinChainAccess(
  access: NetworkChainClients,
  states: ReadonlyMap<string, ChainState | undefined>,
): NetworkChainClients {
  return {
    ...access,
    getClient(slug) {
      const client = access.getClient(slug);
      const state = states.get(slug);
      return state === undefined ? client : pinChainClient(client, state);
    },
  };
}

function pinChainClient(client: ChainClient, state: ChainState): ChainClient {
  const block = `0x${state.block.number.toString(16)}`;
  return {
    ...client,
    async send(method, params, signal) {
      if (method === "eth_gasPrice" && state.gasPrice !== undefined) return `0x${state.gasPrice.toString(16)}`;
      const [call] = params;
      return client.send(
        method,
        method === "eth_call" || method === "eth_estimateGas" ? [call, block] : params,
        signal,
      );
    },
  };
}
