import type { BigNumber, providers } from "ethers";
import type { FeeSettings } from "../fee-settings.js";
import type { NetworkSlug } from "../networks.js";
import type { SendRpc } from "./sdk-provider.js";

/** All data that the SDK would otherwise fetch itself. */
export interface SdkDataSources {
  /** The only chains that the SDK may call. */
  readonly chains: readonly SdkChain[];
  readonly settings: FeeSettings;
  /** Returns the price of a token in US dollars. */
  readonly getUsdPrice: (symbol: string) => Promise<number>;
  /** Returns Circle's attestation of a CCTP message, or undefined. */
  readonly findAttestation: (messageHash: string) => Promise<string | undefined>;
  /** Returns the Unix seconds from which deadlines count; undefined: the current time. */
  readonly getNowSeconds?: (() => number) | undefined;
}

export interface SdkChain {
  readonly slug: string;
  readonly chainId: number;
  readonly send: SendRpc;
}

/** A quote with the SDK's field names. From L1, the destination fields are null. */
export interface SdkQuote {
  readonly totalFee: bigint;
  readonly estimatedReceived: bigint;
  readonly amountOutMin: bigint;
  readonly destinationAmountOutMin: bigint | null;
  readonly deadline: number;
  readonly destinationDeadline: number | null;
  /** Intermediate values. */
  readonly steps: SdkQuoteSteps;
}

/** Intermediate values of a quote with the SDK's field names. */
export interface SdkQuoteSteps {
  readonly amountOut: bigint;
  readonly requiredLiquidity: bigint;
  readonly bonderFeeRelative: bigint;
  readonly adjustedBonderFee: bigint;
  readonly destinationTxFee: bigint;
  readonly adjustedDestinationTxFee: bigint;
  readonly totalFee: bigint;
  readonly feeBps: number;
  readonly rate: number;
  /** NaN or infinite where the SDK divides by 0. */
  readonly priceImpact: number;
  readonly lpFeeBps: number;
  readonly lpFees: bigint;
}

export interface SdkQuoteRequest {
  readonly network: NetworkSlug;
  /** Symbol or alias in the SDK's letter case. */
  readonly token: string;
  readonly sourceSlug: string;
  readonly destinationSlug: string;
  readonly amountIn: bigint;
  readonly slippagePercent: number;
}

export type SdkQuoter = (request: SdkQuoteRequest, sources: SdkDataSources) => Promise<SdkQuote>;

/**
 * Loads the SDK (once, hundreds of milliseconds) and returns a function that quotes with `getSendData` and
 * `getSendDataAmountOutMins`. Creates a bridge object per quote, so that callers share no state.
 */
export async function loadSdkQuoter(): Promise<SdkQuoter> {
  const sdk = await import("@hop-protocol/sdk");
  const { BigNumber } = await import("ethers");
  const { SdkProvider } = await import("./sdk-provider.js");

  /** A bridge that uses the injected data instead of fetching it. */
  class InjectedBridge extends sdk.HopBridge {
    readonly #sources: SdkDataSources;
    readonly #providers: Readonly<Record<string, providers.Provider>>;

    constructor(network: NetworkSlug, token: string, sources: SdkDataSources) {
      const chainProviders = Object.fromEntries(
        sources.chains.map(({ send, ...chain }) => [chain.slug, new SdkProvider(chain, send)]),
      );
      super({ network, token, chainProviders, configFileFetchEnabled: false });
      this.#sources = sources;
      this.#providers = chainProviders;
      const { settings } = sources;
      this.bonders = settings.bonders;
      // The SDK's type lists the tokens of its version.
      this.fees = settings.bonderFeeBps as typeof this.fees;
      this.destinationFeeGasPriceMultiplier = settings.destinationFeeGasPriceMultiplier;
      this.relayerFeeEnabled = settings.relayerFeeEnabled;
      this.relayerFeeWei = settings.relayerFeeWei;
      this.bridgeDeprecated = settings.bridgeDeprecated;
    }

    override getPriceByTokenSymbol(symbol: string): Promise<number> {
      return this.#sources.getUsdPrice(symbol);
    }

    override async getCctpMessageAttestation(messageHash: string): Promise<string> {
      const attestation = await this.#sources.findAttestation(messageHash);
      if (attestation === undefined) throw new Error("no attestation");
      return attestation;
    }

    override getChainProvider(chain: string | { slug: string }): providers.Provider {
      const slug = typeof chain === "string" ? chain : chain.slug;
      const provider = this.#providers[slug];
      // The SDK would use one of its public endpoints.
      if (provider === undefined) throw new Error(`the SDK requested chain ${slug}, which is not part of the route`);
      return provider;
    }

    override get defaultDeadlineSeconds(): number {
      const { getNowSeconds } = this.#sources;
      return getNowSeconds === undefined
        ? super.defaultDeadlineSeconds
        : getNowSeconds() + this.defaultDeadlineMinutes * 60;
    }

    // A quote does not depend on liquidity, and reading it takes requests.
    override async getFrontendAvailableLiquidity(): Promise<BigNumber> {
      return BigNumber.from(0);
    }

    override async getIsCctpEnabled(): Promise<boolean> {
      return false;
    }
  }

  return async ({ network, token, sourceSlug, destinationSlug, amountIn, slippagePercent }, sources) => {
    const bridge = new InjectedBridge(network, token, sources);
    const data = await bridge.getSendData(amountIn.toString(), sourceSlug, destinationSlug);
    const minimums = bridge.getSendDataAmountOutMins(data, slippagePercent);
    return {
      totalFee: data.totalFee.toBigInt(),
      estimatedReceived: data.estimatedReceived.toBigInt(),
      amountOutMin: minimums.amountOutMin.toBigInt(),
      destinationAmountOutMin: minimums.destinationAmountOutMin?.toBigInt() ?? null,
      deadline: minimums.deadline,
      destinationDeadline: minimums.destinationDeadline,
      steps: {
        amountOut: data.amountOut.toBigInt(),
        requiredLiquidity: data.requiredLiquidity.toBigInt(),
        bonderFeeRelative: data.bonderFeeRelative.toBigInt(),
        adjustedBonderFee: data.adjustedBonderFee.toBigInt(),
        destinationTxFee: data.destinationTxFee.toBigInt(),
        adjustedDestinationTxFee: data.adjustedDestinationTxFee.toBigInt(),
        totalFee: data.totalFee.toBigInt(),
        feeBps: Number(data.feeBps),
        rate: data.rate,
        priceImpact: data.priceImpact,
        lpFeeBps: Number(data.lpFeeBps),
        lpFees: data.lpFees.toBigInt(),
      },
    };
  };
}
