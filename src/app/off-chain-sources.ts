import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { type AttestationClient, createAttestationClient } from "../hop/cctp/attestation-client.js";
import { type FeeSettings, parseFeeSettings } from "../hop/fee-settings.js";
import { createFeeSettingsSource, type FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import {
  createTokenPrices,
  getPriceSourceHealth,
  parsePriceDocument,
  type TokenPrices,
} from "../prices/token-prices.js";
import type { Clocks } from "../resilience/clock.js";
import { fetchJson } from "../resilience/fetch-json.js";
import { repeatWhileSilent } from "../resilience/repeat-while-silent.js";
import {
  createStaleWhileRevalidateCache,
  type SourceHealth,
  type StaleWhileRevalidateCache,
} from "../resilience/stale-while-revalidate.js";
import { Agent } from "../resilience/undici.js";

/** The data that does not come from a chain: fee settings, token prices and CCTP attestations. */
export interface OffChainSources {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  readonly attestations: AttestationClient | undefined;
  /** Loads in the background what the first quotes would otherwise wait for. */
  warmUp(): void;
  /** Refreshes the stale documents that mainnet quotes need, in the background. */
  refreshStale(): void;
  /** Returns the health of each source; undefined: the source is disabled. */
  health(): Readonly<
    Record<"settings_mainnet" | "settings_goerli" | "prices" | "attestations", SourceHealth | undefined>
  >;
  close(): Promise<void>;
}

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

export function createOffChainSources(config: Config, logger: Logger, { now, monotonicNow }: Clocks): OffChainSources {
  const { assetsUrl, attestationApiUrl } = config;
  const dispatcher = new Agent({ maxResponseSize: MAX_DOCUMENT_BYTES });
  const documents: StaleWhileRevalidateCache<unknown>[] = [];
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

  function createDocumentCache<T>(
    name: string,
    path: string,
    parse: (json: unknown) => T,
  ): StaleWhileRevalidateCache<T> {
    const cache = createStaleWhileRevalidateCache({
      load: async (signal) => parse(await fetchDocument(`${assetsUrl}${path}`, signal)),
      now: monotonicNow,
      freshMs: FRESH_MS,
      staleMs: MAX_STALE_MS,
      errorTtlMs: ERROR_TTL_MS,
      onError: (error) => logger.warn({ source: name, error: getErrorMessage(error) }, "off-chain source failed"),
    });
    documents.push(cache);
    return cache;
  }

  const createSettingsCache = (network: NetworkSlug): StaleWhileRevalidateCache<FeeSettings> =>
    createDocumentCache(`settings ${network}`, `/${network}/v1-core-config.json`, (json) =>
      parseFeeSettings(network, json),
    );
  const settings =
    assetsUrl === undefined
      ? undefined
      : { mainnet: createSettingsCache("mainnet"), goerli: createSettingsCache("goerli") };
  const prices =
    assetsUrl === undefined ? undefined : createDocumentCache("prices", "/token-prices.json", parsePriceDocument);
  const attestations =
    attestationApiUrl === undefined
      ? undefined
      : createAttestationClient({
          baseUrl: attestationApiUrl,
          fetchJson: (url) => fetchDocument(url, shutdown.signal),
          now: monotonicNow,
        });

  return {
    settings: createFeeSettingsSource(settings),
    prices: createTokenPrices({ fixedPricesUsd: config.tokenPrices, document: prices, now }),
    attestations,
    warmUp() {
      for (const document of documents) document.peek();
    },
    refreshStale() {
      settings?.mainnet.peek();
      prices?.peek();
    },
    health: () => ({
      settings_mainnet: settings?.mainnet.health(),
      settings_goerli: settings?.goerli.health(),
      prices: prices && getPriceSourceHealth(prices, now),
      attestations: attestations?.health(),
    }),
    async close() {
      shutdown.abort();
      for (const document of documents) document.close();
      await dispatcher.destroy();
    },
  };
}
