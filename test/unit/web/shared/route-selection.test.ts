import { describe, expect, test } from "vitest";
import {
  chainsOf,
  destinationsOf,
  isRoute,
  nearestRoute,
  type Route,
  sourcesOf,
  tokensOf,
} from "../../../../web/shared/route-selection.js";

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

describe("routes", () => {
  test("offer what there is, once, in their order", () => {
    expect(tokensOf(routes)).toEqual(["ETH", "SNX"]);
    expect(sourcesOf(routes, "ETH")).toEqual(["ethereum", "base"]);
    expect(destinationsOf(routes, "ETH", "base")).toEqual(["ethereum", "linea"]);
    expect(destinationsOf(routes, "ETH")).toEqual(["base", "ethereum", "linea"]);
    expect(chainsOf(routes)).toEqual(["ethereum", "base", "optimism", "linea"]);
    expect(sourcesOf(routes, "DOGE")).toEqual([]);
  });

  test("have a direction", () => {
    expect(isRoute(routes, { token: "ETH", from: "base", to: "linea" })).toBe(true);
    expect(isRoute(routes, { token: "ETH", from: "linea", to: "base" })).toBe(false);
    expect(isRoute(routes, { token: "SNX", from: "base", to: "linea" })).toBe(false);
  });

  test.each([
    [{}, "ETH", "ethereum", "base"],
    [{ token: "ETH", from: "base", to: "linea" }, "ETH", "base", "linea"],
    [{ token: "ETH", from: "base" }, "ETH", "base", "ethereum"],
    [{ token: "ETH", from: "linea", to: "linea" }, "ETH", "ethereum", "base"],
    [{ token: "SNX", from: "base", to: "linea" }, "SNX", "optimism", "ethereum"],
    [{ token: "DOGE", from: "base", to: "linea" }, "ETH", "base", "linea"],
  ])("nearest to %j is %s from %s to %s", (wanted, token, from, to) => {
    expect(nearestRoute(routes, wanted)).toEqual({ token, from, to });
  });

  test("where there are none, none is nearest", () => {
    expect(nearestRoute([], { token: "ETH" })).toBeUndefined();
  });
});
