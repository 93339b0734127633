import { HopBridge } from "@hop-protocol/sdk";
import { describe, expect, test } from "vitest";
import { getNetwork, NETWORK_SLUGS } from "../../../src/hop/networks.js";
import { findToken, getTokenDecimals } from "../../../src/hop/tokens.js";

const mainnet = getNetwork("mainnet");

describe("tokens", () => {
  test.each(NETWORK_SLUGS)("have the SDK's decimals on %s", (slug) => {
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
  ])("%s is %s, asked for as %s", (asked, symbol, requestedSymbol) => {
    expect(findToken(mainnet, asked)).toMatchObject({ symbol, requestedSymbol });
  });

  test.each(["", "DOGE", "__proto__", "constructor", "USDC ", "UNI"])("%j is none", (asked) => {
    expect(findToken(mainnet, asked)).toBeUndefined();
  });

  test("aliases only where the token is", () => {
    expect(findToken(getNetwork("goerli"), "WMATIC")).toBeUndefined();
  });
});
