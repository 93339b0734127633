import { describe, expect, test } from "vitest";
import { type FeeSettings, getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { createFeeSettingsSource } from "../../../src/hop/fee-settings-source.js";
import type { StaleWhileRevalidateCache } from "../../../src/resilience/stale-while-revalidate.js";

const builtIn = getBuiltInFeeSettings("mainnet");
const customSettings = { ...builtIn, destinationFeeGasPriceMultiplier: 3 };

const createSource = (get: StaleWhileRevalidateCache<FeeSettings>["get"]) => {
  const document = { get, peek: () => undefined, close() {} };
  return createFeeSettingsSource({ mainnet: document, goerli: document });
};

describe("createFeeSettingsSource", () => {
  test("returns the SDK's built-in settings without a document", async () => {
    const source = createFeeSettingsSource(undefined);
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
      message: "the fee settings cannot be read",
    });
    expect(await source.getCurrentOrBuiltIn("mainnet")).toEqual(builtIn);
  });

  test("falls back to the built-in settings for route lists when the document hangs", async () => {
    const source = createSource(() => new Promise(() => {}));
    const started = performance.now();
    expect(await source.getCurrentOrBuiltIn("mainnet")).toEqual(builtIn);
    expect(performance.now() - started).toBeLessThan(60_000);
  });
});

test("peek returns cached settings, and undefined without any", () => {
  expect(createFeeSettingsSource(undefined).peek("mainnet")).toEqual(builtIn);
  const document = {
    get: () => new Promise<never>(() => {}),
    peek: () => ({ value: customSettings, readAt: 0 }),
    close() {},
  };
  const source = createFeeSettingsSource({ mainnet: document, goerli: document });
  expect(source.peek("mainnet")).toBe(customSettings);
  expect(createSource(() => new Promise(() => {})).peek("mainnet")).toBeUndefined();
});
