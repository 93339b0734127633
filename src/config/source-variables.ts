import { createUrlOrOffVariable, createVariable } from "./environment-variable.js";
import { parseTokenPrices } from "./value-parsers.js";

const PRICE_SOURCE_NAMES = ["assets", "chainlink"] as const;

export type PriceSourceName = (typeof PRICE_SOURCE_NAMES)[number];

/** The part of the environment table about data that does not come from Hop's contracts. */
export const sourceVariables = {
  /** Base URL of the fee settings and the token prices; undefined: they are not fetched. */
  assetsUrl: createUrlOrOffVariable({
    name: "ASSETS_URL",
    defaultValue: "https://assets.hop.exchange",
    description:
      "base URL of `/<network>/v1-core-config.json` (fee settings) and `/token-prices.json`; `off`: use the fee settings built into the SDK and no such prices, only those of `TOKEN_PRICES` and `chainlink`",
  }),
  /** Fixed prices in USD by token symbol. */
  tokenPrices: createVariable<ReadonlyMap<string, number>>(
    {
      name: "TOKEN_PRICES",
      defaultValue: new Map(),
      defaultText: "none",
      description: 'fixed USD prices as JSON (`{"ETH":3000}`); they take precedence over all other prices',
    },
    "a JSON object of positive numbers",
    parseTokenPrices,
  ),
  priceSources: createVariable<readonly PriceSourceName[]>(
    {
      name: "PRICE_SOURCES",
      defaultValue: PRICE_SOURCE_NAMES,
      defaultText: `\`${PRICE_SOURCE_NAMES.join(",")}\``,
      description:
        "where token prices come from after `TOKEN_PRICES`, comma-separated, in order of preference: `assets` (`/token-prices.json` of `ASSETS_URL`), `chainlink` (price feeds on Ethereum and Arbitrum, read once a minute for comparison while quotes are made, and before an answer if the sources before it have no price)",
    },
    `a comma-separated list of ${PRICE_SOURCE_NAMES.join(", ")}, each once`,
    parsePriceSources,
  ),
  /** undefined: the explorer is not used. */
  explorerApiUrl: createUrlOrOffVariable({
    name: "EXPLORER_API_URL",
    defaultValue: "https://explorer-api.hop.exchange",
    description: "explorer API, the last source that is asked for a transfer; `off` disables it",
  }),
  /** undefined: attestations are not fetched. */
  attestationApiUrl: createUrlOrOffVariable({
    name: "ATTESTATION_API_URL",
    defaultValue: "https://iris-api.circle.com",
    description: "CCTP attestation API; `off`: assume the SDK's constant for the gas of a CCTP delivery",
  }),
};

function parsePriceSources(text: string): { readonly value: readonly PriceSourceName[] } | undefined {
  const names = text.split(",").map((name) => PRICE_SOURCE_NAMES.find((known) => known === name.trim()));
  const value = names.filter((name) => name !== undefined);
  return value.length === names.length && new Set(value).size === value.length ? { value } : undefined;
}
