/** A Chainlink price feed. */
export interface PriceFeed {
  /** Upper-case symbol of the token. */
  readonly symbol: string;
  /** Address of the proxy, which stays when the aggregator behind it changes. */
  readonly address: string;
  /** Longest time between two updates. */
  readonly heartbeatSeconds: number;
  /** Symbol of the token whose price the answer is multiplied by, from a feed before this one; absent: US dollars. */
  readonly quotedIn?: string;
}

/** The feeds that are read on one chain. */
export interface FeedChain {
  readonly slug: "ethereum" | "arbitrum";
  readonly feeds: readonly PriceFeed[];
  /** Address of the feed that says whether the chain's sequencer is up; absent: the chain has no sequencer. */
  readonly sequencerFeed?: string;
}

/** Returns the decimals of the answers of a feed, by Chainlink's convention; one that reports others is refused. */
export function getFeedDecimals({ quotedIn }: PriceFeed): number {
  return quotedIn === undefined ? 8 : 18;
}

const HOUR_SECONDS = 3600;
const DAY_SECONDS = 24 * HOUR_SECONDS;

/**
 * The feeds of mainnet, from https://docs.chain.link/data-feeds/price-feeds/addresses and, for the sequencer,
 * https://docs.chain.link/data-feeds/l2-sequencer-feeds. Each address was compared with at least two independent public
 * repositories that use it, such as Aave's configuration of the Ethereum market (DAI, SUSD, USDC, USDT), Gearbox's table of
 * price feeds (DAI, SUSD, SNX, with the heartbeats) and its users of the rETH and MAGIC feeds.
 *
 * xDAI has the price of DAI. HOP has no feed: TOKEN_PRICES or another source prices it. Each token has one feed: on the chain
 * where it is updated most often, or the only one that has it.
 */
export const FEED_CHAINS: readonly FeedChain[] = [
  {
    slug: "ethereum",
    feeds: [
      { symbol: "ETH", address: "0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419", heartbeatSeconds: HOUR_SECONDS },
      // POL replaced MATIC one to one; the proxy of MATIC/USD stayed.
      { symbol: "MATIC", address: "0x7bAC85A8a13A4BcD8abb3eB7d6b4d632c5a57676", heartbeatSeconds: HOUR_SECONDS },
      { symbol: "DAI", address: "0xAed0c38402a5d19df6E4c03F4E2DceD6e29c1ee9", heartbeatSeconds: HOUR_SECONDS },
      { symbol: "USDC", address: "0x8fFfFfd4AfB6115b954Bd326cbe7B4BA576818f6", heartbeatSeconds: DAY_SECONDS },
      { symbol: "USDT", address: "0x3E7d1eAB13ad0104d2750B8863b489D65364e32D", heartbeatSeconds: DAY_SECONDS },
      { symbol: "SNX", address: "0xDC3EA94CD0AC27d9A86C180091e7f78C683d3699", heartbeatSeconds: DAY_SECONDS },
      { symbol: "SUSD", address: "0xad35Bd71b9aFE6e4bDc266B345c198eaDEf9Ad94", heartbeatSeconds: DAY_SECONDS },
      {
        symbol: "RETH",
        address: "0x536218f9E9Eb48863970252233c8F271f554C2d0",
        heartbeatSeconds: DAY_SECONDS,
        quotedIn: "ETH",
      },
    ],
  },
  {
    slug: "arbitrum",
    sequencerFeed: "0xFdB631F5EE196F0ed6FAa767959853A9F217697D",
    feeds: [{ symbol: "MAGIC", address: "0x47E55cCec6582838E173f252D08Afd8116c2202d", heartbeatSeconds: DAY_SECONDS }],
  },
];
