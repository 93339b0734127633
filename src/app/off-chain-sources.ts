import type { ChainClients } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { AttestationClient } from "../hop/attestation-client.js";
import { type FeeSettings, FeeSettingsSource, parseFeeSettings } from "../hop/fee-settings.js";
import { getNetwork, type NetworkSlug } from "../hop/networks.js";
import type { DependencyStatus } from "../observability/dependency-status.js";
import type { Logger } from "../observability/log.js";
import { FEED_CHAINS, type FeedChain } from "../prices/chainlink-feeds.js";
import {
  getFeedsHealth,
  getPriceSourceHealth,
  type PriceDocument,
  PriceSource,
  parsePriceDocument,
} from "../prices/price-source.js";
import { type FeedReading, readFeeds } from "../prices/read-chainlink-feeds.js";
import { ComparedTokenPrices } from "../prices/token-prices.js";
import type { Clocks } from "../resilience/clock.js";
import { fetchJson } from "../resilience/http-client/fetch-json.js";
import { repeatWhileSilent } from "../resilience/http-client/repeat-while-silent.js";
import { Agent } from "../resilience/http-client/undici.js";
import {
  type SourceHealth,
  StaleWhileRevalidateCache,
  type StaleWhileRevalidateOptions,
} from "../resilience/stale-while-revalidate.js";
import { type SharedCache, shareDocument } from "../shared-state/shared-cache.js";

type SourceName =
  | "settings_mainnet"
  | "settings_goerli"
  | "prices"
  | "chainlink_ethereum"
  | "chainlink_arbitrum"
  | "attestations";

const FETCH_TIMEOUT_MS = 8_000;
/** A fetch that takes longer is repeated beside the first: its connection may be dead. */
const FETCH_REPEAT_MS = 3_000;
const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
/** A document is refreshed after this time. The SDK caches settings for one minute and prices for five. */
const FRESH_MS = 60_000;
/** A stale document is served up to this age while it is refreshed. */
const MAX_STALE_MS = 5 * 60_000;
/** No new attempt is made for this long after a failure. */
const ERROR_TTL_MS = 1_000;
/** Of price feeds: less than the interval of background reads, so that each of them reads. */
const FEEDS_FRESH_MS = 55_000;
const FEEDS_ERROR_TTL_MS = 2_000;

/** The price feeds of one chain as a source of prices. */
interface ChainlinkSource {
  readonly slug: FeedChain["slug"];
  readonly source: PriceSource;
  readonly cache: StaleWhileRevalidateCache<PriceDocument>;
  /** Returns the feeds that the last read of this process refused. */
  listRefused(): DependencyStatus["prices"]["refusedFeeds"];
}

/** The data that does not come from a chain: fee settings, token prices and CCTP attestations. */
export class OffChainSources {
  readonly settings: FeeSettingsSource;
  readonly prices: ComparedTokenPrices;
  readonly attestations: AttestationClient | undefined;
  readonly #options;
  readonly #dispatcher = new Agent({ maxResponseSize: MAX_DOCUMENT_BYTES });
  readonly #shutdown = new AbortController();
  readonly #caches: Pick<StaleWhileRevalidateCache<unknown>, "close">[] = [];
  readonly #settings: Readonly<Record<NetworkSlug, StaleWhileRevalidateCache<FeeSettings>>> | undefined;
  readonly #prices: StaleWhileRevalidateCache<PriceDocument> | undefined;
  readonly #chainlinkSources: readonly ChainlinkSource[];

  constructor(options: {
    readonly config: Config;
    readonly chains: Pick<ChainClients, "forNetwork">;
    readonly logger: Logger;
    readonly clocks: Clocks;
    /** undefined: this process shares no documents. */
    readonly sharedCache: SharedCache | undefined;
  }) {
    const { config, logger } = options;
    const { assetsUrl, attestationApiUrl, priceSources } = config;
    this.#options = options;
    if (assetsUrl !== undefined) {
      const createCache = (network: NetworkSlug) => {
        const url = `${assetsUrl}/${network}/v1-core-config.json`;
        return this.#createDocumentCache(`settings ${network}`, url, (json) => parseFeeSettings(network, json));
      };
      this.#settings = { mainnet: createCache("mainnet"), goerli: createCache("goerli") };
      if (priceSources.includes("assets")) {
        const url = `${assetsUrl}/token-prices.json`;
        this.#prices = this.#createDocumentCache("prices", url, parsePriceDocument);
      }
    }
    this.#chainlinkSources = priceSources.includes("chainlink")
      ? FEED_CHAINS.map((feedChain) => this.#createChainlinkSource(feedChain))
      : [];
    this.settings = new FeeSettingsSource(this.#settings);
    this.prices = new ComparedTokenPrices({
      fixedPricesUsd: config.tokenPrices,
      sources: this.#listPriceSources(),
      onDistrust: ({ isDistrusted, ...event }) =>
        logger.warn(event, isDistrusted ? "price jumped in one source: not believed" : "price is believed again"),
    });
    this.attestations = attestationApiUrl === undefined ? undefined : this.#createAttestationClient(attestationApiUrl);
  }

  /** Loads in the background what the first quotes would otherwise wait for. */
  warmUp(): void {
    this.#settings?.mainnet.peek();
    this.#settings?.goerli.peek();
    this.#prices?.peek();
  }

  /** Loads every document but attestations, also those that nobody needs yet. Never rejects: `health` tells what failed. */
  async loadAll(): Promise<void> {
    const feeds = this.#chainlinkSources.map(({ cache }) => cache);
    const documents = [this.#settings?.mainnet, this.#settings?.goerli, this.#prices, ...feeds];
    await Promise.allSettled(documents.map((document) => document?.get()));
  }

  /** Refreshes the stale documents that mainnet quotes need, in the background. */
  refreshStale(): void {
    this.#settings?.mainnet.peek();
    this.#prices?.peek();
    // A failure would otherwise be reported until the next quote.
    for (const { source, cache } of this.#chainlinkSources)
      if (cache.health().state === "failing") source.refreshInBackground();
  }

  /** Returns the health of each source by name; undefined: the source is disabled. */
  health(): Readonly<Record<SourceName, SourceHealth | undefined>> {
    const getHealth = (slug: FeedChain["slug"]): SourceHealth | undefined => {
      const feeds = this.#chainlinkSources.find((chainlink) => chainlink.slug === slug)?.cache;
      return feeds && getFeedsHealth(feeds, this.#options.clocks);
    };
    return {
      settings_mainnet: this.#settings?.mainnet.health(),
      settings_goerli: this.#settings?.goerli.health(),
      prices: this.#prices && getPriceSourceHealth(this.#prices, this.#options.clocks.now),
      chainlink_ethereum: getHealth("ethereum"),
      chainlink_arbitrum: getHealth("arbitrum"),
      attestations: this.attestations?.health(),
    };
  }

  /** Returns the price feeds that the last reads refused. */
  listRefusedFeeds(): DependencyStatus["prices"]["refusedFeeds"] {
    return this.#chainlinkSources.flatMap((chainlink) => chainlink.listRefused());
  }

  async close(): Promise<void> {
    this.#shutdown.abort();
    for (const cache of this.#caches) cache.close();
    await this.#dispatcher.destroy();
  }

  #fetchDocument(url: string, signal: AbortSignal): Promise<unknown> {
    const dispatcher = this.#dispatcher;
    return repeatWhileSilent(
      (fetchSignal) => fetchJson(url, { dispatcher, maxBytes: MAX_DOCUMENT_BYTES, signal: fetchSignal }),
      { intervalMs: FETCH_REPEAT_MS, timeoutMs: FETCH_TIMEOUT_MS, signal },
    );
  }

  /** Creates a cache whose document one process loads for all. */
  #createSharedCache<T>(
    name: string,
    options: Pick<StaleWhileRevalidateOptions<T>, "load" | "freshMs" | "errorTtlMs">,
  ): StaleWhileRevalidateCache<T> {
    const { logger, sharedCache, clocks } = this.#options;
    const now = clocks.monotonicNow;
    const cache = new StaleWhileRevalidateCache({
      ...options,
      now,
      staleMs: MAX_STALE_MS,
      onError: (error) => logger.warn({ source: name, error: getErrorMessage(error) }, "off-chain source failed"),
      share: sharedCache && shareDocument(sharedCache, name, { ttlMs: options.freshMs, now }),
    });
    this.#caches.push(cache);
    return cache;
  }

  #createDocumentCache<T>(name: string, url: string, parse: (json: unknown) => T): StaleWhileRevalidateCache<T> {
    const load = async (signal: AbortSignal): Promise<T> => parse(await this.#fetchDocument(url, signal));
    return this.#createSharedCache(name, { load, freshMs: FRESH_MS, errorTtlMs: ERROR_TTL_MS });
  }

  #createChainlinkSource(feedChain: FeedChain): ChainlinkSource {
    const { chains, clocks, logger } = this.#options;
    const { slug, feeds } = feedChain;
    const multicallAddress = getNetwork("mainnet").chains.get(slug)?.multicallAddress;
    let refusals: FeedReading["refusals"] = new Map();
    const load = async (signal: AbortSignal): Promise<PriceDocument> => {
      const client = chains.forNetwork("mainnet").getClient(slug);
      const reading = await readFeeds({ client, multicallAddress, feedChain }, signal);
      for (const [token, reason] of reading.refusals) {
        if (refusals.get(token) !== reason) logger.warn({ chain: slug, token, reason }, "price feed refused");
      }
      refusals = reading.refusals;
      if (reading.prices.size === 0)
        throw new Error(`no feed of ${slug} gives a price (${[...new Set(refusals.values())].join(", ")})`);
      return reading;
    };
    const timing = { freshMs: FEEDS_FRESH_MS, errorTtlMs: FEEDS_ERROR_TTL_MS };
    const cache = this.#createSharedCache(`feeds ${slug}`, { load, ...timing });
    const symbols = new Set(feeds.map(({ symbol }) => symbol));
    return {
      slug,
      source: new PriceSource({ name: "CHAINLINK", symbols, cache, ...clocks }),
      cache,
      listRefused: () => [...refusals].map(([token, reason]) => ({ token, reason })),
    };
  }

  /** Lists the sources of prices in order of preference. */
  #listPriceSources(): readonly PriceSource[] {
    const { config, clocks } = this.#options;
    const assetsSources = this.#prices ? [new PriceSource({ name: "ASSETS", cache: this.#prices, ...clocks })] : [];
    const byName = { assets: assetsSources, chainlink: this.#chainlinkSources.map(({ source }) => source) };
    return config.priceSources.flatMap((name) => byName[name]);
  }

  #createAttestationClient(baseUrl: string): AttestationClient {
    const { sharedCache, clocks } = this.#options;
    const now = clocks.monotonicNow;
    return new AttestationClient({
      baseUrl,
      fetchJson: (url) => this.#fetchDocument(url, this.#shutdown.signal),
      now,
      share: sharedCache && ((hash, ttlMs) => shareDocument(sharedCache, `attestation ${hash}`, { ttlMs, now })),
    });
  }
}
