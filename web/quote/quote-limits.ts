import type { DetailedQuoteResponse } from "../shared/api/api-types.js";
import { truncateToThreeDigits } from "./rate-curve.js";

/**
 * Returns about the largest amount that a quote's route can carry now, in the token's smallest unit. Undefined if there is
 * no limit, if it is not known, or if nothing can be sent. Exact for CCTP. For a bonder it is rounded down, since what the
 * transfer needs is known for the quoted amount only.
 */
export function estimateMaxAmount({ amountIn, details }: DetailedQuoteResponse): bigint | undefined {
  const { liquidityBasis, availableLiquidity } = details.limits;
  if (availableLiquidity === "" || availableLiquidity === "0") return undefined;
  const available = BigInt(availableLiquidity);
  if (liquidityBasis === "CCTP_BURN_LIMIT") return available;
  // The pool gives more than one hToken for a token where hTokens are plenty, so that a transfer needs more than its amount.
  const [sent, required] = [BigInt(amountIn), BigInt(details.requiredLiquidity)];
  return truncateToThreeDigits(required > sent ? (available * sent) / required : available);
}
