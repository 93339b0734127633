import { describe, expect, test } from "vitest";
import { getNetwork } from "../../../src/hop/networks.js";
import {
  parseAmount,
  parseChain,
  parseIsFullView,
  parseNetwork,
  parseRpcUrls,
  parseToken,
  parseTransactionHash,
} from "../../../src/operations/parameters.js";

const mainnet = getNetwork("mainnet");

// Which values each parameter may have, test/unit/openapi/constraints.test.ts compares with the description.

describe("parseNetwork, parseToken and parseChain", () => {
  test("an empty network means mainnet", () => {
    expect(parseNetwork("").slug).toBe("mainnet");
    expect(parseNetwork("goerli").slug).toBe("goerli");
  });

  test.each([
    ["optimism", "optimism"],
    ["Optimism", "optimism"],
    ["POLYGONZK", "polygonzk"],
    ["10", "optimism"],
    ["42161", "arbitrum"],
    ["xdai", "gnosis"],
    ["xDai", "gnosis"],
  ])("accepts the chain %s", (text, slug) => {
    expect(parseChain(mainnet, "toChain", text).slug).toBe(slug);
  });

  test.each(["420", "042161", "+10", "10.0", "0xa", " 10", "1e1", "optimism "])("rejects the chain %s", (text) => {
    expect(() => parseChain(mainnet, "toChain", text)).toThrow(
      expect.objectContaining({ reason: "UNSUPPORTED_CHAIN", field: "toChain" }),
    );
  });

  test("a chain ID is one of the network's", () => {
    expect(parseChain(getNetwork("goerli"), "toChain", "420").slug).toBe("optimism");
    expect(() => parseChain(getNetwork("goerli"), "toChain", "10")).toThrow("on goerli");
  });

  test.each<[string, () => unknown, string]>([
    ["a chain", () => parseChain(mainnet, "toChain", "arbitrun"), "on mainnet: did you mean arbitrum?"],
    ["a token", () => parseToken(mainnet, "USTD"), "on mainnet: did you mean USDT?"],
    ["a network", () => parseNetwork("MainNet"), "mainnet, goerli: did you mean mainnet?"],
    ["a view", () => parseIsFullView("full"), "BASIC, FULL: did you mean FULL?"],
    ["a key of rpcUrl", () => parseRpcUrls(mainnet, { 10: "https://a.example" }), ": did you mean optimism?"],
    ["a key of rpcUrl", () => parseRpcUrls(mainnet, { Base: "https://a.example" }), ": did you mean base?"],
  ])("suggests the nearest name for %s", (_, parse, end) => {
    expect(() => parse()).toThrow(new RegExp(`${end.replace("?", "\\?")}$`));
  });

  test.each<[string, () => unknown]>([
    ["toChain", () => parseChain(mainnet, "toChain", "arbitrum,base")],
    ["amount", () => parseAmount("1000,2000")],
    ["transferHash", () => parseTransactionHash("transferHash", "0x1,0x2")],
  ])("explains how to write a list of %s", (field, parse) => {
    expect(() => parse()).toThrow(`commas do not separate values; repeat ${field} for each, where it takes several`);
  });

  test("errors quote a short, printable part of the value", () => {
    const value = `\u0000\u001b[31m<b>${"x".repeat(10_000)}`;
    try {
      parseToken(mainnet, value);
      expect.unreachable();
    } catch (error) {
      const { message } = error as Error;
      expect(message.length).toBeLessThan(250);
      expect(message).toMatch(/^[\x20-\x7e]*$/);
    }
  });
});

describe("parseRpcUrls", () => {
  test("resolves aliases and drops empty URLs", () => {
    expect([...parseRpcUrls(mainnet, { xdai: "https://a.example", base: "" })]).toEqual([
      ["gnosis", "https://a.example"],
    ]);
  });

  test("rejects two URLs for one chain", () => {
    expect(() => parseRpcUrls(mainnet, { xdai: "https://a.example", gnosis: "https://b.example" })).toThrow(
      expect.objectContaining({ reason: "INVALID_PARAMETER" }),
    );
  });

  test.each(["zksync", "Optimism", "10", "__proto__", "constructor"])("rejects the unknown chain %s", (slug) => {
    const urls = Object.fromEntries([[slug, "https://a.example"]]);
    expect(() => parseRpcUrls(mainnet, urls)).toThrow(
      expect.objectContaining({ reason: "UNSUPPORTED_CHAIN", field: `rpcUrl[${slug}]` }),
    );
  });
});
