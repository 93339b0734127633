import { Agent } from "undici";
import type { Config } from "../config/config.js";
import { messageOf } from "../errors.js";
import { type Attestations, createAttestations } from "../hop/cctp/attestation-client.js";
import { type FeeSettings, parseFeeSettings } from "../hop/fee-settings.js";
import { createFeeSettingsSource, type FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import { createTokenPrices, parsePriceDocument, priceHealth, type TokenPrices } from "../prices/token-prices.js";
import { steadyNow } from "../resilience/clock.js";
import { exchangeJson } from "../resilience/fetch-json.js";
import { createRemoteDocument, type RemoteDocument, type SourceHealth } from "../resilience/stale-while-revalidate.js";

/** What is read from elsewhere than the chains. */
export interface Upstreams {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  readonly attestations: Attestations | undefined;
  /** Reads in the background what the first quotes would otherwise have to wait for. */
  warmUp(): void;
  /** Reads in the background what has grown old of what mainnet's quotes need. */
  look(): void;
  /** How each source is; undefined: it is off. */
  health(): Readonly<
    Record<"settings_mainnet" | "settings_goerli" | "prices" | "attestations", SourceHealth | undefined>
  >;
  close(): Promise<void>;
}

const fetchMs = 3_000;
const maxDocumentBytes = 4 * 1024 * 1024;
/** How long a document is used before it is read again; the SDK takes one minute for settings, five for prices. */
const freshMs = 60_000;
/** How old a document may be that is used while it is read again. */
const staleMs = 5 * 60_000;
/** How long a source that failed is left alone. */
const retryMs = 1_000;

export function createUpstreams(config: Config, logger: Logger): Upstreams {
  const { assetsUrl, attestationApiUrl } = config;
  const dispatcher = new Agent({ maxResponseSize: maxDocumentBytes });
  const documents: RemoteDocument<unknown>[] = [];
  const closing = new AbortController();
  const fetchJson = (url: string, signal: AbortSignal): Promise<unknown> =>
    exchangeJson(url, { dispatcher, timeoutMs: fetchMs, maxBytes: maxDocumentBytes, signal });

  function document<T>(name: string, path: string, parse: (json: unknown) => T): RemoteDocument<T> {
    const created = createRemoteDocument({
      read: async (signal) => parse(await fetchJson(`${assetsUrl}${path}`, signal)),
      now: steadyNow,
      freshMs,
      staleMs,
      retryMs,
      onError: (error) => logger.warn({ source: name, problem: messageOf(error) }, "a source cannot be read"),
    });
    documents.push(created);
    return created;
  }

  const settingsOf = (network: NetworkSlug): RemoteDocument<FeeSettings> =>
    document(`settings ${network}`, `/${network}/v1-core-config.json`, (json) => parseFeeSettings(network, json));
  const settings =
    assetsUrl === undefined ? undefined : { mainnet: settingsOf("mainnet"), goerli: settingsOf("goerli") };
  const prices = assetsUrl === undefined ? undefined : document("prices", "/token-prices.json", parsePriceDocument);
  const attestations =
    attestationApiUrl === undefined
      ? undefined
      : createAttestations({
          baseUrl: attestationApiUrl,
          fetchJson: (url) => fetchJson(url, closing.signal),
          now: steadyNow,
        });

  return {
    settings: createFeeSettingsSource(settings),
    prices: createTokenPrices({ fixed: config.tokenPrices, document: prices, now: Date.now }),
    attestations,
    warmUp() {
      for (const each of documents) each.peek();
    },
    look() {
      settings?.mainnet.peek();
      prices?.peek();
    },
    health: () => ({
      settings_mainnet: settings?.mainnet.health(),
      settings_goerli: settings?.goerli.health(),
      prices: prices && priceHealth(prices, Date.now),
      attestations: attestations?.health(),
    }),
    async close() {
      closing.abort();
      for (const each of documents) each.close();
      await dispatcher.destroy();
    },
  };
}
