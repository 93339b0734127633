import { encodeWord, isAddress, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import { ServiceError } from "../../errors.js";
import {
  buildSampleCctpMessage,
  encodeReceiveMessageCall,
  findUsdcSwapPool,
  type UsdcSwapPool,
} from "../../hop/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { Chain } from "../../hop/networks.js";
import { isCctpSymbol } from "../../hop/tokens.js";
import type { PriceTable } from "../../prices/token-prices.js";
import { CCTP_FALLBACK_GAS, CCTP_GAS_MARGIN, computeMinBonderFee, getBondFallbackGas } from "../math/fees.js";
import type { BridgeSnapshot, CctpSnapshot, DeliveryCost, RouteSnapshot } from "../math/route-snapshot.js";
import type { StableSwapPool } from "../math/stable-swap.js";
import type { ChainState } from "./chain-state.js";
import { getTokenContracts, type QuoteRoute, requireContractAddress } from "./quote-request.js";
import {
  addContractReads,
  type ContractRead,
  createPoolRead,
  createReadSet,
  createUintRead,
  type DeliveryTransaction,
  type ReadSet,
} from "./read-set.js";
import { type LiquidityPlan, planLiquidity } from "./route-liquidity.js";

const SEVEN_DAYS_SECONDS = 7 * 24 * 60 * 60;

const bondWithdrawalSelector = toFunctionSelector("bondWithdrawal(address,uint256,bytes32,uint256)");
const bondWithdrawalAndDistributeSelector = toFunctionSelector(
  "bondWithdrawalAndDistribute(address,uint256,bytes32,uint256,uint256,uint256)",
);

/** The transfer whose bond the SDK's populateBondWithdrawalTx estimates: recipient, amount, nonce, bonder fee. */
const SAMPLE_TRANSFER_WORDS = [encodeWord(`0x${"1".repeat(40)}`), encodeWord(10n), encodeWord(0n), encodeWord(1n)].join(
  "",
);

/** Chains that charge for transaction data on L1 through the OP Stack's gas price oracle. */
const L1_FEE_SLUGS = new Set(["optimism", "base"]);

/** Builds the bond that the SDK estimates (populateBondWithdrawalTx); undefined where only the fallback gas applies. */
function buildBondTransaction(
  route: QuoteRoute,
  settings: FeeSettings,
  hasPools: boolean,
): DeliveryTransaction | undefined {
  const { token, source, destination } = route;
  const bonder = settings.bonders[token.symbol]?.[source.slug]?.[destination.slug];
  // One of the SDK's built-in addresses ends in a space; ethers rejects it, and the SDK falls back to its constant.
  if (bonder !== undefined && !isAddress(bonder)) return undefined;
  const bridge = getTokenContracts(route, destination);
  const distributes = hasPools && !destination.isL1;
  return {
    from: bonder?.toLowerCase(),
    to: requireContractAddress(bridge.l1Bridge ?? bridge.l2Bridge),
    calldata: distributes
      ? bondWithdrawalAndDistributeSelector + SAMPLE_TRANSFER_WORDS + encodeWord(0n)
      : bondWithdrawalSelector + SAMPLE_TRANSFER_WORDS,
    deadlineSeconds: distributes ? SEVEN_DAYS_SECONDS : undefined,
    fallbackGas: getBondFallbackGas(destination.slug),
    gasMargin: 0n,
    hasL1Fee: L1_FEE_SLUGS.has(destination.slug),
  };
}

/** Builds the CCTP delivery that the SDK estimates (getCctpReceiveMessagePopulatedTx); undefined without CCTP. */
export function buildMintTransaction(route: QuoteRoute, attestation: string): DeliveryTransaction | undefined {
  const { destination } = route;
  const message = buildSampleCctpMessage(destination.slug);
  if (message === undefined || !/^0x([0-9a-f]{2})*$/i.test(attestation)) return undefined;
  return {
    from: undefined,
    to: requireContractAddress(getTokenContracts(route, destination).cctpMessageTransmitter),
    calldata: encodeReceiveMessageCall(message.bytes, attestation),
    deadlineSeconds: undefined,
    fallbackGas: CCTP_FALLBACK_GAS,
    gasMargin: CCTP_GAS_MARGIN,
    hasL1Fee: false,
  };
}

/** Returns the cost of a delivery from what was read; without a transaction to estimate, with the fallback gas. */
export function computeDeliveryCost(
  state: ChainState,
  delivery: DeliveryTransaction | undefined,
  fallbackGas: bigint,
): DeliveryCost {
  const { gasPrice } = state;
  if (gasPrice === undefined) throw new Error("the chain state has no gas price for a delivery");
  return { gasPrice, ...(delivery ? state.getDeliveryGasCost(delivery) : { gas: fallbackGas, l1Fee: 0n }) };
}

/** What quotes on one route read under one version of the fee settings, and how a snapshot is built from it. */
export interface RoutePlan {
  /** undefined: nothing to read on that chain. */
  readonly sourceReadSet: ReadSet | undefined;
  readonly destinationReadSet: ReadSet | undefined;
  /** What quotes with details read: the same, and the liquidity. */
  readonly full: {
    readonly sourceReadSet: ReadSet | undefined;
    readonly destinationReadSet: ReadSet | undefined;
    readonly getLiquidity: LiquidityPlan["getLiquidity"];
  };
  /** The swap before a CCTP transfer of USDC.e. */
  readonly usdcSwapPool: UsdcSwapPool | undefined;
  /** Tokens whose prices are needed: none, or the token that the fees are paid in and the destination's native token. */
  readonly pricedTokens: readonly string[];
  /**
   * @throws ServiceError UPSTREAM_UNAVAILABLE for a value that could not be read, including a price; UNSUPPORTED_ROUTE
   *   where Circle has closed CCTP V1
   */
  buildSnapshot(source: ChainState | undefined, destination: ChainState | undefined, prices: PriceTable): RouteSnapshot;
}

/** The token that the SDK never swaps (SDK: getNonAmmAssets; the others there go by CCTP or have no contracts). */
const TOKEN_WITHOUT_POOLS = "HOP";

/**
 * Plans the quotes of a route that exists, like the SDK's getSendData.
 * @param attestation Circle's attestation of the sample message for CCTP deliveries; undefined: there is none.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the settings have no fee for the token.
 */
export function planRoute(route: QuoteRoute, settings: FeeSettings, attestation: string | undefined): RoutePlan {
  const { symbol } = route.token;
  if (settings.bonderFeeBps[symbol] === undefined) {
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `the fee settings have no fee for ${symbol}`);
  }
  const liquidity = planLiquidity(route, settings);
  const plan = isCctpSymbol(symbol) ? planCctp(route, settings, attestation, liquidity) : planBridge(route, settings);
  const full = {
    sourceReadSet: addContractReads(plan.sourceReadSet, liquidity.sourceReads),
    destinationReadSet: addContractReads(plan.destinationReadSet, liquidity.destinationReads),
    getLiquidity: liquidity.getLiquidity,
  };
  return { ...plan, full };
}

type BasicRoutePlan = Omit<RoutePlan, "full">;

function planBridge(route: QuoteRoute, settings: FeeSettings): BasicRoutePlan {
  const { token, source, destination } = route;
  const hasPools = token.symbol !== TOKEN_WITHOUT_POOLS;
  const sourcePool = hasPools ? planPoolRead(route, source) : undefined;
  const destinationPool = hasPools ? planPoolRead(route, destination) : undefined;
  const contractMinFee = planMinBonderFeeRead(route);
  const delivery = source.isL1 ? undefined : buildBondTransaction(route, settings, hasPools);

  function buildBonderInputs(
    sourceState: ChainState | undefined,
    destinationState: ChainState | undefined,
    prices: PriceTable,
  ): BridgeSnapshot["bonder"] {
    if (destinationState === undefined) throw new Error("a bonded transfer needs the state of its destination");
    const tokenUsd = prices.getUsdPrice(token.symbol);
    const minFee = (contractMinFee && sourceState?.get(contractMinFee)) ?? 0n;
    const usdMinFee = computeMinBonderFee(tokenUsd, token.decimals);
    return {
      minFee: isExemptFromMinFee(route) ? 0n : minFee > usdMinFee ? minFee : usdMinFee,
      delivery: computeDeliveryCost(destinationState, delivery, getBondFallbackGas(destination.slug)),
      nativeUsd: prices.getUsdPrice(destination.nativeToken),
      tokenUsd,
    };
  }

  return {
    sourceReadSet: createReadSet({ contractReads: [sourcePool ?? [], contractMinFee ?? []].flat() }),
    destinationReadSet: createReadSet({
      contractReads: [destinationPool ?? []].flat(),
      delivery,
      includesGasPrice: !source.isL1,
    }),
    usdcSwapPool: undefined,
    pricedTokens: source.isL1 ? [] : [token.symbol, destination.nativeToken],
    buildSnapshot(sourceState, destinationState, prices): BridgeSnapshot {
      return {
        ...buildSnapshotBase(route, settings),
        kind: "bridge",
        sourcePool: sourcePool && sourceState?.get(sourcePool),
        destinationPool: destinationPool && destinationState?.get(destinationPool),
        bonder: source.isL1 ? undefined : buildBonderInputs(sourceState, destinationState, prices),
        relayerFee: getRelayerFee(route, settings),
      };
    },
  };
}

/** @param liquidity the burn limit, which tells of every quote whether the transfer can be sent */
function planCctp(
  route: QuoteRoute,
  settings: FeeSettings,
  attestation: string | undefined,
  liquidity: LiquidityPlan,
): BasicRoutePlan {
  const { token, source, destination } = route;
  const minFee = planCctpMinFeeRead(route);
  const delivery = attestation === undefined ? undefined : buildMintTransaction(route, attestation);
  const usdcSwapPool = token.symbol === "USDC.e" && !source.isL1 ? findUsdcSwapPool(source.slug) : undefined;
  return {
    sourceReadSet: createReadSet({ contractReads: [minFee, ...liquidity.sourceReads] }),
    destinationReadSet: createReadSet({ delivery, includesGasPrice: true }),
    usdcSwapPool,
    pricedTokens: ["USDC", destination.nativeToken],
    buildSnapshot(sourceState, destinationState, prices): CctpSnapshot {
      if (sourceState === undefined || destinationState === undefined)
        throw new Error("a CCTP transfer needs the state of both chains");
      const { available: burnLimit } = liquidity.getLiquidity(sourceState, destinationState);
      if (burnLimit === 0n) {
        throw new ServiceError("UNSUPPORTED_ROUTE", `Circle's CCTP V1 accepts no new transfers from ${source.slug}`);
      }
      return {
        ...buildSnapshotBase(route, settings),
        kind: "cctp",
        burnLimit,
        minBonderFee: sourceState.get(minFee),
        sourceSwap: usdcSwapPool && (sourceState.findUniswapSwap(usdcSwapPool.address) ?? (() => undefined)),
        delivery: computeDeliveryCost(destinationState, delivery, CCTP_FALLBACK_GAS),
        nativeUsd: prices.getUsdPrice(destination.nativeToken),
        tokenUsd: prices.getUsdPrice("USDC"),
      };
    },
  };
}

function buildSnapshotBase(route: QuoteRoute, settings: FeeSettings) {
  const { token, source, destination } = route;
  return {
    decimals: token.decimals,
    sourceSlug: source.slug,
    sourceIsL1: source.isL1,
    destinationSlug: destination.slug,
    destinationIsL1: destination.isL1,
    feeMultiplier: settings.destinationFeeGasPriceMultiplier,
    feeBps: getBonderFeeBps(route, settings),
  };
}

/** Plans the read of the token's pool on a chain; L1 has none. */
function planPoolRead(route: QuoteRoute, chain: Chain): ContractRead<StableSwapPool> | undefined {
  if (chain.isL1) return undefined;
  return createPoolRead(requireContractAddress(getTokenContracts(route, chain).l2SaddleSwap), route.token.decimals);
}

// Which fees of the settings and contracts apply to a route. Each doc comment names the SDK function that it mirrors.

const minBonderFeeAbsoluteSelector = toFunctionSelector("minBonderFeeAbsolute()");
const minBonderFeeSelector = toFunctionSelector("minBonderFee()");

/** L2s whose ETH bridge has a minimum fee that the SDK applies. */
const MIN_ETH_FEE_SLUGS = new Set(["gnosis", "polygon"]);

/**
 * Plans the read of the source contract's minimum fee where the SDK applies it: for ETH from two chains, and on testnets
 * (SDK: getBonderFeeAbsolute).
 */
function planMinBonderFeeRead(route: QuoteRoute): ContractRead<bigint> | undefined {
  const { network, token, source } = route;
  const applies = network.slug !== "mainnet" || (token.symbol === "ETH" && MIN_ETH_FEE_SLUGS.has(source.slug));
  if (source.isL1 || !applies || isExemptFromMinFee(route)) return undefined;
  const to = requireContractAddress(getTokenContracts(route, source).l2Bridge);
  return createUintRead({ to, data: minBonderFeeAbsoluteSelector });
}

/** Plans the read of the minimum fee of the source's CCTP bridge (SDK: getSendData for CCTP). */
function planCctpMinFeeRead(route: QuoteRoute): ContractRead<bigint> {
  const { cctpL1Bridge, cctpL2Bridge } = getTokenContracts(route, route.source);
  return createUintRead({ to: requireContractAddress(cctpL1Bridge ?? cctpL2Bridge), data: minBonderFeeSelector });
}

/** DAI to gnosis has no minimum fee if requested as `DAI`, not as an alias (SDK: getBonderFeeAbsolute). */
function isExemptFromMinFee({ token, destination }: QuoteRoute): boolean {
  return destination.slug === "gnosis" && token.requestedSymbol === "DAI";
}

/** Hundredths of a percent. DAI that leaves gnosis as `XDAI` pays the fee for transfers to gnosis (SDK: getFeeBps). */
function getBonderFeeBps({ token, source, destination }: QuoteRoute, settings: FeeSettings): number {
  const feeByDestination = settings.bonderFeeBps[token.symbol] ?? {};
  const feeBps = feeByDestination[destination.slug] ?? 0;
  return source.slug === "gnosis" && token.requestedSymbol === "XDAI" ? (feeByDestination.gnosis ?? feeBps) : feeBps;
}

/** Relayer fee from L1 in wei; charged only for ETH that is requested as `ETH` (SDK: getRelayerFee). */
function getRelayerFee({ token, source, destination }: QuoteRoute, settings: FeeSettings): bigint | undefined {
  if (!source.isL1 || !settings.relayerFeeEnabled[destination.slug]) return undefined;
  return token.requestedSymbol === "ETH" ? BigInt(settings.relayerFeeWei[destination.slug] ?? 0) : 0n;
}
