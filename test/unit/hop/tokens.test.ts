import { HopBridge } from "@hop-protocol/sdk";
import { describe, expect, test } from "vitest";
import { networkOf, networkSlugs } from "../../../src/hop/networks.js";
import { decimalsOf, findToken } from "../../../src/hop/tokens.js";

const mainnet = networkOf("mainnet");

describe("tokens", () => {
  test.each(networkSlugs)("have the SDK's decimals on %s", (slug) => {
    for (const symbol of networkOf(slug).contracts.keys()) {
      expect(decimalsOf(symbol), symbol).toBe(new HopBridge({ network: slug, token: symbol }).getTokenDecimals());
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
  ])("%s is %s, asked for as %s", (asked, symbol, name) => {
    expect(findToken(mainnet, asked)).toMatchObject({ symbol, name });
  });

  test.each(["", "DOGE", "__proto__", "constructor", "USDC ", "UNI"])("%j is none", (asked) => {
    expect(findToken(mainnet, asked)).toBeUndefined();
  });

  test("aliases only where the token is", () => {
    expect(findToken(networkOf("goerli"), "WMATIC")).toBeUndefined();
  });
});
