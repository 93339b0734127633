import { describe, expect, test } from "vitest";
import { DEFAULT_ROUTE, getTypicalAmount } from "../../../../web/quote/default-quote.js";
import {
  describeRouteChange,
  resolveQuoteInput,
  toQueryParameters,
  toViewParameters,
} from "../../../../web/quote/quote-input.js";
import type { Route } from "../../../../web/shared/api/route-selection.js";
import { formatHash, parseHash } from "../../../../web/shared/navigation/location-hash.js";

const createRoute = (token: string, sourceChainSlug: string, destinationChainSlug: string): Route => ({
  token,
  sourceChainSlug,
  sourceChainId: 1,
  destinationChainSlug,
  destinationChainId: 2,
});
const routes = [createRoute("ETH", "ethereum", "base"), createRoute("ETH", "ethereum", "linea")];
const input = {
  network: "mainnet",
  token: "ETH",
  from: "ethereum",
  to: "linea",
  slippage: "1",
  amount: "0.5",
  amountKind: "send",
} as const;
const previous = new Map(Object.entries({ amount: "2", slippage: "0.3", token: "ETH", to: "linea" }));

describe("quote input", () => {
  test.each([
    input,
    { ...input, network: "goerli" },
    { ...input, amount: "", slippage: "" },
    { ...input, amountKind: "receive" as const },
  ])("survives the conversion to a URL hash and back: %j", (original) => {
    const { parameters } = parseHash(formatHash({ view: "quote", parameters: toViewParameters(original) }));
    expect(resolveQuoteInput(parameters, previous, routes)).toEqual(original);
  });

  test("takes absent parameters from the previous input", () => {
    expect(resolveQuoteInput(new Map(), previous, routes)).toEqual({ ...input, amount: "2", slippage: "0.3" });
  });

  test("starts with the default route and a typical amount", () => {
    const { token, from, to } = DEFAULT_ROUTE;
    const available = [
      ...routes,
      createRoute(token, to, from),
      createRoute(token, from, "base"),
      createRoute(token, from, to),
    ];
    expect(resolveQuoteInput(new Map(), new Map(), available)).toEqual({
      ...{ network: "mainnet", token, from, to },
      ...{ amountKind: "send", amount: getTypicalAmount(token), slippage: "0.5" },
    });
  });

  test("takes a typical amount instead of the previous one if the token changes", () => {
    const available = [...routes, createRoute("DAI", "polygon", "arbitrum")];
    const parameters = new Map([["token", "dai"]]);
    expect(resolveQuoteInput(parameters, previous, available)).toMatchObject({ token: "DAI", amount: "2000" });
    expect(resolveQuoteInput(new Map([...parameters, ["amount", "7"]]), previous, available).amount).toBe("7");
  });

  test("keeps the amount that the recipient gets, unless the URL has one to send", () => {
    const earlier = new Map([...previous, ["receiveAmount", "3"]]);
    earlier.delete("amount");
    const resolve = (entries: [string, string][]) => resolveQuoteInput(new Map(entries), earlier, routes);
    expect(resolve([])).toMatchObject({ amountKind: "receive", amount: "3" });
    expect(resolve([["amount", "4"]])).toMatchObject({ amountKind: "send", amount: "4" });
    expect(resolve([["receiveAmount", "5"]])).toMatchObject({ amountKind: "receive", amount: "5" });
  });

  test("falls back to an existing route and describes the change", () => {
    const parameters = new Map(Object.entries({ token: "ETH", from: "nova", to: "linea" }));
    const nearest = resolveQuoteInput(parameters, previous, routes);
    expect(nearest.from).toBe("ethereum");
    expect(describeRouteChange(parameters, nearest)).toBe(
      "There is no route for ETH from Arbitrum Nova to Linea. The quote is for ETH from Ethereum to Linea.",
    );
    expect(describeRouteChange(new Map([["to", "linea"]]), nearest)).toBeUndefined();
  });

  test("ignores case", () => {
    const parameters = new Map(Object.entries({ token: "eth", from: "Ethereum", to: "LINEA" }));
    const resolved = resolveQuoteInput(parameters, previous, routes);
    expect(resolved).toEqual({ ...input, amount: "2", slippage: "0.3" });
    expect(describeRouteChange(parameters, resolved)).toBeUndefined();
  });

  test("throws if the network has no routes", () => {
    expect(() => resolveQuoteInput(new Map([["network", "goerli"]]), previous, [])).toThrow(
      "The network goerli has no routes.",
    );
  });

  test("is converted to query parameters", () => {
    const query = toQueryParameters(input, "500");
    expect(query).toEqual({
      amount: "500",
      token: "ETH",
      fromChain: "ethereum",
      toChain: "linea",
      slippage: "1",
      network: "",
    });
    const received = toQueryParameters({ ...input, amountKind: "receive" }, "500");
    expect(received).toMatchObject({ receiveAmount: "500" });
    expect(received).not.toHaveProperty("amount");
  });
});
