import { DEFAULT_CUSTOM_URL_PORTS } from "../chain/custom-endpoints/ssrf-guard.js";
import { LOG_LEVELS } from "./config.js";

/** A variable of the environment, as docs/configuration.md and `hop-gateway --help` list it. */
export interface EnvironmentVariable {
  readonly name: string;
  /** The default in words. */
  readonly defaultText: string;
  readonly description: string;
}

export const ENVIRONMENT_VARIABLES: readonly EnvironmentVariable[] = [
  { name: "HOST", defaultText: "`0.0.0.0`", description: "address to listen on" },
  { name: "PORT", defaultText: "`8000`", description: "port to listen on; `0` picks a free one" },
  {
    name: "RPC_URL_<SLUG>",
    defaultText: "the SDK's public list",
    description: "RPC endpoints of a mainnet chain, comma-separated, in order of preference (`RPC_URL_OPTIMISM`)",
  },
  { name: "GOERLI_RPC_URL_<SLUG>", defaultText: "the SDK's public list", description: "the same for goerli" },
  {
    name: "ASSETS_URL",
    defaultText: "`https://assets.hop.exchange`",
    description:
      "base of `/<network>/v1-core-config.json` (fee settings) and `/token-prices.json`; `off`: the SDK's built-in settings and no prices but `TOKEN_PRICES`",
  },
  {
    name: "TOKEN_PRICES",
    defaultText: "none",
    description: 'fixed USD prices as JSON (`{"ETH":3000}`), used before any source',
  },
  {
    name: "EXPLORER_API_URL",
    defaultText: "`https://explorer-api.hop.exchange`",
    description: "explorer API, the last that is asked for a transfer; `off` disables",
  },
  {
    name: "ATTESTATION_API_URL",
    defaultText: "`https://iris-api.circle.com`",
    description: "CCTP attestation API; `off`: the gas of a CCTP delivery is the SDK's constant",
  },
  {
    name: "INDEX",
    defaultText: "`off`",
    description: "`sqlite:<file>`: an index of mainnet's transfers, kept up to date; needs `npm run build:sqlite` once",
  },
  {
    name: "INDEX_FROM",
    defaultText: "7 days ago",
    description: "how far back it goes: a date (`2024-01-01`), blocks of single chains (`ethereum:19000000`), or both",
  },
  {
    name: "IP_RATE_LIMIT_REQ_PER_SEC",
    defaultText: "off",
    description: "requests that one caller may make in each window",
  },
  { name: "IP_RATE_LIMIT_WINDOW_MS", defaultText: "`1000`", description: "length of that window" },
  { name: "TRUST_PROXY", defaultText: "`false`", description: "take the caller's address from `X-Forwarded-For`" },
  {
    name: "CUSTOM_RPC_URLS",
    defaultText: "`public`",
    description: "what `rpcUrl[...]` may name: `public` (https, a public host), `any` (development), `off`",
  },
  {
    name: "CUSTOM_RPC_PORTS",
    defaultText: `\`${DEFAULT_CUSTOM_URL_PORTS.join(",")}\``,
    description: "ports that a `public` one may have, comma-separated",
  },
  { name: "REQUEST_TIMEOUT_MS", defaultText: "`10000`", description: "the longest that any answer may take" },
  {
    name: "QUOTE_ENGINE",
    defaultText: "`snapshot`",
    description: "`snapshot`: quotes are computed here from facts that are kept fresh; `sdk`: each by the SDK, slowly",
  },
  {
    name: "QUOTE_VERIFY_RATE",
    defaultText: "`0`",
    description:
      "share of quotes (`0` to `1`) that the SDK computes again afterwards on the same blocks; differences are logged",
  },
  {
    name: "QUOTE_MAX_AGE_MS",
    defaultText: "two blocks of the slower chain, at least `4000`",
    description: "how old the facts of a quote may be while the chains answer",
  },
  {
    name: "QUOTE_MAX_STALE_MS",
    defaultText: "`30000`",
    description: "how old they may be while a chain does not answer; then the quote is refused",
  },
  {
    name: "WORKERS",
    defaultText: "`1`",
    description: "processes that share the port, for more than one core; each asks the chains for itself",
  },
  {
    name: "METRICS_PORT",
    defaultText: "none",
    description: "port of a listener of its own for `/metrics`, which is then not served on `PORT`",
  },
  {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    defaultText: "none",
    description: "where an OpenTelemetry SDK that is loaded beside the service sends spans; set: spans are made",
  },
  {
    name: "LOG_LEVEL",
    defaultText: "`info`",
    description: `one of ${LOG_LEVELS.map((level) => `\`${level}\``).join(", ")}`,
  },
];
