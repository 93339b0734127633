import { HopBridge } from "@hop-protocol/sdk";
import { describe, expect, test } from "vitest";
import { getNetwork, NETWORK_SLUGS } from "../../../src/hop/networks.js";
import { findToken, getTokenDecimals } from "../../../src/hop/tokens.js";

const mainnet = getNetwork("mainnet");

describe("findToken", () => {
  test.each(NETWORK_SLUGS)("knows the SDK's decimals of all tokens on %s", (slug) => {
    for (const symbol of getNetwork(slug).contracts.keys()) {
      expect(getTokenDecimals(symbol), symbol).toBe(new HopBridge({ network: slug, token: symbol }).getTokenDecimals());
    }
  });

  test.each([
    ["USDC.e", "USDC.e", "USDC.e"],
    ["usdc.E", "USDC.e", "USDC.e"],
    ["eth", "ETH", "ETH"],
    ["RETH", "rETH", "rETH"],
    ["weth", "ETH", "WETH"],
    ["wMatic", "MATIC", "WMATIC"],
    ["xdai", "DAI", "XDAI"],
    ["WXDAI", "DAI", "WXDAI"],
  ])("resolves %s to %s, requested as %s", (name, symbol, requestedSymbol) => {
    expect(findToken(mainnet, name)).toMatchObject({ symbol, requestedSymbol });
  });

  test.each(["", "DOGE", "__proto__", "constructor", "USDC ", "UNI"])("does not find %j", (name) => {
    expect(findToken(mainnet, name)).toBeUndefined();
  });

  test("resolves an alias only on networks that have the token", () => {
    expect(findToken(getNetwork("goerli"), "WMATIC")).toBeUndefined();
  });
});
