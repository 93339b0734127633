import { expect, test } from "vitest";
import { getNetwork } from "../../../src/hop/networks.js";

const listLimits = (network: "mainnet" | "goerli") =>
  Object.fromEntries([...getNetwork(network).chains.values()].map(({ slug, maxBlockAgeMs }) => [slug, maxBlockAgeMs]));

test("a chain of mainnet may be without a new block for 20 blocks, at least two minutes", () => {
  expect(listLimits("mainnet")).toEqual({
    ethereum: 240_000,
    optimism: 120_000,
    arbitrum: 900_000,
    polygon: 120_000,
    gnosis: 120_000,
    nova: 900_000,
    base: 120_000,
    linea: 120_000,
    polygonzk: 900_000,
  });
});

test("the chains of goerli, which was shut down, have no limit", () => {
  expect(new Set(Object.values(listLimits("goerli")))).toEqual(new Set([0]));
});
