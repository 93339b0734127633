import type { PriceOrigin, PriceTable } from "../prices/token-prices.js";
import type { QuoteBreakdown, RouteQuoter } from "./math/quote.js";
import type { ChainState } from "./state/chain-state.js";
import type { Liquidity } from "./state/route-liquidity.js";
import type { RoutePlan } from "./state/route-plan.js";

/** How a quote comes about, and what its route can carry. Amounts are in the token's smallest unit. */
export interface QuoteDetails {
  readonly breakdown: QuoteBreakdown;
  /** undefined: no amount brings anything. */
  readonly minAmount: bigint | undefined;
  readonly liquidity: Liquidity;
  readonly isLiquidityAvailable: boolean;
  /** undefined: no sample. */
  readonly deliveryTime: DeliveryTime | undefined;
  /** Of the transaction on the destination; all 0 for transfers from L1 over Hop's own bridge. */
  readonly gas: { readonly gasLimit: bigint; readonly gasPrice: bigint; readonly l1Fee: bigint };
  readonly prices: {
    /** In US dollars; 0 where the quote needs no price. */
    readonly tokenUsd: number;
    readonly nativeUsd: number;
    /** undefined where the quote needs no price. */
    readonly tokenOrigin: PriceOrigin | undefined;
    readonly nativeOrigin: PriceOrigin | undefined;
  };
  /** 0n: nothing is read there. */
  readonly sourceBlock: bigint;
  readonly destinationBlock: bigint;
  /** When the oldest input was read, Unix seconds. */
  readonly observedAt: number;
  /** Until when the inputs are young enough, Unix seconds. */
  readonly validUntil: number;
}

/** How long transfers on a route took. */
export interface DeliveryTime {
  readonly p50Seconds: number;
  readonly p90Seconds: number;
  readonly samples: number;
}

const NO_GAS = { gasLimit: 0n, gasPrice: 0n, l1Fee: 0n };
const NO_PRICES = { tokenUsd: 0, nativeUsd: 0, tokenOrigin: undefined, nativeOrigin: undefined };

/** The inputs of a quote with details. */
export interface QuoteDetailsInputs {
  readonly plan: RoutePlan;
  readonly quoter: RouteQuoter;
  readonly priceTable: PriceTable;
  readonly sourceState: ChainState | undefined;
  readonly destinationState: ChainState | undefined;
  /** Maximum age of the inputs, in milliseconds. */
  readonly maxAgeMs: number;
}

/**
 * Creates the details of a quote.
 * @param swapReadAtSeconds when the swap was read, Unix seconds; later than the states if it was computed from them
 */
export function createQuoteDetails(
  { quote, breakdown }: ReturnType<RouteQuoter["explain"]>,
  inputs: QuoteDetailsInputs,
  swapReadAtSeconds: number,
  deliveryTime: DeliveryTime | undefined,
): QuoteDetails {
  const { plan, quoter, sourceState, destinationState, maxAgeMs } = inputs;
  const { gas, prices } = listFeeInputs(inputs);
  const liquidity = plan.full.getLiquidity(sourceState, destinationState);
  const observedAt = Math.min(
    sourceState?.readAtUnixSeconds ?? swapReadAtSeconds,
    destinationState?.readAtUnixSeconds ?? swapReadAtSeconds,
    swapReadAtSeconds,
  );
  return {
    breakdown,
    minAmount: quoter.findMinAmount(),
    liquidity,
    isLiquidityAvailable: isLiquiditySufficient(liquidity, quote.amountIn, breakdown),
    deliveryTime,
    gas,
    prices,
    sourceBlock: sourceState?.block.number ?? 0n,
    destinationBlock: destinationState?.block.number ?? 0n,
    observedAt,
    validUntil: observedAt + Math.floor(maxAgeMs / 1000),
  };
}

/** Returns whether the liquidity suffices; true where it is not limited or not known. */
function isLiquiditySufficient(
  { basis, available }: Liquidity,
  amountIn: bigint,
  { requiredLiquidity }: QuoteBreakdown,
): boolean {
  return available === undefined || available >= (basis === "CCTP_BURN_LIMIT" ? amountIn : requiredLiquidity);
}

/** Returns the gas and the prices from which the fees of a quote are computed. */
function listFeeInputs({
  plan,
  priceTable,
  quoter: { snapshot },
}: QuoteDetailsInputs): Pick<QuoteDetails, "gas" | "prices"> {
  const inputs = snapshot.kind === "cctp" ? snapshot : snapshot.bonder;
  if (inputs === undefined) return { gas: NO_GAS, prices: NO_PRICES };
  const { delivery, tokenUsd, nativeUsd } = inputs;
  const { gas: gasLimit, gasPrice, l1Fee } = delivery;
  const [tokenOrigin, nativeOrigin] = plan.pricedTokens.map(priceTable.getOrigin);
  return { gas: { gasLimit, gasPrice, l1Fee }, prices: { tokenUsd, nativeUsd, tokenOrigin, nativeOrigin } };
}
