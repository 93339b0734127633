import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { ChainSlug, getLpFeeBps as getSdkLpFeeBps } from "@hop-protocol/sdk";
import { beforeAll, describe, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import {
  applyFeeMultiplier,
  computeMinBonderFee,
  convertWeiToToken,
  getBondFallbackGas,
  getLpFeeBps,
  getSettlementGas,
} from "../../../../src/quotes/math/fees.js";
import { applySlippage } from "../../../../src/quotes/math/quote.js";

const ETHER = 10n ** 18n;
const slugs = [...getNetwork("mainnet").chains.keys()];

describe("constants equal the SDK's", () => {
  let sdk: {
    readonly SettlementGasLimitPerTx: Readonly<Record<string, number>>;
    readonly BondTransferGasLimit: Readonly<Record<string, string>>;
  };
  beforeAll(async () => {
    const path = createRequire(import.meta.url)
      .resolve("@hop-protocol/sdk")
      .replace(/dist.*/, "dist/esm/constants/constants.js");
    sdk = await import(pathToFileURL(path).href);
  });

  test.each(slugs)("on %s", (slug) => {
    expect(getSettlementGas(slug)).toBe(BigInt(sdk.SettlementGasLimitPerTx[slug] ?? -1));
    const name = Object.entries(ChainSlug).find(([, value]) => value === slug)?.[0] ?? "";
    expect(getBondFallbackGas(slug)).toBe(BigInt(sdk.BondTransferGasLimit[name] ?? 165_000));
    expect(getLpFeeBps(slug)).toBe(getSdkLpFeeBps({ slug } as Parameters<typeof getSdkLpFeeBps>[0]).toNumber());
  });

  test("and a chain without a settlement gas cannot be priced", () => {
    expect(() => getSettlementGas("moonbeam")).toThrow("no settlement gas for moonbeam");
  });
});

describe("convertWeiToToken", () => {
  test.each([
    ["0.001 ETH at 3000 dollars in USDC", ETHER / 1_000n, 3_000, 1, 6, 3_000_000n],
    ["1 ETH at 3000 dollars in a token at 1.5 dollars", ETHER, 3_000, 1.5, 18, 2_000n * ETHER],
    ["a third, cut to the token's decimals", ETHER, 1, 3, 6, 333_333n],
    ["two thirds, rounded to the token's decimals", ETHER, 2, 3, 6, 666_667n],
    ["less than the smallest unit", 999_999_999_999n, 1, 1, 6, 0n],
    ["just the smallest unit", 1_000_000_000_000n, 1, 1, 6, 1n],
    ["nothing", 0n, 3_000, 1, 6, 0n],
  ])("converts %s", (_, wei, nativeUsd, tokenUsd, decimals, expected) => {
    expect(convertWeiToToken(wei, nativeUsd, tokenUsd, decimals)).toBe(expected);
  });

  test.each([
    ["is printed with an exponent", 1e22, 1, "1e+22"],
    ["is infinite", 1, 0, "Infinity"],
    ["is no number", 0, 0, "NaN"],
    ["is negative", -1.5, 1, "-1.500000"],
  ])("refuses a ratio of the prices that %s", (_, nativeUsd, tokenUsd, text) => {
    const message = `${text} is not a decimal number with at most 6 decimals`;
    expect(() => convertWeiToToken(1n, nativeUsd, tokenUsd, 6)).toThrow(new RangeError(message));
  });
});

describe("applyFeeMultiplier", () => {
  test("multiplies the fee on the destinations where the SDK does", () => {
    const multiplied = slugs.filter((slug) => applyFeeMultiplier(1_000n, slug, 1.5) !== 1_000n);
    expect(multiplied.sort()).toEqual(["arbitrum", "base", "ethereum", "linea", "nova", "optimism"]);
  });

  test.each([
    [1_000n, 1.5, 1_500n],
    [1_000n, 2, 2_000n],
    [1_000n, 0.25, 250n],
    [999n, 1.5, 1_498n],
    [1n, 0.999, 0n],
    // Like the SDK, which multiplies only by what is above zero.
    [1_000n, 0, 1_000n],
  ])("makes of a fee of %i times %d %i", (fee, multiplier, expected) => {
    expect(applyFeeMultiplier(fee, "optimism", multiplier)).toBe(expected);
  });

  test.each([1e-7, -1.5, Number.NaN, 0.000_001_234_567_890_123_45])("refuses the factor %d", (multiplier) => {
    expect(() => applyFeeMultiplier(1n, "optimism", multiplier)).toThrow(RangeError);
    expect(applyFeeMultiplier(1n, "polygon", multiplier)).toBe(1n);
  });
});

test.each([
  [1, 6, 250_000n],
  [0.25, 18, ETHER],
  [3_000, 18, 83_333_333_333_333n],
  [65_000, 8, 385n],
])(
  "the minimum bonder fee in a token at %d dollars with %i decimals is worth 25 cents",
  (tokenUsd, decimals, expected) => {
    expect(computeMinBonderFee(tokenUsd, decimals)).toBe(expected);
  },
);

test.each([
  [1_000_000n, 0, 1_000_000n],
  [1_000_000n, 0.5, 995_000n],
  [1_000_000n, 50, 500_000n],
  [1_000_000n, 99.999, 100n],
  // 9987.7 ten-thousandths are rounded up.
  [10_000n, 0.123, 9_988n],
  [999n, 0.5, 994n],
  [1n, 1, 0n],
])("of %i, a slippage of %d percent leaves at least %i", (amount, slippagePercent, expected) => {
  expect(applySlippage(amount, slippagePercent)).toBe(expected);
});
