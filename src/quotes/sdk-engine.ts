import type { ChainAccess } from "../chain/chains.js";
import { RevertError } from "../chain/rpc-error.js";
import { ServiceError } from "../errors.js";
import type { Attestations } from "../hop/attestations.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { Chain } from "../hop/networks.js";
import { loadSdkQuoter, type SdkQuoter, type SdkSources } from "../hop/sdk-bridge.js";
import { SdkProvider } from "../hop/sdk-provider.js";
import type { TokenPrices } from "../prices/token-prices.js";
import type { QuoteEngine } from "./quote.js";

export interface SdkEngineDeps {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Attestations | undefined;
}

/** Selectors of the calls that revert because of the amount: calculateSwap, aggregate3 (of such calls), quoteExactInput. */
const swapSelectors = new Set(["0xa95b089f", "0x82ad56cb", "0xcdca1753"]);

/** Quotes through the SDK, fed with our own chains, prices and settings. */
export function createSdkEngine({ settings, prices, attestations }: SdkEngineDeps): QuoteEngine {
  let loading: Promise<SdkQuoter> | undefined;

  return {
    async quote({ network, token, source, destination, amountIn, slippage }, chains, signal) {
      loading ??= loadSdkQuoter();
      const [sdkQuote, feeSettings] = await Promise.all([loading, settings.current(network)]);
      const trouble = createTrouble();
      const sources: SdkSources = {
        providers: Object.fromEntries(
          [source, destination].map((chain) => [chain.slug, createProvider(chain, chains, trouble, signal)]),
        ),
        settings: feeSettings,
        usd: (symbol) => trouble.watch(prices.usd(symbol)),
        attestation: async (hash) => trouble.watch(findAttestation(hash, signal)),
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
    },
  };

  async function findAttestation(hash: string, signal: AbortSignal): Promise<string | undefined> {
    if (attestations === undefined) return undefined;
    try {
      return await attestations.find(hash, signal);
    } catch (cause) {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "the CCTP attestation source gives no answer", { cause });
    }
  }
}

/** Sees what went wrong below the SDK, which swallows some failures and rewords the others. */
interface Trouble {
  /** Passes a promise through and remembers its failure. */
  watch<T>(promise: Promise<T>): Promise<T>;
  /** Notes that a call reverted, and whether it was one that swaps the amount. */
  reverted(isSwap: boolean): void;
  /** The error to answer for one that the SDK threw. */
  explain(error: unknown): unknown;
  /** Throws the first remembered failure, if any. */
  rethrow(): void;
}

function createTrouble(): Trouble {
  let failure: { readonly error: unknown } | undefined;
  let swapReverted = false;
  let otherReverted = false;

  return {
    async watch(promise) {
      try {
        return await promise;
      } catch (error) {
        if (!(error instanceof RevertError)) failure ??= { error };
        throw error;
      }
    },
    reverted(isSwap) {
      if (isSwap) swapReverted = true;
      else otherReverted = true;
    },
    explain(error) {
      if (failure !== undefined) return failure.error;
      // Uniswap's own arithmetic in the SDK refuses with a failed invariant what its contract refuses with a revert.
      if (swapReverted || /invariant/i.test(String(error))) {
        const message = "the pools of this route cannot swap this amount";
        return new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
      }
      if (otherReverted) {
        return new ServiceError("UPSTREAM_UNAVAILABLE", "a chain answers for other contracts than Hop's", {
          cause: error,
        });
      }
      return error;
    },
    rethrow() {
      if (failure !== undefined) throw failure.error;
    },
  };
}

function createProvider(chain: Chain, chains: ChainAccess, trouble: Trouble, signal: AbortSignal): SdkProvider {
  const client = chains.client(chain.slug);
  return new SdkProvider(chain, async (method, params) => {
    try {
      const result = await trouble.watch(client.send(method, params, signal));
      if (method === "eth_call" && result === "0x") trouble.reverted(false);
      return result;
    } catch (error) {
      if (error instanceof RevertError && method === "eth_call") trouble.reverted(isSwapCall(params));
      throw error;
    }
  });
}

function isSwapCall(params: readonly unknown[]): boolean {
  const [call] = params as [{ data?: unknown } | undefined];
  return typeof call?.data === "string" && swapSelectors.has(call.data.slice(0, 10));
}
