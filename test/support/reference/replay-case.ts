import type { ChainClient, RpcCall, RpcCallResult } from "../../../src/chain/chain-client.js";
import type { NetworkChainClients } from "../../../src/chain/chains.js";
import { RevertError } from "../../../src/chain/json-rpc/rpc-errors.js";
import type { NetworkSlug } from "../../../src/hop/networks.js";
import { ComparedTokenPrices } from "../../../src/prices/token-prices.js";
import { type ChainRecording, getCallKey, pinClient } from "../../../src/quotes/compare/chain-recording.js";
import type { PinnedSources } from "../../../src/quotes/compare/compare-engines.js";
import type { ComparisonCase } from "../../../src/quotes/compare/comparison-case.js";
import type { QuoteRequest } from "../../../src/quotes/state/quote-request.js";
import { findQuoteRoute } from "../stubs/quote-routes.js";

// Computes the quotes of a case that `hop-gateway compare` has printed again.

/** Returns the request of a case. */
export function readRequest({ request }: ComparisonCase): QuoteRequest {
  const { slippagePercent, amount, token, fromChain, toChain } = request;
  const network = request.network as NetworkSlug;
  const { network: _, ...route } = findQuoteRoute(token, fromChain, toChain, network);
  return { network, ...route, amountIn: BigInt(amount), slippagePercent };
}

/** Returns the sources of a case, from which both engines compute its quotes. */
export function replaySources({ inputs, chains }: ComparisonCase): PinnedSources {
  return {
    inputs,
    chains: replayChains(chains),
    prices: new ComparedTokenPrices({ fixedPricesUsd: new Map(Object.entries(inputs.pricesUsd)), sources: [] }),
    findAttestation: async (hash) => inputs.attestations[hash] ?? undefined,
  };
}

/** Returns chains that answer from recordings. Their clients throw for a call that was not recorded. */
function replayChains(recordings: ComparisonCase["chains"]): NetworkChainClients {
  return {
    hasCustomEndpoint: () => false,
    getClient(slug) {
      const recording = recordings[slug];
      if (recording === undefined) throw new Error(`${slug} is not a chain of the route`);
      return pinClient(replayClient(slug, recording), recording.pin);
    },
  };
}

function replayClient(slug: string, { calls }: ChainRecording): ChainClient {
  const outcomes = new Map(calls.map(({ method, params, outcome }) => [getCallKey(method, params), outcome]));
  function findOutcome({ method, params }: RpcCall): RpcCallResult {
    const outcome = outcomes.get(getCallKey(method, params));
    if (outcome === undefined) throw new Error(`the recording of ${slug} has no such call: ${method}`);
    if ("result" in outcome) return outcome;
    const { code, data } = outcome.revert;
    return { revert: new RevertError("execution reverted", code, data) };
  }
  return {
    slug,
    async send(method, params) {
      const outcome = findOutcome({ method, params });
      if ("revert" in outcome) throw outcome.revert;
      return outcome.result;
    },
    sendBatch: async (batch) => batch.map(findOutcome),
    getLogs: () => Promise.reject(new Error("a quote needs no logs")),
  };
}
