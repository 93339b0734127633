// Loads the SDK, which takes hundreds of milliseconds: import this file when the first quote by the SDK is requested.
import { HopBridge } from "@hop-protocol/sdk";
import { BigNumber, providers } from "ethers";
import { RevertError } from "../chain/json-rpc/rpc-errors.js";
import type { FeeSettings } from "./fee-settings.js";
import type { NetworkSlug } from "./networks.js";

/** Sends one JSON-RPC call. @throws RevertError for a revert. */
export type SendRpc = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** All data that the SDK would otherwise fetch itself. */
export interface SdkDataSources {
  /** The only chains that the SDK may call. */
  readonly chains: readonly { readonly slug: string; readonly chainId: number; readonly send: SendRpc }[];
  readonly settings: FeeSettings;
  /** Returns the price of a token in US dollars. */
  readonly getUsdPrice: (symbol: string) => Promise<number>;
  /** Returns Circle's attestation of a CCTP message, or undefined. */
  readonly findAttestation: (messageHash: string) => Promise<string | undefined>;
  /** Unix seconds from which deadlines count; undefined: the current time. */
  readonly nowSeconds?: number | undefined;
}

/**
 * Quotes with the SDK's `getSendData` and `getSendDataAmountOutMins`. Creates a bridge object per quote, so that callers
 * share no state.
 * @param request `token`: symbol or alias in the SDK's letter case
 * @returns a quote with the SDK's field names. From L1, the destination fields are null
 */
export async function quoteWithSdk(
  request: {
    readonly network: NetworkSlug;
    readonly token: string;
    readonly sourceSlug: string;
    readonly destinationSlug: string;
    readonly amountIn: bigint;
    readonly slippagePercent: number;
  },
  sources: SdkDataSources,
) {
  const { network, token, sourceSlug, destinationSlug, amountIn, slippagePercent } = request;
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
    breakdown: {
      amountOut: data.amountOut.toBigInt(),
      requiredLiquidity: data.requiredLiquidity.toBigInt(),
      bonderFeeRelative: data.bonderFeeRelative.toBigInt(),
      adjustedBonderFee: data.adjustedBonderFee.toBigInt(),
      destinationTxFee: data.destinationTxFee.toBigInt(),
      adjustedDestinationTxFee: data.adjustedDestinationTxFee.toBigInt(),
      totalFee: data.totalFee.toBigInt(),
      feeBps: Number(data.feeBps),
      rate: data.rate,
      /** NaN or infinite where the SDK divides by 0. */
      priceImpact: data.priceImpact,
      lpFeeBps: Number(data.lpFeeBps),
      lpFees: data.lpFees.toBigInt(),
    },
  };
}

/** A bridge that uses the injected data instead of fetching it. */
class InjectedBridge extends HopBridge {
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
    const { nowSeconds } = this.#sources;
    return nowSeconds === undefined ? super.defaultDeadlineSeconds : nowSeconds + this.defaultDeadlineMinutes * 60;
  }

  // A quote does not depend on liquidity, and reading it takes requests.
  override async getFrontendAvailableLiquidity(): Promise<BigNumber> {
    return BigNumber.from(0);
  }

  override async getIsCctpEnabled(): Promise<boolean> {
    return false;
  }
}

/**
 * An ethers provider that sends its calls through this service's RPC client. The HTTP client of ethers is never used: it
 * decompresses responses without a limit and puts the endpoint's URL into error messages.
 */
class SdkProvider extends providers.StaticJsonRpcProvider {
  readonly #send: SendRpc;

  constructor(chain: { readonly slug: string; readonly chainId: number }, send: SendRpc) {
    // The URL is only a label. Given a network, ethers does not request the chain id. The name must be unknown to ethers,
    // which otherwise insists on its own chain id for that name.
    super(`hop-gateway://${chain.slug}`, { chainId: chain.chainId, name: `hop-${chain.slug}` });
    this.#send = send;
  }

  override async send(method: string, params: unknown[]): Promise<unknown> {
    try {
      return await this.#send(method, params);
    } catch (error) {
      // The error format of ethers' own client, without the node's message: the SDK searches it with regular expressions
      // that a long message can stall (ReDoS).
      if (error instanceof RevertError) throw Object.assign(new Error("execution reverted"), { code: error.code });
      throw error;
    }
  }
}
