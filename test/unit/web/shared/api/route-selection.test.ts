import { describe, expect, test } from "vitest";
import {
  hasRoute,
  listChains,
  listDestinationChains,
  listSourceChains,
  listTokens,
  type Route,
  selectNearestRoute,
} from "../../../../../web/shared/api/route-selection.js";

const route = (token: string, sourceChainSlug: string, destinationChainSlug: string): Route => ({
  token,
  sourceChainSlug,
  sourceChainId: 1,
  destinationChainSlug,
  destinationChainId: 2,
});

const routes = [
  route("ETH", "ethereum", "base"),
  route("ETH", "base", "ethereum"),
  route("ETH", "base", "linea"),
  route("SNX", "optimism", "ethereum"),
];

describe("route selection", () => {
  test("lists tokens and chains once, in the order of the routes", () => {
    expect(listTokens(routes)).toEqual(["ETH", "SNX"]);
    expect(listSourceChains(routes, "ETH")).toEqual(["ethereum", "base"]);
    expect(listDestinationChains(routes, "ETH", "base")).toEqual(["ethereum", "linea"]);
    expect(listDestinationChains(routes, "ETH")).toEqual(["base", "ethereum", "linea"]);
    expect(listChains(routes)).toEqual(["ethereum", "base", "optimism", "linea"]);
    expect(listSourceChains(routes, "DOGE")).toEqual([]);
  });

  test("distinguishes the directions of a route", () => {
    expect(hasRoute(routes, { token: "ETH", from: "base", to: "linea" })).toBe(true);
    expect(hasRoute(routes, { token: "ETH", from: "linea", to: "base" })).toBe(false);
    expect(hasRoute(routes, { token: "SNX", from: "base", to: "linea" })).toBe(false);
  });

  test.each([
    [{}, "ETH", "ethereum", "base"],
    [{ token: "ETH", from: "base", to: "linea" }, "ETH", "base", "linea"],
    [{ token: "ETH", from: "base" }, "ETH", "base", "ethereum"],
    [{ token: "ETH", from: "linea", to: "linea" }, "ETH", "ethereum", "base"],
    [{ token: "SNX", from: "base", to: "linea" }, "SNX", "optimism", "ethereum"],
    [{ token: "DOGE", from: "base", to: "linea" }, "ETH", "base", "linea"],
  ])("selects for %j the route of %s from %s to %s", (preferred, token, from, to) => {
    expect(selectNearestRoute(routes, preferred)).toEqual({ token, from, to });
  });

  test("selects no route if there are none", () => {
    expect(selectNearestRoute([], { token: "ETH" })).toBeUndefined();
  });
});
