import type { ChainClients } from "../../chain/chains.js";
import type { Config } from "../../config/config.js";
import { getErrorMessage } from "../../errors.js";
import {
  type AttestationClient,
  attestationCodec,
  createAttestationClient,
} from "../../hop/cctp/attestation-client.js";
import { type FeeSettings, parseFeeSettings } from "../../hop/fee-settings.js";
import { createFeeSettingsSource, type FeeSettingsSource } from "../../hop/fee-settings-source.js";
import type { NetworkSlug } from "../../hop/networks.js";
import type { RefusedFeed } from "../../observability/dependency-status.js";
import type { Logger } from "../../observability/log.js";
import { getPriceSourceHealth, parsePriceDocument, priceDocumentCodec } from "../../prices/price-document.js";
import { createPriceSource, type PriceSource } from "../../prices/price-source.js";
import { type ComparedTokenPrices, createTokenPrices } from "../../prices/token-prices.js";
import type { Clocks } from "../../resilience/clock.js";
import { fetchJson } from "../../resilience/http-client/fetch-json.js";
import { repeatWhileSilent } from "../../resilience/http-client/repeat-while-silent.js";
import { Agent } from "../../resilience/http-client/undici.js";
import {
  createStaleWhileRevalidateCache,
  type SourceHealth,
  type StaleWhileRevalidateCache,
  type StaleWhileRevalidateOptions,
} from "../../resilience/stale-while-revalidate.js";
import type { SharedState } from "../../shared-state/shared-state.js";
import { shareValues, type ValueCodec } from "../../shared-state/shared-values.js";
import { type ChainlinkSource, createChainlinkSources } from "./chainlink-sources.js";

/** The data that does not come from a chain: fee settings, token prices and CCTP attestations. */
export interface OffChainSources {
  readonly settings: FeeSettingsSource;
  readonly prices: ComparedTokenPrices;
  readonly attestations: AttestationClient | undefined;
  /** Loads in the background what the first quotes would otherwise wait for. */
  warmUp(): void;
  /** Refreshes the stale documents that mainnet quotes need, in the background. */
  refreshStale(): void;
  /** Returns the health of each source by name; undefined: the source is disabled. */
  health(): Readonly<Record<SourceName, SourceHealth | undefined>>;
  /** Returns the price feeds that the last reads refused. */
  listRefusedFeeds(): readonly RefusedFeed[];
  close(): Promise<void>;
}

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

export interface OffChainSourcesOptions {
  readonly config: Config;
  readonly chains: Pick<ChainClients, "forNetwork">;
  readonly logger: Logger;
  readonly clocks: Clocks;
  /** Other processes with which the documents are shared; undefined: there are none. */
  readonly sharedState: SharedState | undefined;
}

export function createOffChainSources({
  config,
  chains,
  logger,
  clocks,
  sharedState,
}: OffChainSourcesOptions): OffChainSources {
  const { now, monotonicNow } = clocks;
  const { assetsUrl, attestationApiUrl } = config;
  const dispatcher = new Agent({ maxResponseSize: MAX_DOCUMENT_BYTES });
  /** The documents that are loaded at the start. */
  const documents: Pick<StaleWhileRevalidateCache<unknown>, "peek">[] = [];
  const caches: Pick<StaleWhileRevalidateCache<unknown>, "close">[] = [];
  const shutdown = new AbortController();
  const fetchDocument = (url: string, signal: AbortSignal): Promise<unknown> =>
    repeatWhileSilent(
      (fetchSignal) => fetchJson(url, { dispatcher, maxBytes: MAX_DOCUMENT_BYTES, signal: fetchSignal }),
      {
        intervalMs: FETCH_REPEAT_MS,
        timeoutMs: FETCH_TIMEOUT_MS,
        signal,
      },
    );

  /** Creates a cache that is shared with other processes: each document is a topic of its own and has one key. */
  function createSharedCache<T>(
    name: string,
    codec: ValueCodec<T>,
    options: Pick<StaleWhileRevalidateOptions<T>, "load" | "freshMs" | "errorTtlMs">,
  ): StaleWhileRevalidateCache<T> {
    const peers = sharedState && shareValues(sharedState, name, codec, (): StaleWhileRevalidateCache<T> => cache)(name);
    const cache = createStaleWhileRevalidateCache({
      ...options,
      now: monotonicNow,
      staleMs: MAX_STALE_MS,
      onError: (error) => logger.warn({ source: name, error: getErrorMessage(error) }, "off-chain source failed"),
      peers,
    });
    caches.push(cache);
    return cache;
  }

  function createDocumentCache<T>(
    name: string,
    path: string,
    parse: (json: unknown) => T,
    codec: ValueCodec<T>,
  ): StaleWhileRevalidateCache<T> {
    const cache = createSharedCache(name, codec, {
      load: async (signal) => parse(await fetchDocument(`${assetsUrl}${path}`, signal)),
      freshMs: FRESH_MS,
      errorTtlMs: ERROR_TTL_MS,
    });
    documents.push(cache);
    return cache;
  }

  function createSettingsCache(network: NetworkSlug): StaleWhileRevalidateCache<FeeSettings> {
    const parse = (json: unknown): FeeSettings => parseFeeSettings(network, json);
    const codec = { encode: (value: FeeSettings) => value, decode: parse };
    return createDocumentCache(`settings ${network}`, `/${network}/v1-core-config.json`, parse, codec);
  }
  const settings =
    assetsUrl === undefined
      ? undefined
      : { mainnet: createSettingsCache("mainnet"), goerli: createSettingsCache("goerli") };
  const prices =
    assetsUrl === undefined || !config.priceSources.includes("assets")
      ? undefined
      : createDocumentCache("prices", "/token-prices.json", parsePriceDocument, priceDocumentCodec);
  const chainlinkSources = config.priceSources.includes("chainlink")
    ? createChainlinkSources({ chains: chains.forNetwork("mainnet"), clocks, logger, createCache: createSharedCache })
    : [];

  /** Lists the sources of prices in order of preference. */
  function listPriceSources(): readonly PriceSource[] {
    const assetsSources = prices ? [createPriceSource({ name: "ASSETS", cache: prices, ...clocks })] : [];
    const byName = { assets: assetsSources, chainlink: chainlinkSources.map(({ source }) => source) };
    return config.priceSources.flatMap((name) => byName[name]);
  }
  const getChainlinkHealth = (slug: ChainlinkSource["slug"]): SourceHealth | undefined =>
    chainlinkSources.find((chainlink) => chainlink.slug === slug)?.health();

  const attestations =
    attestationApiUrl === undefined
      ? undefined
      : createAttestationClient({
          baseUrl: attestationApiUrl,
          fetchJson: (url) => fetchDocument(url, shutdown.signal),
          now: monotonicNow,
          share: sharedState && ((findCache) => shareValues(sharedState, "attestations", attestationCodec, findCache)),
        });

  return {
    settings: createFeeSettingsSource(settings),
    prices: createTokenPrices({
      fixedPricesUsd: config.tokenPrices,
      sources: listPriceSources(),
      now,
      onDistrust: ({ isDistrusted, ...event }) =>
        logger.warn(event, isDistrusted ? "price jumped in one source only: not believed" : "price is believed again"),
    }),
    attestations,
    warmUp() {
      for (const document of documents) document.peek();
    },
    refreshStale() {
      settings?.mainnet.peek();
      prices?.peek();
      // A failure would otherwise be reported until the next quote.
      for (const { source, health } of chainlinkSources) if (health().state === "failing") source.refreshInBackground();
    },
    health: () => ({
      settings_mainnet: settings?.mainnet.health(),
      settings_goerli: settings?.goerli.health(),
      prices: prices && getPriceSourceHealth(prices, now),
      chainlink_ethereum: getChainlinkHealth("ethereum"),
      chainlink_arbitrum: getChainlinkHealth("arbitrum"),
      attestations: attestations?.health(),
    }),
    listRefusedFeeds: () => chainlinkSources.flatMap((chainlink) => chainlink.listRefused()),
    async close() {
      shutdown.abort();
      for (const cache of caches) cache.close();
      await dispatcher.destroy();
    },
  };
}
