import { describe, expect, test } from "vitest";
import {
  describeRouteChange,
  resolveQuoteInput,
  toGrpcMessage,
  toQueryParameters,
  toViewParameters,
} from "../../../../web/quote/quote-input.js";
import { formatHash, parseHash } from "../../../../web/shared/location-hash.js";
import type { Route } from "../../../../web/shared/route-selection.js";

const routes: readonly Route[] = ["base", "linea"].map((to) => ({
  token: "ETH",
  sourceChainSlug: "ethereum",
  sourceChainId: 1,
  destinationChainSlug: to,
  destinationChainId: 2,
}));
const wish = { network: "mainnet", token: "ETH", from: "ethereum", to: "linea", amount: "0.5", slippage: "1" };
const last = new Map(Object.entries({ amount: "1", slippage: "0.5", token: "ETH", to: "linea" }));

describe("what a quote is wanted for", () => {
  test.each([wish, { ...wish, network: "goerli" }, { ...wish, amount: "", slippage: "" }])(
    "goes into an address and back: %j",
    (each) => {
      const { parameters: values } = parseHash(formatHash({ view: "quote", parameters: toViewParameters(each) }));
      expect(resolveQuoteInput(values, last, routes)).toEqual(each);
    },
  );

  test("is as it was last where an address leaves it open", () => {
    expect(resolveQuoteInput(new Map(), last, routes)).toEqual({ ...wish, amount: "1", slippage: "0.5" });
  });

  test("is told where an address asks for what there is not", () => {
    const given = new Map(Object.entries({ token: "ETH", from: "nova", to: "linea" }));
    const nearest = resolveQuoteInput(given, last, routes);
    expect(nearest.from).toBe("ethereum");
    expect(describeRouteChange(given, nearest)).toBe(
      "No route of ETH from Arbitrum Nova to Linea is listed. This is ETH from Ethereum to Linea.",
    );
    expect(describeRouteChange(new Map([["to", "linea"]]), nearest)).toBeUndefined();
  });

  test("may be written in any letter case", () => {
    const given = new Map(Object.entries({ token: "eth", from: "Ethereum", to: "LINEA" }));
    const found = resolveQuoteInput(given, last, routes);
    expect(found).toEqual({ ...wish, amount: "1", slippage: "0.5" });
    expect(describeRouteChange(given, found)).toBeUndefined();
  });

  test("cannot be where a network has no route", () => {
    expect(() => resolveQuoteInput(new Map([["network", "goerli"]]), last, [])).toThrow(
      "Nothing can be sent on goerli.",
    );
  });

  test("makes parameters and a message", () => {
    const parameters = toQueryParameters(wish, "500");
    expect(parameters).toEqual({
      amount: "500",
      token: "ETH",
      fromChain: "ethereum",
      toChain: "linea",
      slippage: "1",
      network: "",
    });
    expect(toGrpcMessage(parameters)).toEqual({
      amount: "500",
      token: "ETH",
      fromChain: "ethereum",
      toChain: "linea",
      slippage: 1,
    });
    expect(toGrpcMessage({ slippage: "1e1" })).toEqual({ slippage: "1e1" });
  });
});
