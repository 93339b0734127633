import type { BigNumber, providers } from "ethers";
import type { FeeSettings } from "../fee-settings.js";
import type { NetworkSlug } from "../networks.js";
import type { SendRpc } from "./sdk-provider.js";

/** Everything that the SDK would otherwise fetch from hosts of its own choice. */
export interface SdkDataSources {
  /** How each chain is asked; the SDK may use no other. */
  readonly chains: readonly SdkChain[];
  readonly settings: FeeSettings;
  /** Price of a token in US dollars. */
  readonly getUsdPrice: (symbol: string) => Promise<number>;
  /** Circle's signature under a CCTP message, or undefined. */
  readonly findAttestation: (messageHash: string) => Promise<string | undefined>;
  /** The time from which deadlines count, Unix seconds; undefined: now. */
  readonly getNowSeconds?: (() => number) | undefined;
}

export interface SdkChain {
  readonly slug: string;
  readonly chainId: number;
  readonly send: SendRpc;
}

/** A quote in the SDK's words; from L1 it leaves the destination's fields null. */
export interface SdkQuote {
  readonly totalFee: bigint;
  readonly estimatedReceived: bigint;
  readonly amountOutMin: bigint;
  readonly destinationAmountOutMin: bigint | null;
  readonly deadline: number;
  readonly destinationDeadline: number | null;
}

export interface SdkQuoteRequest {
  readonly network: NetworkSlug;
  /** The symbol or alias as the SDK writes it. */
  readonly token: string;
  readonly sourceSlug: string;
  readonly destinationSlug: string;
  readonly amountIn: bigint;
  readonly slippagePercent: number;
}

export type SdkQuoter = (request: SdkQuoteRequest, sources: SdkDataSources) => Promise<SdkQuote>;

/**
 * Loads the SDK (hundreds of milliseconds, once) and gives a function that quotes through `getSendData` and
 * `getSendDataAmountOutMins`. A bridge object is made for each quote: nothing of one caller is kept for another.
 */
export async function loadSdkQuoter(): Promise<SdkQuoter> {
  const sdk = await import("@hop-protocol/sdk");
  const { BigNumber } = await import("ethers");
  const { SdkProvider } = await import("./sdk-provider.js");

  /** A bridge that leaves nothing to the SDK's own fetching. */
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
      // The SDK names its type by the tokens that it knows today.
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
      // The SDK would go to a public endpoint of its own here.
      if (provider === undefined) throw new Error(`the SDK asked for chain ${slug}`);
      return provider;
    }

    override get defaultDeadlineSeconds(): number {
      const { getNowSeconds } = this.#sources;
      return getNowSeconds === undefined
        ? super.defaultDeadlineSeconds
        : getNowSeconds() + this.defaultDeadlineMinutes * 60;
    }

    // Liquidity is no part of a quote; asking for it costs fetches and calls.
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
    };
  };
}
