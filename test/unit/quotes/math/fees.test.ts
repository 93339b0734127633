import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { ChainSlug, getLpFeeBps } from "@hop-protocol/sdk";
import { beforeAll, describe, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import {
  applyFeeMultiplier,
  convertWeiToToken,
  getBondFallbackGas,
  getDisplayedLpFeeBps,
  getSettlementGas,
} from "../../../../src/quotes/math/fees.js";

const slugs = [...getNetwork("mainnet").chains.keys()];

// How fees are computed from them, test/parity/random-chains.test.ts compares with the SDK.

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
    expect(getDisplayedLpFeeBps(slug)).toBe(getLpFeeBps({ slug } as Parameters<typeof getLpFeeBps>[0]).toNumber());
  });

  test("and a chain without a settlement gas cannot be priced", () => {
    expect(() => getSettlementGas("moonbeam")).toThrow("no settlement gas for moonbeam");
  });
});

describe("convertWeiToToken", () => {
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

  test.each([1e-7, -1.5, Number.NaN, 0.000_001_234_567_890_123_45])("refuses the factor %d", (multiplier) => {
    expect(() => applyFeeMultiplier(1n, "optimism", multiplier)).toThrow(RangeError);
    expect(applyFeeMultiplier(1n, "polygon", multiplier)).toBe(1n);
  });
});
