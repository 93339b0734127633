import {
  encodeBytes,
  encodeWithOffsets,
  encodeWord,
  isAddress,
  toFunctionSelector,
} from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import { ServiceError } from "../../errors.js";
import { buildSampleCctpMessage } from "../../hop/cctp/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { Chain, Network, TokenContracts } from "../../hop/networks.js";
import type { Token } from "../../hop/tokens.js";
import { findUsdcSwapPool, type UsdcSwapPool } from "../../hop/usdc-swap-pools.js";
import type { PriceTable } from "../../prices/token-prices.js";
import { CCTP_FALLBACK_GAS, CCTP_GAS_MARGIN, computeMinBonderFee, getBondFallbackGas } from "../math/fees.js";
import type { BridgeSnapshot, CctpSnapshot, DeliveryCost, RouteSnapshot } from "../math/route-snapshot.js";
import type { ChainState } from "./chain-state.js";
import {
  createReadSet,
  type DeliveryTransaction,
  getCallKey,
  getDeliveryKey,
  type PoolRef,
  type ReadSet,
} from "./read-set.js";

/** What the quotes of one route are made from under one state of the settings. */
export interface RoutePlan {
  /** undefined: nothing of that chain. */
  readonly sourceReadSet: ReadSet | undefined;
  readonly destinationReadSet: ReadSet | undefined;
  /** The swap before a CCTP transfer of USDC.e. */
  readonly usdcSwapPool: UsdcSwapPool | undefined;
  /** Tokens whose prices have a part in it. */
  readonly pricedTokens: readonly string[];
  /**
   * Puts together what was read.
   * @throws ServiceError UPSTREAM_UNAVAILABLE for what could not be read, a price among it.
   */
  buildSnapshot(source: ChainState | undefined, destination: ChainState | undefined, prices: PriceTable): RouteSnapshot;
}

export interface QuoteRoute {
  readonly network: Network;
  readonly token: Token;
  readonly source: Chain;
  readonly destination: Chain;
}

const SEVEN_DAYS_SECONDS = 7 * 24 * 60 * 60;

const bondWithdrawalSelector = toFunctionSelector("bondWithdrawal(address,uint256,bytes32,uint256)");
const bondWithdrawalAndDistributeSelector = toFunctionSelector(
  "bondWithdrawalAndDistribute(address,uint256,bytes32,uint256,uint256,uint256)",
);
const minBonderFeeAbsoluteSelector = toFunctionSelector("minBonderFeeAbsolute()");
const minBonderFeeSelector = toFunctionSelector("minBonderFee()");
const receiveMessageSelector = toFunctionSelector("receiveMessage(bytes,bytes)");

/** The transfer whose bonding the SDK has estimated: recipient, amount, nonce, bonder fee. */
const sampleTransferWords = [encodeWord(`0x${"1".repeat(40)}`), encodeWord(10n), encodeWord(0n), encodeWord(1n)].join(
  "",
);

/** Tokens that the SDK swaps nowhere, by the name they are asked for. */
const TOKENS_WITHOUT_POOLS: Readonly<Record<string, ReadonlySet<string>>> = {
  mainnet: new Set(["HOP"]),
  goerli: new Set(["HOP", "USDC", "USDT", "DAI", "UNI"]),
};

/** Chains that charge for a transaction's bytes on L1 by the OP stack's oracle. */
const l1FeeSlugs = new Set(["optimism", "base"]);
/** L2s whose bridge of ETH has a least fee that the SDK heeds. */
const minEthFeeSlugs = new Set(["gnosis", "polygon"]);

/**
 * Plans the quotes of a route that exists, after the SDK's getSendData.
 * @param attestation Circle's word for the message by which CCTP deliveries are estimated; undefined: there is none.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the settings have no fee for the token.
 */
export function planRoute(route: QuoteRoute, settings: FeeSettings, attestation: string | undefined): RoutePlan {
  const { token } = route;
  if (settings.bonderFeeBps[token.symbol] === undefined) {
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `the fee settings have no fee for ${token.symbol}`);
  }
  return isCctpToken(token) ? planCctp(route, settings, attestation) : planBridge(route, settings);
}

/** Whether a token travels by CCTP and not over Hop's own bridge. */
export function isCctpToken(token: Token): boolean {
  return token.symbol === "USDC" || token.symbol === "USDC.e";
}

function planBridge(route: QuoteRoute, settings: FeeSettings): RoutePlan {
  const { network, token, source, destination } = route;
  const isSwapped = TOKENS_WITHOUT_POOLS[network.slug]?.has(token.requestedSymbol) !== true;
  const sourcePool = isSwapped ? findPool(route, source) : undefined;
  const destinationPool = isSwapped ? findPool(route, destination) : undefined;
  const leastFeeView = findMinFeeCall(route);
  const delivery = source.isL1 ? undefined : buildBondTransaction(route, settings, isSwapped);

  function bonderFee(from: ChainState | undefined, to: ChainState | undefined, prices: PriceTable) {
    if (to === undefined) throw new Error("a bonded transfer without facts of its destination");
    const tokenUsd = prices.getUsdPrice(token.symbol);
    const byContract = leastFeeView === undefined ? 0n : (from?.getUint(getCallKey(leastFeeView)) ?? 0n);
    const byPrice = computeMinBonderFee(tokenUsd, token.decimals);
    return {
      feeBps: getBonderFeeBps(route, settings),
      minFee: isExemptFromMinFee(route) ? 0n : byContract > byPrice ? byContract : byPrice,
      delivery: computeDeliveryCost(to, delivery, getBondFallbackGas(destination.slug)),
      nativeUsd: prices.getUsdPrice(destination.nativeToken),
      tokenUsd,
    };
  }

  return {
    sourceReadSet: createReadSet({ pool: sourcePool, uintCall: leastFeeView }),
    destinationReadSet: createReadSet({ pool: destinationPool, delivery, includesGasPrice: !source.isL1 }),
    usdcSwapPool: undefined,
    pricedTokens: source.isL1 ? [] : [token.symbol, destination.nativeToken],
    buildSnapshot(from, to, prices): BridgeSnapshot {
      return {
        ...buildSnapshotBase(route, settings),
        kind: "bridge",
        sourcePool: sourcePool === undefined ? undefined : from?.getPool(sourcePool.address),
        destinationPool: destinationPool === undefined ? undefined : to?.getPool(destinationPool.address),
        bonder: source.isL1 ? undefined : bonderFee(from, to, prices),
        relayerFee: getRelayerFee(route, settings),
      };
    },
  };
}

function planCctp(route: QuoteRoute, settings: FeeSettings, attestation: string | undefined): RoutePlan {
  const { token, source, destination } = route;
  const bridge = getTokenContracts(route, source);
  const leastFeeView = { to: requireAddress(bridge.cctpL1Bridge ?? bridge.cctpL2Bridge), data: minBonderFeeSelector };
  const delivery = attestation === undefined ? undefined : buildMintTransaction(route, attestation);
  return {
    sourceReadSet: createReadSet({ uintCall: leastFeeView }),
    destinationReadSet: createReadSet({ delivery, includesGasPrice: true }),
    usdcSwapPool: token.symbol === "USDC.e" && !source.isL1 ? findUsdcSwapPool(source.slug) : undefined,
    pricedTokens: ["USDC", destination.nativeToken],
    buildSnapshot(from, to, prices): CctpSnapshot {
      if (from === undefined || to === undefined) throw new Error("a CCTP transfer without facts of both chains");
      return {
        ...buildSnapshotBase(route, settings),
        kind: "cctp",
        minBonderFee: from.getUint(getCallKey(leastFeeView)),
        delivery: computeDeliveryCost(to, delivery, CCTP_FALLBACK_GAS),
        nativeUsd: prices.getUsdPrice(destination.nativeToken),
        tokenUsd: prices.getUsdPrice("USDC"),
      };
    },
  };
}

/** The bond by which the SDK estimates a delivery; undefined where it cannot be made out, and the constant holds. */
function buildBondTransaction(
  route: QuoteRoute,
  settings: FeeSettings,
  isSwapped: boolean,
): DeliveryTransaction | undefined {
  const { token, source, destination } = route;
  const bonder = settings.bonders[token.symbol]?.[source.slug]?.[destination.slug];
  // One of the SDK's own addresses ends in a space, and what cannot be read as an address is not estimated.
  if (bonder !== undefined && !isAddress(bonder)) return undefined;
  const bridge = getTokenContracts(route, destination);
  const distributes = isSwapped && !destination.isL1;
  return {
    from: bonder?.toLowerCase(),
    to: requireAddress(bridge.l1Bridge ?? bridge.l2Bridge),
    encodeCalldata: (now) =>
      distributes
        ? bondWithdrawalAndDistributeSelector +
          sampleTransferWords +
          encodeWord(0n) +
          encodeWord(BigInt(now + SEVEN_DAYS_SECONDS))
        : bondWithdrawalSelector + sampleTransferWords,
    fallbackGas: getBondFallbackGas(destination.slug),
    gasMargin: 0n,
    hasL1Fee: l1FeeSlugs.has(destination.slug),
  };
}

function buildMintTransaction(route: QuoteRoute, attestation: string): DeliveryTransaction | undefined {
  const { destination } = route;
  const message = buildSampleCctpMessage(destination.slug);
  if (message === undefined || !/^0x([0-9a-f]{2})*$/i.test(attestation)) return undefined;
  const data = receiveMessageSelector + encodeWithOffsets([encodeBytes(message.bytes), encodeBytes(attestation)]);
  return {
    from: undefined,
    to: requireAddress(getTokenContracts(route, destination).cctpMessageTransmitter),
    encodeCalldata: () => data,
    fallbackGas: CCTP_FALLBACK_GAS,
    gasMargin: CCTP_GAS_MARGIN,
    hasL1Fee: false,
  };
}

function computeDeliveryCost(
  facts: ChainState,
  delivery: DeliveryTransaction | undefined,
  constant: bigint,
): DeliveryCost {
  const { gasPrice } = facts;
  if (gasPrice === undefined) throw new Error("a delivery without its chain's price of gas");
  const cost =
    delivery === undefined ? { gas: constant, l1Fee: 0n } : facts.getDeliveryGasCost(getDeliveryKey(delivery));
  return { gasPrice, ...cost };
}

/** The least fee that the source's contract asks, where the SDK heeds it: out of two chains for ETH, and on testnets. */
function findMinFeeCall(route: QuoteRoute): ContractCall | undefined {
  const { network, token, source } = route;
  const isHeeded = network.slug !== "mainnet" || (token.symbol === "ETH" && minEthFeeSlugs.has(source.slug));
  if (source.isL1 || !isHeeded || isExemptFromMinFee(route)) return undefined;
  return { to: requireAddress(getTokenContracts(route, source).l2Bridge), data: minBonderFeeAbsoluteSelector };
}

/** DAI into gnosis is bonded for less, if it is asked for by that name. */
function isExemptFromMinFee({ token, destination }: QuoteRoute): boolean {
  return destination.slug === "gnosis" && token.requestedSymbol === "DAI";
}

/** Hundredths of a percent. DAI that leaves gnosis as `XDAI` pays what it pays towards gnosis. */
function getBonderFeeBps({ token, source, destination }: QuoteRoute, settings: FeeSettings): number {
  const byDestination = settings.bonderFeeBps[token.symbol] ?? {};
  const usual = byDestination[destination.slug] ?? 0;
  return source.slug === "gnosis" && token.requestedSymbol === "XDAI" ? (byDestination.gnosis ?? usual) : usual;
}

/** From L1: what the relayer gets, wei; it is paid for ETH alone, asked for by that name. */
function getRelayerFee({ token, source, destination }: QuoteRoute, settings: FeeSettings): bigint | undefined {
  if (!source.isL1 || !settings.relayerFeeEnabled[destination.slug]) return undefined;
  return token.requestedSymbol === "ETH" ? BigInt(settings.relayerFeeWei[destination.slug] ?? 0) : 0n;
}

function buildSnapshotBase({ token, source, destination }: QuoteRoute, settings: FeeSettings) {
  return {
    decimals: token.decimals,
    sourceIsL1: source.isL1,
    destinationSlug: destination.slug,
    destinationIsL1: destination.isL1,
    feeMultiplier: settings.destinationFeeGasPriceMultiplier,
  };
}

/** The token's pool on a chain; L1 has none. */
function findPool(route: QuoteRoute, chain: Chain): PoolRef | undefined {
  if (chain.isL1) return undefined;
  return { address: requireAddress(getTokenContracts(route, chain).l2SaddleSwap), decimals: route.token.decimals };
}

function getTokenContracts({ network, token }: QuoteRoute, chain: Chain): TokenContracts {
  return network.contracts.get(token.symbol)?.get(chain.slug) ?? {};
}

function requireAddress(value: string | number | undefined): string {
  if (typeof value !== "string") throw new Error("the address book has no such contract");
  return value.toLowerCase();
}
