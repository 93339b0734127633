import { FEED_CHAINS, getFeedDecimals } from "../../src/prices/chainlink-feeds.js";
import { PRICES_USD } from "../assets-server.js";
import type { ContractPlacement } from "./contract-placement.js";

/** Prices by upper-case symbol. */
const pricesUsd = new Map(Object.entries(PRICES_USD).map(([symbol, usd]) => [symbol.toUpperCase(), usd]));

/** Returns the placements of Chainlink's feeds on a chain, with the prices of the local assets server. */
export function placePriceFeeds(slug: string): readonly ContractPlacement[] {
  const feedChain = FEED_CHAINS.find((candidate) => candidate.slug === slug);
  if (feedChain === undefined) return [];
  const { feeds, sequencerFeed } = feedChain;
  const prices = feeds.map((feed) => {
    const { symbol, address, quotedIn } = feed;
    const price = getPrice(symbol) / (quotedIn === undefined ? 1 : getPrice(quotedIn));
    const decimals = getFeedDecimals(feed);
    return placeFeed(address, decimals, toAnswer(price, decimals));
  });
  // The answer 0 means that the sequencer is up.
  return sequencerFeed === undefined ? prices : [...prices, placeFeed(sequencerFeed, 0, 0n)];
}

function placeFeed(address: string, decimals: number, answer: bigint): ContractPlacement {
  return { contract: "PriceFeed", address, initializer: { method: "initialize", values: [decimals, answer] } };
}

function toAnswer(price: number, decimals: number): bigint {
  return BigInt(Math.round(price * 1e8)) * 10n ** BigInt(decimals - 8);
}

function getPrice(symbol: string): number {
  const price = pricesUsd.get(symbol);
  if (price === undefined) throw new Error(`no local price for ${symbol}`);
  return price;
}
