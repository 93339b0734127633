import type { NetworkChainClients } from "../../chain/chains.js";
import { getNetwork } from "../../hop/networks.js";
import type { RefusedFeed } from "../../observability/dependency-status.js";
import type { Logger } from "../../observability/log.js";
import { FEED_CHAINS, type FeedChain } from "../../prices/chainlink/feeds.js";
import { type FeedReading, readFeeds } from "../../prices/chainlink/read-feeds.js";
import { type PriceDocument, priceDocumentCodec } from "../../prices/price-document.js";
import { createPriceSource, type PriceSource } from "../../prices/price-source.js";
import type { Clocks } from "../../resilience/clock.js";
import type {
  SourceHealth,
  StaleWhileRevalidateCache,
  StaleWhileRevalidateOptions,
} from "../../resilience/stale-while-revalidate.js";
import type { ValueCodec } from "../../shared-state/shared-values.js";

/** The price feeds of one chain as a source of prices. */
export interface ChainlinkSource {
  readonly slug: FeedChain["slug"];
  readonly source: PriceSource;
  health(): SourceHealth;
  /** Returns the feeds that the last read of this process refused. */
  listRefused(): readonly RefusedFeed[];
}

export interface ChainlinkSourcesOptions {
  /** The chains of mainnet. */
  readonly chains: NetworkChainClients;
  readonly clocks: Clocks;
  readonly logger: Logger;
  readonly createCache: (
    name: string,
    codec: ValueCodec<PriceDocument>,
    options: Pick<StaleWhileRevalidateOptions<PriceDocument>, "load" | "freshMs" | "errorTtlMs">,
  ) => StaleWhileRevalidateCache<PriceDocument>;
}

/** Less than the interval of background reads, so that each of them reads. */
const FRESH_MS = 55_000;
const ERROR_TTL_MS = 2_000;

export function createChainlinkSources(options: ChainlinkSourcesOptions): readonly ChainlinkSource[] {
  return FEED_CHAINS.map((feedChain) => createChainlinkSource(feedChain, options));
}

function createChainlinkSource(
  feedChain: FeedChain,
  { chains, clocks, logger, createCache }: ChainlinkSourcesOptions,
): ChainlinkSource {
  const { slug, feeds } = feedChain;
  const multicallAddress = getNetwork("mainnet").chains.get(slug)?.multicallAddress;
  let refusals: FeedReading["refusals"] = new Map();

  async function load(signal: AbortSignal): Promise<PriceDocument> {
    const client = chains.getClient(slug);
    const reading = await readFeeds({ client, multicallAddress, feedChain, now: clocks.now }, signal);
    for (const [token, reason] of reading.refusals) {
      if (refusals.get(token) !== reason) logger.warn({ chain: slug, token, reason }, "price feed refused");
    }
    refusals = reading.refusals;
    return reading;
  }

  const cache = createCache(`feeds ${slug}`, priceDocumentCodec, {
    load,
    freshMs: FRESH_MS,
    errorTtlMs: ERROR_TTL_MS,
  });
  const symbols = new Set(feeds.map(({ symbol }) => symbol));
  return {
    slug,
    source: createPriceSource({ name: "CHAINLINK", symbols, cache, ...clocks }),
    // By the last read, however long ago: the feeds are only read while somebody needs prices.
    health: cache.health,
    listRefused: () => [...refusals].map(([token, reason]) => ({ token, reason })),
  };
}
