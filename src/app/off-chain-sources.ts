import { Agent } from "undici";
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
import { monotonicNow } from "../resilience/clock.js";
import { fetchJson } from "../resilience/fetch-json.js";
import {
  createStaleWhileRevalidateCache,
  type SourceHealth,
  type StaleWhileRevalidateCache,
} from "../resilience/stale-while-revalidate.js";

/** What is read from elsewhere than the chains. */
export interface OffChainSources {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  readonly attestations: AttestationClient | undefined;
  /** Reads in the background what the first quotes would otherwise have to wait for. */
  warmUp(): void;
  /** Reads in the background what has grown old of what mainnet's quotes need. */
  refreshStale(): void;
  /** How each source is; undefined: it is off. */
  health(): Readonly<
    Record<"settings_mainnet" | "settings_goerli" | "prices" | "attestations", SourceHealth | undefined>
  >;
  close(): Promise<void>;
}

const FETCH_TIMEOUT_MS = 3_000;
const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
/** How long a document is used before it is read again; the SDK takes one minute for settings, five for prices. */
const FRESH_MS = 60_000;
/** How old a document may be that is used while it is read again. */
const MAX_STALE_MS = 5 * 60_000;
/** How long a source that failed is left alone. */
const ERROR_TTL_MS = 1_000;

export function createOffChainSources(config: Config, logger: Logger): OffChainSources {
  const { assetsUrl, attestationApiUrl } = config;
  const dispatcher = new Agent({ maxResponseSize: MAX_DOCUMENT_BYTES });
  const documents: StaleWhileRevalidateCache<unknown>[] = [];
  const closing = new AbortController();
  const fetchDocument = (url: string, signal: AbortSignal): Promise<unknown> =>
    fetchJson(url, { dispatcher, timeoutMs: FETCH_TIMEOUT_MS, maxBytes: MAX_DOCUMENT_BYTES, signal });

  function document<T>(name: string, path: string, parse: (json: unknown) => T): StaleWhileRevalidateCache<T> {
    const created = createStaleWhileRevalidateCache({
      load: async (signal) => parse(await fetchDocument(`${assetsUrl}${path}`, signal)),
      now: monotonicNow,
      freshMs: FRESH_MS,
      staleMs: MAX_STALE_MS,
      errorTtlMs: ERROR_TTL_MS,
      onError: (error) => logger.warn({ source: name, error: getErrorMessage(error) }, "a source cannot be read"),
    });
    documents.push(created);
    return created;
  }

  const settingsOf = (network: NetworkSlug): StaleWhileRevalidateCache<FeeSettings> =>
    document(`settings ${network}`, `/${network}/v1-core-config.json`, (json) => parseFeeSettings(network, json));
  const settings =
    assetsUrl === undefined ? undefined : { mainnet: settingsOf("mainnet"), goerli: settingsOf("goerli") };
  const prices = assetsUrl === undefined ? undefined : document("prices", "/token-prices.json", parsePriceDocument);
  const attestations =
    attestationApiUrl === undefined
      ? undefined
      : createAttestationClient({
          baseUrl: attestationApiUrl,
          fetchJson: (url) => fetchDocument(url, closing.signal),
          now: monotonicNow,
        });

  return {
    settings: createFeeSettingsSource(settings),
    prices: createTokenPrices({ fixedPricesUsd: config.tokenPrices, document: prices, now: Date.now }),
    attestations,
    warmUp() {
      for (const each of documents) each.peek();
    },
    refreshStale() {
      settings?.mainnet.peek();
      prices?.peek();
    },
    health: () => ({
      settings_mainnet: settings?.mainnet.health(),
      settings_goerli: settings?.goerli.health(),
      prices: prices && getPriceSourceHealth(prices, Date.now),
      attestations: attestations?.health(),
    }),
    async close() {
      closing.abort();
      for (const each of documents) each.close();
      await dispatcher.destroy();
    },
  };
}
