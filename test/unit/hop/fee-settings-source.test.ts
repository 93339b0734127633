import { describe, expect, test } from "vitest";
import { type FeeSettings, getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { createFeeSettingsSource } from "../../../src/hop/fee-settings-source.js";
import type { StaleWhileRevalidateCache } from "../../../src/resilience/stale-while-revalidate.js";

const builtIn = getBuiltInFeeSettings("mainnet");
const own = { ...builtIn, destinationFeeGasPriceMultiplier: 3 };

const from = (get: StaleWhileRevalidateCache<FeeSettings>["get"]) => {
  const document = { get, peek: () => undefined, close() {} };
  return createFeeSettingsSource({ mainnet: document, goerli: document });
};

describe("fee settings", () => {
  test("are the SDK's own without a document", async () => {
    const source = createFeeSettingsSource(undefined);
    expect(await source.getCurrent("mainnet")).toEqual(builtIn);
    expect(await source.getCurrentOrBuiltIn("goerli")).toEqual(getBuiltInFeeSettings("goerli"));
  });

  test("are those of the document", async () => {
    const source = from(async () => ({ value: own, readAt: 0 }));
    expect(await source.getCurrent("mainnet")).toBe(own);
    expect(await source.getCurrentOrBuiltIn("mainnet")).toBe(own);
  });

  test("that cannot be read are no settings to price with, and the SDK's own to list routes by", async () => {
    const source = from(() => Promise.reject(new Error("https://secret.example")));
    await expect(source.getCurrent("mainnet")).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the fee settings cannot be read",
    });
    expect(await source.getCurrentOrBuiltIn("mainnet")).toEqual(builtIn);
  });

  test("a list of routes does not wait long for them", async () => {
    const source = from(() => new Promise(() => {}));
    const started = performance.now();
    expect(await source.getCurrentOrBuiltIn("mainnet")).toEqual(builtIn);
    expect(performance.now() - started).toBeLessThan(2_500);
  });
});

test("settings that are at hand are given without a wait, the same as long as there are no newer ones", () => {
  expect(createFeeSettingsSource(undefined).peek("mainnet")).toEqual(builtIn);
  const document = { get: () => new Promise<never>(() => {}), peek: () => ({ value: own, readAt: 0 }), close() {} };
  const source = createFeeSettingsSource({ mainnet: document, goerli: document });
  expect(source.peek("mainnet")).toBe(own);
  expect(from(() => new Promise(() => {})).peek("mainnet")).toBeUndefined();
});
