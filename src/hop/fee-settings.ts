import { sdkConfig } from "../../gen/hop/sdk-config.js";
import { ServiceError } from "../errors.js";
import { withTimeoutOrFallback } from "../resilience/abort-scope.js";
import { describeUpstreamFailure } from "../resilience/http-client/upstream-error.js";
import type { StaleWhileRevalidateCache } from "../resilience/stale-while-revalidate.js";
import type { NetworkSlug } from "./networks.js";

type ByToken<T> = Readonly<Record<string, T>>;
type ByChain<T> = Readonly<Record<string, T>>;

/** Hop's fees and bonders: the SDK's built-in values, or those of the core config document. */
export interface FeeSettings {
  /** Bonder by token, source chain and destination chain. */
  readonly bonders: ByToken<ByChain<ByChain<string>>>;
  /** Relative bonder fee in hundredths of a percent, by token and destination chain. */
  readonly bonderFeeBps: ByToken<ByChain<number>>;
  /** Factor on the destination transaction's cost on some chains. */
  readonly destinationFeeGasPriceMultiplier: number;
  /** Whether a relayer is paid for a transfer from ethereum, by destination chain. */
  readonly relayerFeeEnabled: ByChain<boolean>;
  /** Fixed relayer fee in wei, by destination chain. */
  readonly relayerFeeWei: ByChain<string>;
  /** Tokens whose bridge no longer accepts transfers from ethereum. */
  readonly bridgeDeprecated: ByToken<boolean>;
}

type Validator = (value: unknown) => boolean;

const isRecordOf =
  (check: Validator): Validator =>
  (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(check);
const isBps: Validator = (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 10_000;
const isBoolean: Validator = (value) => typeof value === "boolean";
const isWei: Validator = (value) => typeof value === "string" && /^[0-9]{1,30}$/.test(value);
/** Allows spaces around an address: the SDK's bonder of DAI from ethereum to optimism ends in one. */
const isPaddedAddress: Validator = (value) => typeof value === "string" && /^\s*0x[0-9a-f]{40}\s*$/i.test(value);
const isMultiplier: Validator = (value) => typeof value === "number" && value >= 0 && value < 1_000;

/** Validates each setting before it reaches the arithmetic. */
const SETTING_VALIDATORS: Readonly<Record<keyof FeeSettings, Validator>> = {
  bonders: isRecordOf(isRecordOf(isRecordOf(isPaddedAddress))),
  bonderFeeBps: isRecordOf(isRecordOf(isBps)),
  destinationFeeGasPriceMultiplier: isMultiplier,
  relayerFeeEnabled: isRecordOf(isBoolean),
  relayerFeeWei: isRecordOf(isWei),
  bridgeDeprecated: isRecordOf(isBoolean),
};

/** Returns the settings that are built into the SDK. */
export function getBuiltInFeeSettings(network: NetworkSlug): FeeSettings {
  return withUsdcDefaults(pickSettings(sdkConfig[network].settings) as unknown as FeeSettings);
}

/**
 * Parses a core config document. Like in the SDK, settings that it omits keep their built-in values.
 * @throws TypeError when the document is not an object or a setting is invalid.
 */
export function parseFeeSettings(network: NetworkSlug, document: unknown): FeeSettings {
  const builtIn = getBuiltInFeeSettings(network);
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw new TypeError("the core config is not an object");
  const overrides = pickSettings(document as Record<string, unknown>);
  for (const [name, value] of Object.entries(overrides)) {
    if (!SETTING_VALIDATORS[name as keyof FeeSettings](value)) throw new TypeError(`core config: ${name} is invalid`);
  }
  return withUsdcDefaults({ ...builtIn, ...overrides } as FeeSettings);
}

function pickSettings(source: Record<string, unknown>): Record<string, unknown> {
  // The SDK only takes over truthy settings: null, 0 and absent ones keep the built-in value.
  return Object.fromEntries(
    Object.keys(SETTING_VALIDATORS).flatMap((name) => (source[name] ? [[name, source[name]]] : [])),
  );
}

/** Copies the settings of USDC to USDC.e where it has none. */
function withUsdcDefaults(settings: FeeSettings): FeeSettings {
  return {
    ...settings,
    bonders: copyUsdcToBridgedUsdc(settings.bonders),
    bonderFeeBps: copyUsdcToBridgedUsdc(settings.bonderFeeBps),
  };
}

function copyUsdcToBridgedUsdc<T>(byToken: ByToken<T>): ByToken<T> {
  return byToken.USDC && !byToken["USDC.e"] ? { ...byToken, "USDC.e": byToken.USDC } : byToken;
}

/** How long a list of routes waits for settings that have never been read. */
const FALLBACK_AFTER_MS = 1_000;

type SettingsDocument = Pick<StaleWhileRevalidateCache<FeeSettings>, "get" | "peek">;

const createFixedDocument = (value: FeeSettings): SettingsDocument => {
  return { get: async () => ({ value, readAt: 0 }), peek: () => ({ value, readAt: 0 }) };
};

/** Serves the current settings. */
export class FeeSettingsSource {
  readonly #documents: Readonly<Record<NetworkSlug, SettingsDocument>>;
  readonly #builtIn = { mainnet: getBuiltInFeeSettings("mainnet"), goerli: getBuiltInFeeSettings("goerli") };

  /** @param documents core config document of each network; undefined: the SDK's built-in settings */
  constructor(documents: Readonly<Record<NetworkSlug, SettingsDocument>> | undefined) {
    this.#documents = documents ?? {
      mainnet: createFixedDocument(this.#builtIn.mainnet),
      goerli: createFixedDocument(this.#builtIn.goerli),
    };
  }

  /** Creates a source that always has the given settings, for every network. */
  static of(settings: FeeSettings): FeeSettingsSource {
    const document = createFixedDocument(settings);
    return new FeeSettingsSource({ mainnet: document, goerli: document });
  }

  /**
   * Returns the settings for quotes.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the configured document has never been read. The built-in settings may
   * be outdated, and the fee would be wrong.
   */
  async getCurrent(network: NetworkSlug): Promise<FeeSettings> {
    try {
      return (await this.#documents[network].get()).value;
    } catch (cause) {
      const failure = describeUpstreamFailure(cause) ?? "invalid";
      const source = `the fee settings of ${network} cannot be read from Hop's document: ${failure}`;
      const remedy =
        "whoever runs this server can correct ASSETS_URL, or set ASSETS_URL=off to use those built into the SDK";
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `${source}; ${remedy}`, { cause });
    }
  }

  /** Returns what getCurrent() returns if it is cached; otherwise undefined. */
  peek(network: NetworkSlug): FeeSettings | undefined {
    return this.#documents[network].peek()?.value;
  }

  /** Returns the settings for the list of routes; those built into the SDK while the document cannot be read. */
  async getCurrentOrBuiltIn(network: NetworkSlug): Promise<FeeSettings> {
    const settings = this.#documents[network].get().then(({ value }) => value);
    return withTimeoutOrFallback(settings, FALLBACK_AFTER_MS, this.#builtIn[network]);
  }
}
