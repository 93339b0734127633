import { defaultPorts } from "../chain/custom-endpoints/ssrf-guard.js";
import { logLevels } from "./config.js";

/** A variable of the environment, as docs/configuration.md and `hop-gateway --help` list it. */
export interface Variable {
  readonly name: string;
  /** The default in words. */
  readonly fallback: string;
  readonly meaning: string;
}

export const variables: readonly Variable[] = [
  { name: "HOST", fallback: "`0.0.0.0`", meaning: "address to listen on" },
  { name: "PORT", fallback: "`8000`", meaning: "port to listen on; `0` picks a free one" },
  {
    name: "RPC_URL_<SLUG>",
    fallback: "the SDK's public list",
    meaning: "RPC endpoints of a mainnet chain, comma-separated, in order of preference (`RPC_URL_OPTIMISM`)",
  },
  { name: "GOERLI_RPC_URL_<SLUG>", fallback: "the SDK's public list", meaning: "the same for goerli" },
  {
    name: "ASSETS_URL",
    fallback: "`https://assets.hop.exchange`",
    meaning:
      "base of `/<network>/v1-core-config.json` (fee settings) and `/token-prices.json`; `off`: the SDK's built-in settings and no prices but `TOKEN_PRICES`",
  },
  {
    name: "TOKEN_PRICES",
    fallback: "none",
    meaning: 'fixed USD prices as JSON (`{"ETH":3000}`), used before any source',
  },
  {
    name: "EXPLORER_API_URL",
    fallback: "`https://explorer-api.hop.exchange`",
    meaning: "explorer API, the last that is asked for a transfer; `off` disables",
  },
  {
    name: "ATTESTATION_API_URL",
    fallback: "`https://iris-api.circle.com`",
    meaning: "CCTP attestation API; `off`: the gas of a CCTP delivery is the SDK's constant",
  },
  {
    name: "INDEX",
    fallback: "`off`",
    meaning: "`sqlite:<file>`: an index of mainnet's transfers, kept up to date; needs `npm run build:sqlite` once",
  },
  {
    name: "INDEX_FROM",
    fallback: "7 days ago",
    meaning: "how far back it goes: a date (`2024-01-01`), blocks of single chains (`ethereum:19000000`), or both",
  },
  {
    name: "IP_RATE_LIMIT_REQ_PER_SEC",
    fallback: "off",
    meaning: "requests that one caller may make in each window",
  },
  { name: "IP_RATE_LIMIT_WINDOW_MS", fallback: "`1000`", meaning: "length of that window" },
  { name: "TRUST_PROXY", fallback: "`false`", meaning: "take the caller's address from `X-Forwarded-For`" },
  {
    name: "CUSTOM_RPC_URLS",
    fallback: "`public`",
    meaning: "what `rpcUrl[...]` may name: `public` (https, a public host), `any` (development), `off`",
  },
  {
    name: "CUSTOM_RPC_PORTS",
    fallback: `\`${defaultPorts.join(",")}\``,
    meaning: "ports that a `public` one may have, comma-separated",
  },
  { name: "REQUEST_TIMEOUT_MS", fallback: "`10000`", meaning: "the longest that any answer may take" },
  {
    name: "QUOTE_ENGINE",
    fallback: "`snapshot`",
    meaning: "`snapshot`: quotes are computed here from facts that are kept fresh; `sdk`: each by the SDK, slowly",
  },
  {
    name: "QUOTE_VERIFY_RATE",
    fallback: "`0`",
    meaning:
      "share of quotes (`0` to `1`) that the SDK computes again afterwards on the same blocks; differences are logged",
  },
  {
    name: "QUOTE_MAX_AGE_MS",
    fallback: "two blocks of the slower chain, at least `4000`",
    meaning: "how old the facts of a quote may be while the chains answer",
  },
  {
    name: "QUOTE_MAX_STALE_MS",
    fallback: "`30000`",
    meaning: "how old they may be while a chain does not answer; then the quote is refused",
  },
  {
    name: "WORKERS",
    fallback: "`1`",
    meaning: "processes that share the port, for more than one core; each asks the chains for itself",
  },
  {
    name: "METRICS_PORT",
    fallback: "none",
    meaning: "port of a listener of its own for `/metrics`, which is then not served on `PORT`",
  },
  {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    fallback: "none",
    meaning: "where an OpenTelemetry SDK that is loaded beside the service sends spans; set: spans are made",
  },
  { name: "LOG_LEVEL", fallback: "`info`", meaning: `one of ${logLevels.map((level) => `\`${level}\``).join(", ")}` },
];
