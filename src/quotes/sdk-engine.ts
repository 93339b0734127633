import { type ChainClient, isQuantity } from "../chain/chain-client.js";
import type { ChainAccess } from "../chain/chains.js";
import { RevertError } from "../chain/json-rpc/revert-error.js";
import { ServiceError } from "../errors.js";
import type { Attestations } from "../hop/cctp/attestation-client.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Send } from "../hop/sdk/sdk-provider.js";
import { loadSdkQuoter, type SdkQuoter, type SdkSources } from "../hop/sdk/sdk-quoter.js";
import type { TokenPrices } from "../prices/token-prices.js";
import type { Gate } from "../resilience/adaptive-limiter.js";
import type { Quote } from "./math/quote.js";
import type { QuoteEngine, QuoteRequest, Waiting } from "./quote-engine.js";

export interface SdkEngineDeps {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<Attestations, "find"> | undefined;
  /** The chains of a network on the endpoints of our own. */
  readonly chains: (network: NetworkSlug) => ChainAccess;
  /** What quotes for callers have to pass: one takes milliseconds of CPU. */
  readonly gate: Gate;
}

export interface SdkEngine extends QuoteEngine {
  /** As quotePrivately, with the clock of another time, Unix seconds, and at once: deadlines have a part in the price. */
  quoteAt(request: QuoteRequest, chains: ChainAccess, nowSeconds: number, signal: AbortSignal): Promise<Quote>;
}

/** Selectors of the calls that revert because of the amount: calculateSwap, aggregate3 (of such calls), quoteExactInput. */
const swapSelectors = new Set(["0xa95b089f", "0x82ad56cb", "0xcdca1753"]);

/** Codes of ethers' errors about what it was given to read. */
const answerFaults = new Set(["CALL_EXCEPTION", "INVALID_ARGUMENT", "NUMERIC_FAULT", "BUFFER_OVERRUN"]);

/** Longest answer of a contract, in characters of hex: three swaps in one aggregate3 take a quarter of it. */
const maxResultLength = 4098;

/** A quote by the SDK is as old as it takes to make it, and about the next block there would be another. */
const freshness = { ageMs: 0, maxAgeMs: 2_000, refreshMs: 2_000 };

/** Quotes through the SDK, fed with our own chains, prices and settings. */
export function createSdkEngine({ settings, prices, attestations, chains: ourChains, gate }: SdkEngineDeps): SdkEngine {
  let loading: Promise<SdkQuoter> | undefined;

  async function quote(
    { network, token, source, destination, amountIn, slippage }: QuoteRequest,
    chains: ChainAccess,
    nowSeconds: (() => number) | undefined,
    signal: AbortSignal,
  ): Promise<Quote> {
    loading ??= loadSdkQuoter().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    const [sdkQuote, feeSettings] = await Promise.all([loading, settings.current(network)]);
    if (feeSettings.bonderFeeBps[token.symbol] === undefined) {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `the fee settings have no fee for ${token.symbol}`);
    }
    const trouble = createTrouble();
    const sources: SdkSources = {
      chains: [source, destination].map(({ slug, chainId }) => {
        return { slug, chainId, send: createSend(chains.client(slug), trouble, signal) };
      }),
      settings: feeSettings,
      usd: (symbol) => trouble.watch(prices.usd(symbol)),
      attestation: async (hash) => attestations && trouble.watch(attestations.find(hash)),
      nowSeconds,
    };
    const request = { network, token: token.name, sourceSlug: source.slug, destinationSlug: destination.slug };
    const answer = await sdkQuote({ ...request, amountIn, slippage }, sources).catch((error: unknown) => {
      throw trouble.explain(error);
    });
    // The SDK goes on with a constant or 0 where a read fails, and the quote would be silently wrong.
    trouble.rethrow();
    const { amountOutMin, deadline } = answer;
    return {
      amountOutMin,
      destinationAmountOutMin: answer.destinationAmountOutMin ?? amountOutMin,
      bonderFee: answer.totalFee,
      estimatedReceived: answer.estimatedReceived,
      deadline,
      destinationDeadline: answer.destinationDeadline ?? deadline,
    };
  }

  function quotePrivately(request: QuoteRequest, chains: ChainAccess, { caller, signal }: Waiting): Promise<Quote> {
    return gate.pass(caller, signal, () => quote(request, chains, undefined, signal));
  }

  return {
    quote: async (request, waiting) => ({
      quote: await quotePrivately(request, ourChains(request.network), waiting),
      freshness,
    }),
    quotePrivately,
    quoteAt: (request, chains, nowSeconds, signal) => quote(request, chains, () => nowSeconds, signal),
  };
}

/** Sees what went wrong below the SDK, which swallows some failures and rewords the others. */
interface Trouble {
  /** Passes a promise through and remembers its failure. */
  watch<T>(promise: Promise<T>): Promise<T>;
  /** Notes that a call which swaps the amount reverted. */
  swapReverted(): void;
  /** The error to answer for one that the SDK threw. */
  explain(error: unknown): unknown;
  /** Throws the first remembered failure, if any. */
  rethrow(): void;
}

function createTrouble(): Trouble {
  let failure: { readonly error: unknown } | undefined;
  let swapReverted = false;

  return {
    async watch(promise) {
      try {
        return await promise;
      } catch (error) {
        if (!(error instanceof RevertError)) failure ??= { error };
        throw error;
      }
    },
    swapReverted() {
      swapReverted = true;
    },
    explain(error) {
      if (failure !== undefined) return failure.error;
      // Uniswap's own arithmetic in the SDK refuses with a failed invariant what its contract refuses with a revert.
      if (swapReverted || /invariant/i.test(String(error))) {
        const message = "the pools of this route cannot swap this amount";
        return new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
      }
      // What ethers cannot read or compute with came from a chain: the caller's own values are checked before.
      if (answerFaults.has(String((error as { code?: unknown }).code))) {
        const message = "a chain gives an answer that Hop's contracts could not give";
        return new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: error });
      }
      return error;
    },
    rethrow() {
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** Sends the SDK's calls, and notes what goes wrong. */
function createSend(client: ChainClient, trouble: Trouble, signal: AbortSignal): Send {
  return async (method, params) => {
    try {
      return await trouble.watch(readable(client, method, params, signal));
    } catch (error) {
      if (error instanceof RevertError && isSwapCall(params)) trouble.swapReverted();
      throw error;
    }
  };
}

/**
 * An answer that the SDK and ethers can be given: they check little, and a hostile one makes them compute for minutes
 * or run out of memory.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for any other
 */
async function readable(
  client: ChainClient,
  method: string,
  params: readonly unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  const result = await client.send(method, params, signal);
  const isRight = method === "eth_call" ? isWords(result) : isQuantity(result);
  if (isRight) return result;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", `${client.slug} gives an answer that Hop's contracts could not give`);
}

/** Whole 32-byte words as hex, at least one: what every function that a quote calls returns. */
function isWords(value: unknown): boolean {
  return typeof value === "string" && value.length <= maxResultLength && /^0x([0-9a-f]{64})+$/i.test(value);
}

function isSwapCall(params: readonly unknown[]): boolean {
  const [call] = params as [{ data?: unknown } | undefined];
  return typeof call?.data === "string" && swapSelectors.has(call.data.slice(0, 10));
}
