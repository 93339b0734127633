import {
  DeliveryTimeSchema,
  DestinationGasSchema,
  QuoteLimits_LiquidityBasis as LiquidityBasisEnum,
  type QuoteDetails as QuoteDetailsMessage,
  QuoteDetailsSchema,
  QuoteLimitsSchema,
  type QuotePrices as QuotePricesMessage,
  QuotePricesSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { QuoteDetails, QuotePrices } from "../../quotes/quote-details.js";

/** Returns the details of a quote as their message: what `create` would return, which takes longer than the quote. */
export function toQuoteDetailsMessage(details: QuoteDetails): QuoteDetailsMessage {
  const { steps, minAmount, liquidity, gas, deliveryTime } = details;
  return {
    $typeName: QuoteDetailsSchema.typeName,
    amountOut: steps.amountOut.toString(),
    requiredLiquidity: steps.requiredLiquidity.toString(),
    bonderFeeRelative: steps.bonderFeeRelative.toString(),
    adjustedBonderFee: steps.adjustedBonderFee.toString(),
    destinationTxFee: steps.destinationTxFee.toString(),
    adjustedDestinationTxFee: steps.adjustedDestinationTxFee.toString(),
    totalFee: steps.totalFee.toString(),
    feeBps: steps.feeBps,
    rate: steps.rate,
    priceImpact: steps.priceImpact,
    lpFeeBps: steps.lpFeeBps,
    lpFees: steps.lpFees.toString(),
    limits: {
      $typeName: QuoteLimitsSchema.typeName,
      minAmount: minAmount?.toString() ?? "",
      availableLiquidity: liquidity.available?.toString() ?? "",
      isLiquidityAvailable: details.isLiquidityAvailable,
      liquidityBasis: LiquidityBasisEnum[liquidity.basis],
    },
    deliveryTime: { $typeName: DeliveryTimeSchema.typeName, ...deliveryTime },
    gas: {
      $typeName: DestinationGasSchema.typeName,
      gasLimit: gas.gasLimit.toString(),
      gasPrice: gas.gasPrice.toString(),
      l1Fee: gas.l1Fee.toString(),
    },
    prices: toPricesMessage(details.prices),
    sourceBlock: details.sourceBlock,
    destinationBlock: details.destinationBlock,
    observedAt: BigInt(details.observedAt),
    validUntil: BigInt(details.validUntil),
  };
}

function toPricesMessage({ tokenUsd, nativeUsd, tokenOrigin, nativeOrigin }: QuotePrices): QuotePricesMessage {
  return {
    $typeName: QuotePricesSchema.typeName,
    tokenUsd,
    nativeUsd,
    tokenSource: tokenOrigin?.source ?? "",
    tokenUpdatedAt: BigInt(tokenOrigin?.updatedAtSeconds ?? 0),
    nativeSource: nativeOrigin?.source ?? "",
    nativeUpdatedAt: BigInt(nativeOrigin?.updatedAtSeconds ?? 0),
  };
}
