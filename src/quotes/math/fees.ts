/** Gas that settling one transfer costs on its destination, beside delivering it, by chain slug; the SDK's numbers. */
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

/** Gas of a bond where the node says that it would revert, by chain slug; the SDK's numbers. */
const BOND_FALLBACK_GAS: Readonly<Record<string, bigint>> = {
  optimism: 350_000n,
  base: 350_000n,
  linea: 350_000n,
  arbitrum: 2_500_000n,
  nova: 2_500_000n,
};

/** Gas of a CCTP delivery that cannot be estimated, and what is added to one that can; the SDK's numbers. */
export const CCTP_FALLBACK_GAS = 500_000n;
export const CCTP_GAS_MARGIN = 50_000n;

/** A CCTP fee towards an L2 of up to this much, in USDC's smallest unit, is not charged. */
export const CCTP_WAIVED_FEE_MAX = 50_000n;

/** Destinations whose transaction fee is multiplied by the settings' factor. */
const multipliedDestinations = new Set(["ethereum", "optimism", "arbitrum", "nova", "linea", "base"]);

const WEI_PER_ETHER = 10n ** 18n;
/** What a bonder takes at least, in US dollars. */
const MIN_BONDER_FEE_USD = 0.25;

/** Gas of a bond on a chain where it cannot be estimated. */
export function getBondFallbackGas(slug: string): bigint {
  return BOND_FALLBACK_GAS[slug] ?? 165_000n;
}

/** @throws Error for a chain that the SDK cannot price. */
export function getSettlementGas(slug: string): bigint {
  const gas = SETTLEMENT_GAS[slug];
  if (gas === undefined) throw new Error(`no settlement gas for ${slug}`);
  return gas;
}

/**
 * A cost in wei of a chain's native token, in another token's smallest unit: wei * rate / 1e18, where the rate of the
 * two USD prices is first printed with the token's decimals and then read back as an integer, as the SDK does.
 */
export function convertWeiToToken(wei: bigint, nativeUsd: number, tokenUsd: number, decimals: number): bigint {
  const rate = (nativeUsd / tokenUsd).toFixed(decimals);
  return (wei * parseUnits(rate, decimals)) / WEI_PER_ETHER;
}

/** A destination transaction fee with the factor of the settings, where the destination has one. */
export function applyFeeMultiplier(fee: bigint, slug: string, multiplier: number): bigint {
  if (!multipliedDestinations.has(slug)) return fee;
  const factor = parseUnits(String(multiplier), 18);
  return factor > 0n ? (fee * factor) / WEI_PER_ETHER : fee;
}

/** The least bonder fee in a token's smallest unit, by the token's USD price. */
export function computeMinBonderFee(tokenUsd: number, decimals: number): bigint {
  return parseUnits((MIN_BONDER_FEE_USD / tokenUsd).toFixed(decimals), decimals);
}

/** The least amount that a swap may give under a slippage tolerance in percent: x * ceil(10000 - s * 100) / 10000. */
export function applySlippage(amount: bigint, slippage: number): bigint {
  return (amount * BigInt(Math.ceil(10_000 - slippage * 100))) / 10_000n;
}

/** Whole tokens as plain decimal text, in the smallest unit. @throws RangeError for text of another form. */
function parseUnits(text: string, decimals: number): bigint {
  const [, whole, fraction = ""] = /^(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined || fraction.length > decimals) throw new RangeError(`${text} has no ${decimals} decimals`);
  return BigInt(whole + fraction.padEnd(decimals, "0"));
}
