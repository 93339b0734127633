import type { DetailedQuoteResponse } from "../shared/api/api-types.js";
import { formatAmount, formatPercent, groupThousands, toRatio } from "../shared/format/amounts.js";
import { formatChainName } from "../shared/format/chain-names.js";

/** A transfer that loses more than this share of its amount deserves a warning. */
const MAX_UNREMARKABLE_LOSS = 0.03;

export interface QuotedRoute {
  readonly token: string;
  readonly to: string;
  /** Undefined if they are not known: amounts are in the smallest unit then. */
  readonly decimals: number | undefined;
}

/** Returns why a quoted transfer should not be sent: it cannot be delivered, or loses too much. Empty for a good quote. */
export function findWarnings(quote: DetailedQuoteResponse, route: QuotedRoute): readonly string[] {
  const { limits } = quote.details;
  const warnings = limits.isLiquidityAvailable ? [] : [describeShortage(quote, route)];
  const amountIn = BigInt(quote.amountIn);
  const loss = toRatio(amountIn - BigInt(quote.estimatedReceived), amountIn);
  if (quote.estimatedReceived === "0") return [...warnings, describeEmptyTransfer(limits.minAmount, route)];
  if (loss <= MAX_UNREMARKABLE_LOSS) return warnings;
  const format = (raw: string): string => formatTokens(raw, route);
  const outcome = `Only ${format(quote.estimatedReceived)} of ${format(quote.amountIn)} arrive.`;
  return [...warnings, `This transfer loses ${formatPercent(loss)}. ${outcome}`];
}

function describeShortage({ amountIn, details }: DetailedQuoteResponse, route: QuotedRoute): string {
  const { liquidityBasis, availableLiquidity } = details.limits;
  const available = formatTokens(availableLiquidity, route);
  if (liquidityBasis === "CCTP_BURN_LIMIT")
    return `This transfer cannot be sent: one CCTP message carries at most ${available}, and the amount is ${formatTokens(amountIn, route)}.`;
  const required = formatTokens(details.requiredLiquidity, route);
  return `This transfer cannot be delivered now: it needs ${required} on ${formatChainName(route.to)}, where ${available} are available.`;
}

function describeEmptyTransfer(minAmount: string, route: QuotedRoute): string {
  const remedy = minAmount === "" ? "" : ` Send at least ${formatTokens(minAmount, route)}.`;
  return `Nothing arrives: the fee is higher than what the amount is worth.${remedy}`;
}

function formatTokens(raw: string, { token, decimals }: QuotedRoute): string {
  if (decimals === undefined) return `${groupThousands(raw)} × smallest unit of ${token}`;
  return `${groupThousands(formatAmount(BigInt(raw), decimals))} ${token}`;
}
