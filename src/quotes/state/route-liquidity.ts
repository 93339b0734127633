import { encodeWord, isAddress, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import { TOKEN_MESSENGERS, TOKEN_MINTERS } from "../../hop/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import { isCctpSymbol } from "../../hop/tokens.js";
import type { ChainState } from "./chain-state.js";
import { getTokenContracts, type QuoteRoute, requireContractAddress } from "./quote-request.js";
import { type ContractRead, createUintRead } from "./read-set.js";

/**
 * Where the liquidity of a route comes from: the credit of a bonder at the destination's bridge, compared with the hTokens
 * that the bridge sends; or the most that a CCTP message burns on the source chain, compared with the amount.
 */
export type LiquidityBasis = "BONDER_CREDIT" | "CCTP_BURN_LIMIT" | "UNLIMITED" | "UNKNOWN";

export interface Liquidity {
  readonly basis: LiquidityBasis;
  /** In the token's smallest unit; undefined for UNLIMITED and UNKNOWN. */
  readonly available: bigint | undefined;
}

/** How the liquidity of a route is read. */
export interface LiquidityPlan {
  readonly sourceReads: readonly ContractRead<bigint>[];
  readonly destinationReads: readonly ContractRead<bigint>[];
  /** Returns what was read. The states must include it. */
  getLiquidity(source: ChainState | undefined, destination: ChainState | undefined): Liquidity;
}

const getCreditSelector = toFunctionSelector("getCredit(address)");
const getDebitSelector = toFunctionSelector("getDebitAndAdditionalDebit(address)");
const localMinterSelector = toFunctionSelector("localMinter()");
const burnLimitSelector = toFunctionSelector("burnLimitsPerMessage(address)");

const UNKNOWN: Liquidity = { basis: "UNKNOWN", available: undefined };

/** Plans the reads of a route's liquidity (SDK: getAvailableLiquidity; without the hosted file that it mixes in towards L1). */
export function planLiquidity(route: QuoteRoute, settings: FeeSettings): LiquidityPlan {
  if (isCctpSymbol(route.token.symbol)) return planBurnLimit(route);
  if (route.source.isL1) return createFixedPlan({ basis: "UNLIMITED", available: undefined });
  return planBonderCredit(route, settings);
}

function planBonderCredit(route: QuoteRoute, settings: FeeSettings): LiquidityPlan {
  const { token, source, destination } = route;
  const bonder = settings.bonders[token.symbol]?.[source.slug]?.[destination.slug];
  if (bonder === undefined || !isAddress(bonder)) return createFixedPlan(UNKNOWN);
  const { l1Bridge, l2Bridge } = getTokenContracts(route, destination);
  const to = requireContractAddress(l1Bridge ?? l2Bridge);
  const credit = createUintRead({ to, data: getCreditSelector + encodeWord(bonder) }, true);
  const debit = createUintRead({ to, data: getDebitSelector + encodeWord(bonder) }, true);
  return {
    sourceReads: [],
    destinationReads: [credit, debit],
    getLiquidity(_, destinationState) {
      const creditAmount = destinationState?.find(credit);
      const debitAmount = destinationState?.find(debit);
      if (creditAmount === undefined || debitAmount === undefined) return UNKNOWN;
      return { basis: "BONDER_CREDIT", available: creditAmount > debitAmount ? creditAmount - debitAmount : 0n };
    },
  };
}

/**
 * Plans the reads of the most that a CCTP message burns on a chain; none on a chain without CCTP. The minter's address is a
 * constant here, so that one request suffices; the messenger confirms that it is the current one.
 */
export function planBurnLimit({ network, source }: Pick<QuoteRoute, "network" | "source">): LiquidityPlan {
  const messenger = TOKEN_MESSENGERS[source.slug];
  const minter = TOKEN_MINTERS[source.slug];
  const usdc = network.contracts.get("USDC")?.get(source.slug);
  const token = usdc?.l1CanonicalToken ?? usdc?.l2CanonicalToken;
  if (messenger === undefined || minter === undefined || typeof token !== "string") return createFixedPlan(UNKNOWN);
  const localMinter = createUintRead({ to: messenger.toLowerCase(), data: localMinterSelector }, true);
  const burnLimit = createUintRead({ to: minter.toLowerCase(), data: burnLimitSelector + encodeWord(token) }, true);
  return {
    sourceReads: [localMinter, burnLimit],
    destinationReads: [],
    getLiquidity(sourceState) {
      const available = sourceState?.find(burnLimit);
      const isCurrent = sourceState?.find(localMinter) === BigInt(minter);
      return available === undefined || !isCurrent ? UNKNOWN : { basis: "CCTP_BURN_LIMIT", available };
    },
  };
}

function createFixedPlan(liquidity: Liquidity): LiquidityPlan {
  return { sourceReads: [], destinationReads: [], getLiquidity: () => liquidity };
}
