import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { type AttestationClient, attestationCodec, createAttestationClient } from "../hop/cctp/attestation-client.js";
import { type FeeSettings, parseFeeSettings } from "../hop/fee-settings.js";
import { createFeeSettingsSource, type FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import {
  createTokenPrices,
  getPriceSourceHealth,
  parsePriceDocument,
  priceDocumentCodec,
  type TokenPrices,
} from "../prices/token-prices.js";
import type { Clocks } from "../resilience/clock.js";
import { fetchJson } from "../resilience/http-client/fetch-json.js";
import { repeatWhileSilent } from "../resilience/http-client/repeat-while-silent.js";
import { Agent } from "../resilience/http-client/undici.js";
import {
  createStaleWhileRevalidateCache,
  type SourceHealth,
  type StaleWhileRevalidateCache,
} from "../resilience/stale-while-revalidate.js";
import type { SharedState } from "../shared-state/shared-state.js";
import { shareValues, type ValueCodec } from "../shared-state/shared-values.js";

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

export interface OffChainSourcesOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly clocks: Clocks;
  /** Other processes with which the documents are shared; undefined: there are none. */
  readonly sharedState: SharedState | undefined;
}

export function createOffChainSources({
  config,
  logger,
  clocks,
  sharedState,
}: OffChainSourcesOptions): OffChainSources {
  const { now, monotonicNow } = clocks;
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
    codec: ValueCodec<T>,
  ): StaleWhileRevalidateCache<T> {
    // Each document is a topic of its own and has one key.
    const peers = sharedState && shareValues(sharedState, name, codec, (): StaleWhileRevalidateCache<T> => cache)(name);
    const cache = createStaleWhileRevalidateCache({
      load: async (signal) => parse(await fetchDocument(`${assetsUrl}${path}`, signal)),
      now: monotonicNow,
      freshMs: FRESH_MS,
      staleMs: MAX_STALE_MS,
      errorTtlMs: ERROR_TTL_MS,
      onError: (error) => logger.warn({ source: name, error: getErrorMessage(error) }, "off-chain source failed"),
      peers,
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
    assetsUrl === undefined
      ? undefined
      : createDocumentCache("prices", "/token-prices.json", parsePriceDocument, priceDocumentCodec);
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
