import { describe, expect, test } from "vitest";
import {
  type FeeSettings,
  FeeSettingsSource,
  getBuiltInFeeSettings,
  parseFeeSettings,
} from "../../../src/hop/fee-settings.js";
import { UpstreamError } from "../../../src/resilience/http-client/upstream-error.js";
import type { StaleWhileRevalidateCache } from "../../../src/resilience/stale-while-revalidate.js";

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

const builtIn = getBuiltInFeeSettings("mainnet");
const customSettings = { ...builtIn, destinationFeeGasPriceMultiplier: 3 };

const createSource = (get: StaleWhileRevalidateCache<FeeSettings>["get"]) => {
  const document = { get, peek: () => undefined, close() {} };
  return new FeeSettingsSource({ mainnet: document, goerli: document });
};

describe("FeeSettingsSource", () => {
  test("returns the SDK's built-in settings without a document", async () => {
    const source = new FeeSettingsSource(undefined);
    expect(await source.getCurrent("mainnet")).toEqual(builtIn);
    expect(await source.getCurrentOrBuiltIn("goerli")).toEqual(getBuiltInFeeSettings("goerli"));
  });

  test("returns the settings of the document", async () => {
    const source = createSource(async () => ({ value: customSettings, readAt: 0 }));
    expect(await source.getCurrent("mainnet")).toBe(customSettings);
    expect(await source.getCurrentOrBuiltIn("mainnet")).toBe(customSettings);
  });

  test("fails for quotes, and falls back to the built-in settings for route lists, when the document cannot be read", async () => {
    const source = createSource(() => Promise.reject(new Error("https://secret.example")));
    await expect(source.getCurrent("mainnet")).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: expect.stringMatching(/^the fee settings of mainnet cannot be read .*: invalid; .* ASSETS_URL=off/),
    });
    expect(await source.getCurrentOrBuiltIn("mainnet")).toEqual(builtIn);
  });

  test("names how the document failed, and no URL", async () => {
    const cause = new UpstreamError("DNS lookup failed", { cause: new Error("https://secret.example") });
    const error = await createSource(() => Promise.reject(cause))
      .getCurrent("goerli")
      .catch(String);
    expect(error).toContain("the fee settings of goerli cannot be read from Hop's document: DNS lookup failed; ");
    expect(error).not.toContain("secret");
  });

  test("falls back to the built-in settings for route lists when the document hangs", async () => {
    const source = createSource(() => new Promise(() => {}));
    const started = performance.now();
    expect(await source.getCurrentOrBuiltIn("mainnet")).toEqual(builtIn);
    expect(performance.now() - started).toBeLessThan(60_000);
  });
});

test("peek returns cached settings, and undefined without any", () => {
  expect(new FeeSettingsSource(undefined).peek("mainnet")).toEqual(builtIn);
  const peek = () => ({ value: customSettings, readAt: 0 });
  const document = { get: () => new Promise<never>(() => {}), peek, close() {} };
  const source = new FeeSettingsSource({ mainnet: document, goerli: document });
  expect(source.peek("mainnet")).toBe(customSettings);
  expect(createSource(() => new Promise(() => {})).peek("mainnet")).toBeUndefined();
});
