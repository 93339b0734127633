import { ServiceError } from "../errors.js";
import type { RemoteDocument } from "../resilience/stale-while-revalidate.js";
import { within } from "../resilience/with-timeout.js";
import { builtInFeeSettings, type FeeSettings } from "./fee-settings.js";
import type { NetworkSlug } from "./networks.js";

export interface FeeSettingsSource {
  /**
   * The settings to price with.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the configured document has never been read: a fee by other
   * settings than Hop's present ones would be a wrong number.
   */
  current(network: NetworkSlug): Promise<FeeSettings>;
  /** What current() would give without a wait; undefined where it would wait. */
  peek(network: NetworkSlug): FeeSettings | undefined;
  /** The settings to list routes by: those of the document, or the SDK's own while it cannot be read. */
  bestKnown(network: NetworkSlug): Promise<FeeSettings>;
}

/** How long a list of routes waits for settings that have never been read, in milliseconds. */
const patienceMs = 1_000;

/** @param documents the core config document of each network; undefined: the SDK's built-in settings. */
export function createFeeSettingsSource(
  documents: Readonly<Record<NetworkSlug, Pick<RemoteDocument<FeeSettings>, "get" | "peek">>> | undefined,
): FeeSettingsSource {
  const builtIn = { mainnet: builtInFeeSettings("mainnet"), goerli: builtInFeeSettings("goerli") };

  return {
    async current(network) {
      if (documents === undefined) return builtIn[network];
      try {
        return (await documents[network].get()).value;
      } catch (cause) {
        throw new ServiceError("UPSTREAM_UNAVAILABLE", "the fee settings cannot be read", { cause });
      }
    },
    peek: (network) => (documents === undefined ? builtIn[network] : documents[network].peek()?.value),
    async bestKnown(network) {
      if (documents === undefined) return builtIn[network];
      const reading = documents[network].get().then(({ value }) => value);
      return within(reading, patienceMs, builtIn[network]);
    },
  };
}
