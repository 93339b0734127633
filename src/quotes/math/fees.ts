// Fee formulas and constants of the Hop SDK (@hop-protocol/sdk, HopBridge). Each doc comment names its SDK function.

/** Gas to settle one transfer on its destination, on top of its delivery, by chain slug (SDK: SettlementGasLimitPerTx). */
const SETTLEMENT_GAS: Readonly<Record<string, bigint>> = {
  ethereum: 5141n,
  polygon: 5933n,
  gnosis: 3218n,
  optimism: 8545n,
  arbitrum: 19843n,
  nova: 19843n,
  base: 8545n,
  linea: 10416n,
  polygonzk: 6270n,
};

/** Gas of a bond whose estimate reverts, by chain slug (SDK: BondTransferGasLimit). */
const BOND_FALLBACK_GAS: Readonly<Record<string, bigint>> = {
  optimism: 350_000n,
  base: 350_000n,
  linea: 350_000n,
  arbitrum: 2_500_000n,
  nova: 2_500_000n,
};
/** BondTransferGasLimit of the SDK for all other chains. */
const DEFAULT_BOND_FALLBACK_GAS = 165_000n;

/**
 * Gas of a CCTP delivery whose estimate reverts, and the margin added to an estimate that succeeds
 * (SDK: getCctpReceiveMessageEstimateGasLimit).
 */
export const CCTP_FALLBACK_GAS = 500_000n;
export const CCTP_GAS_MARGIN = 50_000n;

/** A CCTP delivery to an L2 is free up to this fee, in USDC's smallest unit (SDK: getSendData for CCTP). */
export const CCTP_WAIVED_FEE_MAX = 50_000n;

/** Destinations to whose transaction fee the SDK's getDestinationTransactionFeeData applies the multiplier. */
const MULTIPLIED_DESTINATIONS = new Set(["ethereum", "optimism", "arbitrum", "nova", "linea", "base"]);

/** Pool fees that the SDK shows, in hundredths of a percent: constants, whatever the pools charge (SDK: getLpFeeBps). */
const DISPLAYED_LP_FEE_BPS: Readonly<Record<string, number>> = { polygonzk: 1, nova: 1 };
const DEFAULT_DISPLAYED_LP_FEE_BPS = 4;

const WEI_PER_ETHER = 10n ** 18n;
/** Minimum bonder fee in US dollars (SDK: minBonderFeeUsd of getBonderFeeAbsolute). */
const MIN_BONDER_FEE_USD = 0.25;

/** Returns the gas of a bond that cannot be estimated (SDK: estimateBondWithdrawalGasLimit). */
export function getBondFallbackGas(slug: string): bigint {
  return BOND_FALLBACK_GAS[slug] ?? DEFAULT_BOND_FALLBACK_GAS;
}

/**
 * Returns the gas to settle one transfer on a chain (SDK: SettlementGasLimitPerTx).
 * @throws Error for a chain that the SDK cannot price.
 */
export function getSettlementGas(slug: string): bigint {
  const gas = SETTLEMENT_GAS[slug];
  if (gas === undefined) throw new Error(`no settlement gas for ${slug}`);
  return gas;
}

/** Returns the pool fee that the SDK shows for a chain, in hundredths of a percent (SDK: getLpFeeBps). */
export function getDisplayedLpFeeBps(slug: string): number {
  return DISPLAYED_LP_FEE_BPS[slug] ?? DEFAULT_DISPLAYED_LP_FEE_BPS;
}

/**
 * Converts wei of a chain's native token to another token's smallest unit: wei * rate / 1e18. Like the SDK's
 * getDestinationTransactionFeeData, prints the ratio of the two USD prices with the token's decimals and reads it back
 * as an integer.
 * @throws RangeError when the ratio is too large to be printed as plain decimal text.
 */
export function convertWeiToToken(wei: bigint, nativeUsd: number, tokenUsd: number, decimals: number): bigint {
  const rate = (nativeUsd / tokenUsd).toFixed(decimals);
  return (wei * parseUnits(rate, decimals)) / WEI_PER_ETHER;
}

/**
 * Multiplies a destination transaction fee by the settings' factor where the SDK's getDestinationTransactionFeeData does.
 * @throws RangeError when the factor cannot be printed as plain decimal text.
 */
export function applyFeeMultiplier(fee: bigint, slug: string, multiplier: number): bigint {
  if (!MULTIPLIED_DESTINATIONS.has(slug)) return fee;
  const factor = parseUnits(String(multiplier), 18);
  return factor > 0n ? (fee * factor) / WEI_PER_ETHER : fee;
}

/** Returns the minimum bonder fee in a token's smallest unit, given its USD price (SDK: getBonderFeeAbsolute). */
export function computeMinBonderFee(tokenUsd: number, decimals: number): bigint {
  return parseUnits((MIN_BONDER_FEE_USD / tokenUsd).toFixed(decimals), decimals);
}

/**
 * Converts plain decimal text of whole tokens to the smallest unit.
 * @throws RangeError for any other text, or for more decimals than the token has.
 */
function parseUnits(text: string, decimals: number): bigint {
  const [, whole, fraction = ""] = /^(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined || fraction.length > decimals) {
    throw new RangeError(`${text} is not a decimal number with at most ${decimals} decimals`);
  }
  return BigInt(whole + fraction.padEnd(decimals, "0"));
}
