import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import {
  getBonderFeeBps,
  getRelayerFee,
  isExemptFromMinFee,
  planCctpMinFeeRead,
  planMinBonderFeeRead,
} from "../../../../src/quotes/state/route-plan.js";
import { addressOf, findQuoteRoute } from "../../../support/stubs/quote-routes.js";

const settings = getBuiltInFeeSettings("mainnet");

describe("the minimum fee of a bridge", () => {
  test("is read on mainnet for ETH from polygon and gnosis alone", () => {
    const l2Slugs = [...getNetwork("mainnet").chains.values()].filter(({ isL1 }) => !isL1).map(({ slug }) => slug);
    const reading = l2Slugs.filter((from) => planMinBonderFeeRead(findQuoteRoute("ETH", from, "ethereum")));
    expect(reading.sort()).toEqual(["gnosis", "polygon"]);
    expect(planMinBonderFeeRead(findQuoteRoute("ETH", "polygon", "base"))?.plan().calls).toEqual([
      { to: addressOf("ETH", "polygon", "l2Bridge"), data: utils.id("minBonderFeeAbsolute()").slice(0, 10) },
    ]);
    expect(planMinBonderFeeRead(findQuoteRoute("DAI", "polygon", "gnosis"))).toBeUndefined();
    expect(planMinBonderFeeRead(findQuoteRoute("HOP", "polygon", "gnosis"))).toBeUndefined();
    expect(planMinBonderFeeRead(findQuoteRoute("ETH", "ethereum", "polygon"))).toBeUndefined();
  });

  test("is read on testnets for every token, but not on L1", () => {
    expect(planMinBonderFeeRead(findQuoteRoute("ETH", "optimism", "base", "goerli"))).toBeDefined();
    expect(planMinBonderFeeRead(findQuoteRoute("ETH", "ethereum", "base", "goerli"))).toBeUndefined();
  });

  test("is not charged to gnosis for DAI, if it is called DAI", () => {
    const routes = [
      ["DAI", "gnosis"],
      ["XDAI", "gnosis"],
      ["DAI", "polygon"],
      ["ETH", "gnosis"],
    ] as const;
    const exempt = routes.filter(([token, to]) => isExemptFromMinFee(findQuoteRoute(token, "optimism", to)));
    expect(exempt).toEqual([["DAI", "gnosis"]]);
  });

  test.each([
    ["polygon", "cctpL2Bridge"],
    ["ethereum", "cctpL1Bridge"],
  ])("by CCTP is read on %s from the %s", (from, contract) => {
    expect(planCctpMinFeeRead(findQuoteRoute("USDC", from, "optimism")).plan().calls).toEqual([
      { to: addressOf("USDC", from, contract), data: utils.id("minBonderFee()").slice(0, 10) },
    ]);
  });
});

describe("the relative fee of the bonder", () => {
  const bonderFeeBps = { DAI: { gnosis: 30, polygon: 4, ethereum: 16 }, ETH: { gnosis: 11 } };

  test.each([
    ["of the destination", "DAI", "optimism", "polygon", 4],
    ["of another destination", "DAI", "optimism", "gnosis", 30],
    ["of the destination for DAI that leaves gnosis as DAI", "DAI", "gnosis", "polygon", 4],
    ["of gnosis for DAI that leaves gnosis as XDAI", "XDAI", "gnosis", "polygon", 30],
    ["of the destination for XDAI from elsewhere", "XDAI", "optimism", "ethereum", 16],
    ["0 for a destination without a fee", "DAI", "gnosis", "base", 0],
    ["0 for a token without fees", "HOP", "gnosis", "polygon", 0],
  ])("is that %s", (_, token, from, to, expected) => {
    const network = getNetwork("mainnet");
    const route = { ...findQuoteRoute(token, from, "polygon"), destination: network.chains.get(to) };
    expect(getBonderFeeBps(route as ReturnType<typeof findQuoteRoute>, { ...settings, bonderFeeBps })).toBe(expected);
  });

  test("of XDAI from gnosis is that of the destination where gnosis has none", () => {
    const withoutGnosis = { ...settings, bonderFeeBps: { DAI: { polygon: 4 } } };
    expect(getBonderFeeBps(findQuoteRoute("XDAI", "gnosis", "polygon"), withoutGnosis)).toBe(4);
  });
});

describe("the relayer's fee", () => {
  const relayed = {
    ...settings,
    relayerFeeEnabled: { polygon: true, optimism: true, gnosis: false },
    relayerFeeWei: { polygon: "77", gnosis: "78" },
  };

  test.each([
    ["is charged for ETH to a destination with a relayer", "ETH", "ethereum", "polygon", 77n],
    ["is 0 where the settings have none", "ETH", "ethereum", "optimism", 0n],
    ["is 0 for ETH that is called WETH", "WETH", "ethereum", "polygon", 0n],
    ["is 0 for other tokens", "DAI", "ethereum", "polygon", 0n],
    ["is absent where it is switched off", "ETH", "ethereum", "gnosis", undefined],
    ["is absent where no relayer is known", "ETH", "ethereum", "base", undefined],
    ["is absent from an L2", "ETH", "gnosis", "polygon", undefined],
  ])("%s", (_, token, from, to, expected) => {
    expect(getRelayerFee(findQuoteRoute(token, from, to), relayed)).toBe(expected);
  });
});
