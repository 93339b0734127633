/** State of a pool at the start, in the tokens' smallest unit; the LP supply has 18 decimals. */
export interface InitialPoolState {
  readonly canonical: bigint;
  readonly hToken: bigint;
  readonly lpSupply: bigint;
  /** Amplification times 100. */
  readonly a: bigint;
  /** Share of a swap that stays in the pool, of 1e10. */
  readonly swapFee: bigint;
}

const AMPLIFICATION = 20_000n;
const FOUR_BPS = 4_000_000n;
/** The pools of these chains were made later, with a lower fee. */
const ONE_BPS_CHAINS: ReadonlySet<string> = new Set(["nova", "polygonzk"]);

/** Canonical tokens, hTokens and LP supply: unequal on purpose, so that swaps have a price. */
const POOL_BALANCES: Readonly<Record<string, readonly [bigint, bigint, bigint]>> = {
  "USDC.e.gnosis": [1_000_000_000_000n, 820_000_012_345n, 1_819_955_294_125_327_125_875_832n],
  "USDC.e.polygon": [1_000_000_000_000n, 1_210_000_012_345n, 2_209_949_924_765_822_409_965_859n],
  "USDC.e.optimism": [1_000_000_000_000n, 1_030_000_012_345n, 2_029_998_909_244_892_604_819_150n],
  "USDC.e.arbitrum": [1_000_000_000_000n, 970_000_012_345n, 1_969_998_875_634_565_133_130_036n],
  "USDC.e.base": [1_000_000_000_000n, 990_000_012_345n, 1_989_999_887_339_051_199_849_730n],
  "USDT.gnosis": [300_000_000_000n, 324_000_012_345n, 623_997_712_754_991_084_993_653n],
  "USDT.polygon": [300_500_000_000n, 296_500_241_502n, 596_999_974_843_431_955_964_564n],
  "USDT.optimism": [300_000_000_000n, 246_000_012_345n, 545_986_596_883_650_415_261_848n],
  "USDT.arbitrum": [300_740_023_478n, 302_260_653_025n, 602_999_975_215_989_152_844_386n],
  "MATIC.gnosis": [
    1_000_000_000_000_000_000_000_000n,
    870_000_000_000_000_000_012_345n,
    1_869_977_410_463_792_235_938_515n,
  ],
  "MATIC.polygon": [
    1_000_000_000_000_000_000_000_000n,
    1_150_000_000_000_000_000_012_345n,
    2_149_973_840_991_412_179_883_574n,
  ],
  "DAI.gnosis": [
    500_000_000_000_000_000_000_000n,
    605_000_000_000_000_000_012_345n,
    1_104_974_956_213_239_841_688_668n,
  ],
  "DAI.polygon": [500_000_000_000_000_000_000_000n, 485_000_000_000_000_000_012_345n, 984_999_431_644_311_139_012_874n],
  "DAI.optimism": [
    500_000_000_000_000_000_000_000n,
    435_000_000_000_000_000_012_345n,
    934_988_705_231_896_117_975_432n,
  ],
  "DAI.arbitrum": [
    500_000_000_000_000_000_000_000n,
    515_000_000_000_000_000_012_345n,
    1_014_999_448_450_396_970_673_613n,
  ],
  "ETH.gnosis": [2_000_000_000_000_000_000_000n, 1_980_000_000_000_000_012_345n, 3_979_999_749_987_483_565_019n],
  "ETH.polygon": [2_000_000_000_000_000_000_000n, 2_020_000_000_000_000_012_345n, 4_019_999_752_475_293_146_111n],
  "ETH.optimism": [1_999_009_809_694_608_797_990n, 2_420_994_506_386_158_155_532n, 4_419_899_824_852_959_379_044n],
  "ETH.arbitrum": [1_999_352_267_778_917_076_521n, 1_640_648_941_449_545_223_344n, 3_639_910_563_547_647_755_185n],
  "ETH.nova": [2_000_000_000_000_000_000_000n, 2_160_000_000_000_000_012_345n, 4_159_984_669_415_430_925_450n],
  "ETH.base": [2_002_000_000_000_000_000_000n, 1_858_001_533_628_187_028_942n, 3_859_987_352_341_422_929_969n],
  "ETH.linea": [2_000_000_000_000_000_000_000n, 2_300_000_000_000_000_012_345n, 4_299_947_681_982_824_372_083n],
  "ETH.polygonzk": [2_000_000_000_000_000_000_000n, 1_740_000_000_000_000_012_345n, 3_739_954_820_927_584_484_201n],
  "SNX.optimism": [50_000_000_000_000_000_000_000n, 57_500_000_000_000_000_012_345n, 107_498_692_049_570_609_005_902n],
  "sUSD.optimism": [
    200_000_000_000_000_000_000_000n,
    194_000_000_000_000_000_012_345n,
    393_999_772_657_724_455_612_557n,
  ],
  "rETH.optimism": [300_000_000_000_000_000_000n, 303_000_000_000_000_012_345n, 602_999_962_871_293_982_409n],
  "rETH.arbitrum": [300_000_000_000_000_000_000n, 297_000_000_000_000_012_345n, 596_999_962_498_122_545_246n],
  "MAGIC.arbitrum": [
    800_000_000_000_000_000_000_000n,
    920_000_000_000_000_000_012_345n,
    1_719_979_072_793_129_743_909_327n,
  ],
  "MAGIC.nova": [
    800_000_000_000_000_000_000_000n,
    776_000_000_000_000_000_012_345n,
    1_575_999_090_630_897_822_413_191n,
  ],
};

/** @throws Error for a token without a pool on that chain. */
export function getInitialPoolState(token: string, slug: string): InitialPoolState {
  const found = POOL_BALANCES[`${token}.${slug}`];
  if (found === undefined) throw new Error(`no pool of ${token} on ${slug}`);
  const [canonical, hToken, lpSupply] = found;
  return {
    canonical,
    hToken,
    lpSupply,
    a: AMPLIFICATION,
    swapFee: ONE_BPS_CHAINS.has(slug) ? FOUR_BPS / 4n : FOUR_BPS,
  };
}
