import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { TOKEN_MESSENGERS, TOKEN_MINTERS } from "../../../../src/hop/cctp.js";
import { getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import type { ContractRead } from "../../../../src/quotes/state/read-set.js";
import { type LiquidityPlan, planLiquidity } from "../../../../src/quotes/state/route-liquidity.js";
import { addressOf, createChainState, findQuoteRoute } from "../../../support/stubs/quote-routes.js";

const UNKNOWN = { basis: "UNKNOWN", available: undefined };
const BONDER = "0xa6a688f107851131f0e1dce493ebbebfaf99203e";
const settings = (bonder: string) => ({
  ...getBuiltInFeeSettings("mainnet"),
  bonders: { ETH: { polygon: { optimism: bonder, ethereum: bonder } } },
});
const encodeCall = (signature: string, address: string): string =>
  utils.id(signature).slice(0, 10) + address.slice(2).toLowerCase().padStart(64, "0");

const listCalls = (reads: readonly ContractRead[]) => reads.flatMap((read) => read.plan().calls);

/** Returns the liquidity where the planned reads of the destination returned these values. */
function getLiquidity({ destinationReads, ...plan }: LiquidityPlan, values: readonly (bigint | undefined)[]) {
  const state = createChainState(destinationReads.map(({ key }, index) => [key, values[index]]));
  return plan.getLiquidity(undefined, state);
}

describe("the liquidity of a bonded transfer", () => {
  const plan = planLiquidity(findQuoteRoute("ETH", "polygon", "optimism"), settings(BONDER));

  test("is read from the bridge of the destination", () => {
    const to = addressOf("ETH", "optimism", "l2Bridge");
    expect(plan.sourceReads).toEqual([]);
    expect(listCalls(plan.destinationReads)).toEqual([
      { to, data: encodeCall("getCredit(address)", BONDER) },
      { to, data: encodeCall("getDebitAndAdditionalDebit(address)", BONDER) },
    ]);
    const withdrawal = planLiquidity(findQuoteRoute("ETH", "polygon", "ethereum"), settings(BONDER));
    expect(listCalls(withdrawal.destinationReads)[0]?.to).toBe(addressOf("ETH", "ethereum", "l1Bridge"));
  });

  test.each([
    [10n, 3n, 7n],
    [10n, 9n, 1n],
    [10n, 10n, 0n],
    [10n, 11n, 0n],
    [10n, 0n, 10n],
  ])("is the bonder's credit of %i less a debit of %i", (credit, debit, available) => {
    expect(getLiquidity(plan, [credit, debit])).toEqual({ basis: "BONDER_CREDIT", available });
  });

  test("is unknown where the bridge or the chain does not tell", () => {
    expect(getLiquidity(plan, [10n, undefined])).toEqual(UNKNOWN);
    expect(getLiquidity(plan, [undefined, 10n])).toEqual(UNKNOWN);
    expect(plan.getLiquidity(undefined, undefined)).toEqual(UNKNOWN);
  });

  test.each([
    ["no bonder is known for the token", "DAI", "polygon", "optimism", BONDER],
    ["no bonder is known for the source", "ETH", "gnosis", "optimism", BONDER],
    ["no bonder is known for the destination", "ETH", "polygon", "base", BONDER],
    ["its address is none", "ETH", "polygon", "optimism", `${BONDER} `],
  ])("is unknown where %s", (_, token, from, to, bonder) => {
    const unknown = planLiquidity(findQuoteRoute(token, from, to), settings(bonder));
    expect(unknown).toMatchObject({ sourceReads: [], destinationReads: [] });
    expect(unknown.getLiquidity(undefined, undefined)).toEqual(UNKNOWN);
  });
});

test("the liquidity from ethereum is unlimited", () => {
  const plan = planLiquidity(findQuoteRoute("ETH", "ethereum", "optimism"), settings(BONDER));
  expect(plan).toMatchObject({ sourceReads: [], destinationReads: [] });
  expect(plan.getLiquidity(undefined, undefined)).toEqual({ basis: "UNLIMITED", available: undefined });
});

describe("the liquidity of a transfer by CCTP", () => {
  test.each([
    ["polygon", "USDC", "l2CanonicalToken"],
    ["ethereum", "USDC", "l1CanonicalToken"],
    ["polygon", "USDC.e", "l2CanonicalToken"],
  ])("from %s is what one message of %s may burn there", (from, token, name) => {
    const plan = planLiquidity(findQuoteRoute(token, from, "optimism"), settings(BONDER));
    expect(plan.destinationReads).toEqual([]);
    expect(listCalls(plan.sourceReads)).toEqual([
      { to: TOKEN_MESSENGERS[from]?.toLowerCase(), data: utils.id("localMinter()").slice(0, 10) },
      {
        to: TOKEN_MINTERS[from]?.toLowerCase(),
        data: encodeCall("burnLimitsPerMessage(address)", addressOf("USDC", from, name)),
      },
    ]);
  });

  test("is unknown on a chain without CCTP", () => {
    const route = findQuoteRoute("USDC", "polygon", "optimism");
    const gnosis = route.network.chains.get("gnosis");
    if (gnosis === undefined) throw new Error("no such chain");
    const unknown = planLiquidity({ ...route, source: gnosis }, settings(BONDER));
    expect(unknown).toMatchObject({ sourceReads: [], destinationReads: [] });
    expect(unknown.getLiquidity(undefined, undefined)).toEqual(UNKNOWN);
  });
});
