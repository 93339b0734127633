import { sdkConfig } from "@hop-protocol/sdk/config";
import type { NetworkSlug } from "./networks.js";

type ByToken<T> = Readonly<Record<string, T>>;
type ByChain<T> = Readonly<Record<string, T>>;

/** What Hop charges and who bonds: the SDK's built-in values, or those of the core config document. */
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
  /** Tokens whose bridge takes no more transfers from ethereum. */
  readonly bridgeDeprecated: ByToken<boolean>;
}

const SETTING_NAMES = [
  "bonders",
  "bonderFeeBps",
  "destinationFeeGasPriceMultiplier",
  "relayerFeeEnabled",
  "relayerFeeWei",
  "bridgeDeprecated",
] as const satisfies readonly (keyof FeeSettings)[];

type Validator = (value: unknown) => boolean;

const isRecordOf =
  (check: Validator): Validator =>
  (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(check);
const isBps: Validator = (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 10_000;
const isBoolean: Validator = (value) => typeof value === "boolean";
const isWei: Validator = (value) => typeof value === "string" && /^[0-9]{1,30}$/.test(value);
/** Spaces around an address are the SDK's own: its bonder of DAI from ethereum to optimism ends in one. */
const isPaddedAddress: Validator = (value) => typeof value === "string" && /^\s*0x[0-9a-f]{40}\s*$/i.test(value);
const isMultiplier: Validator = (value) => typeof value === "number" && value >= 0 && value < 1_000;

/** The form of each part: nothing else may reach the arithmetic. */
const settingValidators: Readonly<Record<keyof FeeSettings, Validator>> = {
  bonders: isRecordOf(isRecordOf(isRecordOf(isPaddedAddress))),
  bonderFeeBps: isRecordOf(isRecordOf(isBps)),
  destinationFeeGasPriceMultiplier: isMultiplier,
  relayerFeeEnabled: isRecordOf(isBoolean),
  relayerFeeWei: isRecordOf(isWei),
  bridgeDeprecated: isRecordOf(isBoolean),
};

/** The settings that the SDK is shipped with. */
export function getBuiltInFeeSettings(network: NetworkSlug): FeeSettings {
  return withUsdcDefaults(
    pickSettings(sdkConfig[network] as unknown as Record<string, unknown>) as unknown as FeeSettings,
  );
}

/**
 * The settings of a core config document: what it leaves out stays as the SDK has it, as in the SDK itself.
 * @throws TypeError when the document is no object or a part of it has another form than the SDK's own.
 */
export function parseFeeSettings(network: NetworkSlug, document: unknown): FeeSettings {
  const builtIn = getBuiltInFeeSettings(network);
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw new TypeError("core config is no object");
  const given = pickSettings(document as Record<string, unknown>);
  for (const [name, value] of Object.entries(given)) {
    if (!settingValidators[name as keyof FeeSettings](value))
      throw new TypeError(`core config: ${name} has another form`);
  }
  return withUsdcDefaults({ ...builtIn, ...given } as FeeSettings);
}

function pickSettings(source: Record<string, unknown>): Record<string, unknown> {
  // The SDK takes a part over only where it is truthy: null, 0 and absent leave its own value standing.
  return Object.fromEntries(SETTING_NAMES.filter((name) => source[name]).map((name) => [name, source[name]]));
}

/** USDC.e has the settings of USDC where it has none of its own. */
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
