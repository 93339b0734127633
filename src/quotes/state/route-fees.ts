import { toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import { getTokenContracts, type QuoteRoute, requireAddress } from "./quote-request.js";

// Which fees of the settings and contracts apply to a route. Each doc comment names the SDK function that it mirrors.

const minBonderFeeAbsoluteSelector = toFunctionSelector("minBonderFeeAbsolute()");
const minBonderFeeSelector = toFunctionSelector("minBonderFee()");

/** L2s whose ETH bridge has a minimum fee that the SDK applies. */
const MIN_ETH_FEE_SLUGS = new Set(["gnosis", "polygon"]);

/**
 * Returns the call for the source contract's minimum fee where the SDK applies it: for ETH from two chains, and on
 * testnets (SDK: getBonderFeeAbsolute).
 */
export function buildMinBonderFeeCall(route: QuoteRoute): ContractCall | undefined {
  const { network, token, source } = route;
  const applies = network.slug !== "mainnet" || (token.symbol === "ETH" && MIN_ETH_FEE_SLUGS.has(source.slug));
  if (source.isL1 || !applies || isExemptFromMinFee(route)) return undefined;
  return { to: requireAddress(getTokenContracts(route, source).l2Bridge), data: minBonderFeeAbsoluteSelector };
}

/** Returns the call for the minimum fee of the source's CCTP bridge (SDK: getSendData for CCTP). */
export function buildCctpMinFeeCall(route: QuoteRoute): ContractCall {
  const { cctpL1Bridge, cctpL2Bridge } = getTokenContracts(route, route.source);
  return { to: requireAddress(cctpL1Bridge ?? cctpL2Bridge), data: minBonderFeeSelector };
}

/** DAI to gnosis has no minimum fee if requested as `DAI`, not as an alias (SDK: getBonderFeeAbsolute). */
export function isExemptFromMinFee({ token, destination }: QuoteRoute): boolean {
  return destination.slug === "gnosis" && token.requestedSymbol === "DAI";
}

/** Hundredths of a percent. DAI that leaves gnosis as `XDAI` pays the fee for transfers to gnosis (SDK: getFeeBps). */
export function getBonderFeeBps({ token, source, destination }: QuoteRoute, settings: FeeSettings): number {
  const feeByDestination = settings.bonderFeeBps[token.symbol] ?? {};
  const feeBps = feeByDestination[destination.slug] ?? 0;
  return source.slug === "gnosis" && token.requestedSymbol === "XDAI" ? (feeByDestination.gnosis ?? feeBps) : feeBps;
}

/** Relayer fee from L1 in wei; charged only for ETH that is requested as `ETH` (SDK: getRelayerFee). */
export function getRelayerFee({ token, source, destination }: QuoteRoute, settings: FeeSettings): bigint | undefined {
  if (!source.isL1 || !settings.relayerFeeEnabled[destination.slug]) return undefined;
  return token.requestedSymbol === "ETH" ? BigInt(settings.relayerFeeWei[destination.slug] ?? 0) : 0n;
}
