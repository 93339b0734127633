import { ServiceError } from "../errors.js";
import type { StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";
import { withTimeout } from "../resilience/with-timeout.js";
import { type FeeSettings, getBuiltInFeeSettings } from "./fee-settings.js";
import type { NetworkSlug } from "./networks.js";

export interface FeeSettingsSource {
  /**
   * The settings to price with.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the configured document has never been read: a fee by other
   * settings than Hop's present ones would be a wrong number.
   */
  getCurrent(network: NetworkSlug): Promise<FeeSettings>;
  /** What current() would give without a wait; undefined where it would wait. */
  peek(network: NetworkSlug): FeeSettings | undefined;
  /** The settings to list routes by: those of the document, or the SDK's own while it cannot be read. */
  getCurrentOrBuiltIn(network: NetworkSlug): Promise<FeeSettings>;
}

/** How long a list of routes waits for settings that have never been read, in milliseconds. */
const FALLBACK_AFTER_MS = 1_000;

/** @param documents the core config document of each network; undefined: the SDK's built-in settings. */
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
      const reading = documents[network].get().then(({ value }) => value);
      return withTimeout(reading, FALLBACK_AFTER_MS, builtIn[network]);
    },
  };
}
