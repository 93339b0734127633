import { describe, expect, test } from "vitest";
import { getBuiltInFeeSettings, parseFeeSettings } from "../../../src/hop/fee-settings.js";

describe("parseFeeSettings", () => {
  test("replaces only the built-in settings that the document contains", () => {
    const settings = parseFeeSettings("mainnet", { destinationFeeGasPriceMultiplier: 3, unknown: 1 });
    expect(settings).toEqual({ ...getBuiltInFeeSettings("mainnet"), destinationFeeGasPriceMultiplier: 3 });
  });

  test("applies the settings of USDC to USDC.e where it has none", () => {
    const settings = parseFeeSettings("mainnet", { bonderFeeBps: { USDC: { optimism: 7 } } });
    expect(settings.bonderFeeBps["USDC.e"]).toEqual({ optimism: 7 });
  });

  test("accepts the SDK's built-in settings", () => {
    expect(parseFeeSettings("mainnet", getBuiltInFeeSettings("mainnet"))).toEqual(getBuiltInFeeSettings("mainnet"));
    expect(parseFeeSettings("goerli", getBuiltInFeeSettings("goerli"))).toEqual(getBuiltInFeeSettings("goerli"));
  });

  test.each([
    null,
    [],
    1,
    "x",
    { bonderFeeBps: 1 },
    { bonderFeeBps: [] },
    { bonderFeeBps: { ETH: { arbitrum: "abc" } } },
    { bonderFeeBps: { ETH: { arbitrum: -5 } } },
    { bonderFeeBps: { ETH: { arbitrum: 1.5 } } },
    { bonders: [] },
    { bonders: { ETH: { ethereum: { base: "0x12" } } } },
    { destinationFeeGasPriceMultiplier: "1.9" },
    { destinationFeeGasPriceMultiplier: -1 },
    { relayerFeeWei: { nova: 5 } },
    { relayerFeeEnabled: { nova: "yes" } },
  ])("rejects %j", (document) => {
    expect(() => parseFeeSettings("mainnet", document)).toThrow(TypeError);
  });
});
