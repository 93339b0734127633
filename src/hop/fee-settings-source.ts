import { ServiceError } from "../errors.js";
import type { StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";
import { withTimeout } from "../resilience/with-timeout.js";
import { type FeeSettings, getBuiltInFeeSettings } from "./fee-settings.js";
import type { NetworkSlug } from "./networks.js";

export interface FeeSettingsSource {
  /**
   * Returns the settings for quotes.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the configured document has never been read. The built-in settings may
   * be outdated, and the fee would be wrong.
   */
  getCurrent(network: NetworkSlug): Promise<FeeSettings>;
  /** Returns what getCurrent() returns if it is cached; otherwise undefined. */
  peek(network: NetworkSlug): FeeSettings | undefined;
  /** Returns the settings for the list of routes; those built into the SDK while the document cannot be read. */
  getCurrentOrBuiltIn(network: NetworkSlug): Promise<FeeSettings>;
}

/** How long a list of routes waits for settings that have never been read. */
const FALLBACK_AFTER_MS = 1_000;

/** @param documents core config document of each network; undefined: the SDK's built-in settings. */
export function createFeeSettingsSource(
  documents: Readonly<Record<NetworkSlug, Pick<StaleWhileRevalidateCache<FeeSettings>, "get" | "peek">>> | undefined,
): FeeSettingsSource {
  const builtIn = { mainnet: getBuiltInFeeSettings("mainnet"), goerli: getBuiltInFeeSettings("goerli") };

  return {
    async getCurrent(network) {
      if (documents === undefined) return builtIn[network];
      try {
        return (await documents[network].get()).value;
      } catch (cause) {
        throw new ServiceError("UPSTREAM_UNAVAILABLE", "the fee settings cannot be read", { cause });
      }
    },
    peek: (network) => (documents === undefined ? builtIn[network] : documents[network].peek()?.value),
    async getCurrentOrBuiltIn(network) {
      if (documents === undefined) return builtIn[network];
      const settings = documents[network].get().then(({ value }) => value);
      return withTimeout(settings, FALLBACK_AFTER_MS, builtIn[network]);
    },
  };
}

/** Creates a source that always has the given settings, for every network. */
export function createFixedFeeSettings(settings: FeeSettings): FeeSettingsSource {
  return { getCurrent: async () => settings, peek: () => settings, getCurrentOrBuiltIn: async () => settings };
}
