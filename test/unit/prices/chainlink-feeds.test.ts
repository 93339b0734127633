import { expect, test } from "vitest";
import { isAddress } from "../../../src/chain/abi/abi-encoding.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { FEED_CHAINS } from "../../../src/prices/chainlink-feeds.js";

test("has a feed for every token of mainnet that is priced, except HOP", () => {
  const { contracts, chains } = getNetwork("mainnet");
  const aliases: Readonly<Record<string, string>> = { "USDC.e": "USDC", XDAI: "DAI" };
  const needed = [...contracts.keys(), ...[...chains.values()].map(({ nativeToken }) => nativeToken)];
  const symbols = new Set(needed.map((symbol) => (aliases[symbol] ?? symbol).toUpperCase()));
  const fed = new Set(FEED_CHAINS.flatMap(({ feeds }) => feeds.map(({ symbol }) => symbol)));
  expect([...symbols].filter((symbol) => !fed.has(symbol))).toEqual(["HOP"]);
  expect([...fed].filter((symbol) => !symbols.has(symbol))).toEqual([]);
});

test("has distinct addresses with valid checksums, and bases before what is quoted in them", () => {
  const addresses = FEED_CHAINS.flatMap(({ feeds, sequencerFeed = [] }) =>
    feeds.map(({ address }) => address).concat(sequencerFeed),
  );
  expect(new Set(addresses.map((address) => address.toLowerCase())).size).toBe(10);
  expect(addresses.filter((address) => !isAddress(address))).toEqual([]);
  for (const { feeds } of FEED_CHAINS) {
    const symbols = feeds.map(({ symbol }) => symbol);
    for (const [index, { quotedIn }] of feeds.entries()) {
      if (quotedIn !== undefined) expect(symbols.slice(0, index)).toContain(quotedIn);
    }
  }
});
