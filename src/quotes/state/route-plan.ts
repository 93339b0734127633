import { dynamicBytes, isAddress, selectorOf, withOffsets, word } from "../../chain/abi/abi-encoding.js";
import type { View } from "../../chain/abi/multicall.js";
import { ServiceError } from "../../errors.js";
import { sampleMessage } from "../../hop/cctp/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { Chain, Contracts, Network } from "../../hop/networks.js";
import type { Token } from "../../hop/tokens.js";
import { type UsdcSwap, usdcSwapOn } from "../../hop/usdc-swap-pools.js";
import type { PriceBook } from "../../prices/token-prices.js";
import { bondGasConstant, cctpGasConstant, cctpGasMargin, minBonderFeeByPrice } from "../math/fees.js";
import type { BridgeSnapshot, CctpSnapshot, DeliveryCost, Snapshot } from "../math/route-snapshot.js";
import type { ChainFacts } from "./chain-state.js";
import { type ChainNeeds, type Delivery, deliveryName, needsOf, numberName, type PoolNeed } from "./read-set.js";

/** What the quotes of one route are made from under one state of the settings. */
export interface RoutePlan {
  /** undefined: nothing of that chain. */
  readonly source: ChainNeeds | undefined;
  readonly destination: ChainNeeds | undefined;
  /** The swap before a CCTP transfer of USDC.e. */
  readonly usdcSwap: UsdcSwap | undefined;
  /** Tokens whose prices have a part in it. */
  readonly priced: readonly string[];
  /**
   * Puts together what was read.
   * @throws ServiceError UPSTREAM_UNAVAILABLE for what could not be read, a price among it.
   */
  snapshot(source: ChainFacts | undefined, destination: ChainFacts | undefined, prices: PriceBook): Snapshot;
}

export interface Route {
  readonly network: Network;
  readonly token: Token;
  readonly source: Chain;
  readonly destination: Chain;
}

const sevenDaysSeconds = 7 * 24 * 60 * 60;

const bondWithdrawal = selectorOf("bondWithdrawal(address,uint256,bytes32,uint256)");
const bondWithdrawalAndDistribute = selectorOf(
  "bondWithdrawalAndDistribute(address,uint256,bytes32,uint256,uint256,uint256)",
);
const minBonderFeeAbsolute = selectorOf("minBonderFeeAbsolute()");
const minBonderFee = selectorOf("minBonderFee()");
const receiveMessage = selectorOf("receiveMessage(bytes,bytes)");

/** The transfer whose bonding the SDK has estimated: recipient, amount, nonce, bonder fee. */
const sampleTransfer = [word(`0x${"1".repeat(40)}`), word(10n), word(0n), word(1n)].join("");

/** Tokens that the SDK swaps nowhere, by the name they are asked for. */
const poolless: Readonly<Record<string, ReadonlySet<string>>> = {
  mainnet: new Set(["HOP"]),
  goerli: new Set(["HOP", "USDC", "USDT", "DAI", "UNI"]),
};

/** Chains that charge for a transaction's bytes on L1 by the OP stack's oracle. */
const l1FeeSlugs = new Set(["optimism", "base"]);
/** L2s whose bridge of ETH has a least fee that the SDK heeds. */
const leastEthFeeSlugs = new Set(["gnosis", "polygon"]);

/**
 * Plans the quotes of a route that exists, after the SDK's getSendData.
 * @param attestation Circle's word for the message by which CCTP deliveries are estimated; undefined: there is none.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the settings have no fee for the token.
 */
export function planRoute(route: Route, settings: FeeSettings, attestation: string | undefined): RoutePlan {
  const { token } = route;
  if (settings.bonderFeeBps[token.symbol] === undefined) {
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `the fee settings have no fee for ${token.symbol}`);
  }
  return isCctp(token) ? planCctp(route, settings, attestation) : planBridge(route, settings);
}

/** Whether a token travels by CCTP and not over Hop's own bridge. */
export function isCctp(token: Token): boolean {
  return token.symbol === "USDC" || token.symbol === "USDC.e";
}

function planBridge(route: Route, settings: FeeSettings): RoutePlan {
  const { network, token, source, destination } = route;
  const isSwapped = poolless[network.slug]?.has(token.name) !== true;
  const sourcePool = isSwapped ? poolOf(route, source) : undefined;
  const destinationPool = isSwapped ? poolOf(route, destination) : undefined;
  const leastFeeView = leastFeeOf(route);
  const delivery = source.isL1 ? undefined : bondOf(route, settings, isSwapped);

  function bonderFee(from: ChainFacts | undefined, to: ChainFacts | undefined, prices: PriceBook) {
    if (to === undefined) throw new Error("a bonded transfer without facts of its destination");
    const tokenUsd = prices.usd(token.symbol);
    const byContract = leastFeeView === undefined ? 0n : (from?.number(numberName(leastFeeView)) ?? 0n);
    const byPrice = minBonderFeeByPrice(tokenUsd, token.decimals);
    return {
      feeBps: feeBpsOf(route, settings),
      leastFee: isFreeOfLeastFee(route) ? 0n : byContract > byPrice ? byContract : byPrice,
      delivery: costOf(to, delivery, bondGasConstant(destination.slug)),
      nativeUsd: prices.usd(destination.nativeToken),
      tokenUsd,
    };
  }

  return {
    source: needsOf({ pool: sourcePool, number: leastFeeView }),
    destination: needsOf({ pool: destinationPool, delivery, gasPrice: !source.isL1 }),
    usdcSwap: undefined,
    priced: source.isL1 ? [] : [token.symbol, destination.nativeToken],
    snapshot(from, to, prices): BridgeSnapshot {
      return {
        ...commonOf(route, settings),
        kind: "bridge",
        sourcePool: sourcePool === undefined ? undefined : from?.pool(sourcePool.address),
        destinationPool: destinationPool === undefined ? undefined : to?.pool(destinationPool.address),
        bonder: source.isL1 ? undefined : bonderFee(from, to, prices),
        relayerFee: relayerFeeOf(route, settings),
      };
    },
  };
}

function planCctp(route: Route, settings: FeeSettings, attestation: string | undefined): RoutePlan {
  const { token, source, destination } = route;
  const bridge = contractsOf(route, source);
  const leastFeeView = { to: addressOf(bridge.cctpL1Bridge ?? bridge.cctpL2Bridge), data: minBonderFee };
  const delivery = attestation === undefined ? undefined : mintOf(route, attestation);
  return {
    source: needsOf({ number: leastFeeView }),
    destination: needsOf({ delivery, gasPrice: true }),
    usdcSwap: token.symbol === "USDC.e" && !source.isL1 ? usdcSwapOn(source.slug) : undefined,
    priced: ["USDC", destination.nativeToken],
    snapshot(from, to, prices): CctpSnapshot {
      if (from === undefined || to === undefined) throw new Error("a CCTP transfer without facts of both chains");
      return {
        ...commonOf(route, settings),
        kind: "cctp",
        minBonderFee: from.number(numberName(leastFeeView)),
        delivery: costOf(to, delivery, cctpGasConstant),
        nativeUsd: prices.usd(destination.nativeToken),
        tokenUsd: prices.usd("USDC"),
      };
    },
  };
}

/** The bond by which the SDK estimates a delivery; undefined where it cannot be made out, and the constant holds. */
function bondOf(route: Route, settings: FeeSettings, isSwapped: boolean): Delivery | undefined {
  const { token, source, destination } = route;
  const bonder = settings.bonders[token.symbol]?.[source.slug]?.[destination.slug];
  // One of the SDK's own addresses ends in a space, and what cannot be read as an address is not estimated.
  if (bonder !== undefined && !isAddress(bonder)) return undefined;
  const bridge = contractsOf(route, destination);
  const distributes = isSwapped && !destination.isL1;
  return {
    from: bonder?.toLowerCase(),
    to: addressOf(bridge.l1Bridge ?? bridge.l2Bridge),
    data: (now) =>
      distributes
        ? bondWithdrawalAndDistribute + sampleTransfer + word(0n) + word(BigInt(now + sevenDaysSeconds))
        : bondWithdrawal + sampleTransfer,
    fallbackGas: bondGasConstant(destination.slug),
    margin: 0n,
    hasL1Fee: l1FeeSlugs.has(destination.slug),
  };
}

function mintOf(route: Route, attestation: string): Delivery | undefined {
  const { destination } = route;
  const message = sampleMessage(destination.slug);
  if (message === undefined || !/^0x([0-9a-f]{2})*$/i.test(attestation)) return undefined;
  const data = receiveMessage + withOffsets([dynamicBytes(message.bytes), dynamicBytes(attestation)]);
  return {
    from: undefined,
    to: addressOf(contractsOf(route, destination).cctpMessageTransmitter),
    data: () => data,
    fallbackGas: cctpGasConstant,
    margin: cctpGasMargin,
    hasL1Fee: false,
  };
}

function costOf(facts: ChainFacts, delivery: Delivery | undefined, constant: bigint): DeliveryCost {
  const { gasPrice } = facts;
  if (gasPrice === undefined) throw new Error("a delivery without its chain's price of gas");
  const cost = delivery === undefined ? { gas: constant, l1Fee: 0n } : facts.delivery(deliveryName(delivery));
  return { gasPrice, ...cost };
}

/** The least fee that the source's contract asks, where the SDK heeds it: out of two chains for ETH, and on testnets. */
function leastFeeOf(route: Route): View | undefined {
  const { network, token, source } = route;
  const isHeeded = network.slug !== "mainnet" || (token.symbol === "ETH" && leastEthFeeSlugs.has(source.slug));
  if (source.isL1 || !isHeeded || isFreeOfLeastFee(route)) return undefined;
  return { to: addressOf(contractsOf(route, source).l2Bridge), data: minBonderFeeAbsolute };
}

/** DAI into gnosis is bonded for less, if it is asked for by that name. */
function isFreeOfLeastFee({ token, destination }: Route): boolean {
  return destination.slug === "gnosis" && token.name === "DAI";
}

/** Hundredths of a percent. DAI that leaves gnosis as `XDAI` pays what it pays towards gnosis. */
function feeBpsOf({ token, source, destination }: Route, settings: FeeSettings): number {
  const byDestination = settings.bonderFeeBps[token.symbol] ?? {};
  const usual = byDestination[destination.slug] ?? 0;
  return source.slug === "gnosis" && token.name === "XDAI" ? (byDestination.gnosis ?? usual) : usual;
}

/** From L1: what the relayer gets, wei; it is paid for ETH alone, asked for by that name. */
function relayerFeeOf({ token, source, destination }: Route, settings: FeeSettings): bigint | undefined {
  if (!source.isL1 || !settings.relayerFeeEnabled[destination.slug]) return undefined;
  return token.name === "ETH" ? BigInt(settings.relayerFeeWei[destination.slug] ?? 0) : 0n;
}

function commonOf({ token, source, destination }: Route, settings: FeeSettings) {
  return {
    decimals: token.decimals,
    sourceIsL1: source.isL1,
    destinationSlug: destination.slug,
    destinationIsL1: destination.isL1,
    multiplier: settings.destinationFeeGasPriceMultiplier,
  };
}

/** The token's pool on a chain; L1 has none. */
function poolOf(route: Route, chain: Chain): PoolNeed | undefined {
  if (chain.isL1) return undefined;
  return { address: addressOf(contractsOf(route, chain).l2SaddleSwap), decimals: route.token.decimals };
}

function contractsOf({ network, token }: Route, chain: Chain): Contracts {
  return network.contracts.get(token.symbol)?.get(chain.slug) ?? {};
}

function addressOf(value: string | number | undefined): string {
  if (typeof value !== "string") throw new Error("the address book has no such contract");
  return value.toLowerCase();
}
