import { DEFAULT_CUSTOM_ENDPOINT_LIMITS } from "../chain/custom-endpoints/custom-endpoints.js";
import { type CustomUrlPolicy, DEFAULT_CUSTOM_URL_PORTS } from "../chain/custom-endpoints/ssrf-guard.js";
import { parseBaseUrl } from "../chain/parse-url.js";
import { getNetwork } from "../hop/networks.js";
import { type PostgresLocation, parsePostgresUrl } from "../transfers/index/database/postgres-location.js";
import {
  type IndexStart,
  type IndexStorage,
  parseIndexStart,
  parseIndexStorage,
} from "../transfers/index/index-options.js";
import {
  createChoiceVariable,
  createIntegerVariable,
  createRpcUrlsVariable,
  createUrlOrOffVariable,
  createVariable,
  type Environment,
  type EnvironmentVariable,
  isHttpUrl,
  MAX_PORT,
  parsePort,
  parsePorts,
} from "./environment-variable.js";

/** The part of the environment table about what processes share. */
const sharedStateVariables = {
  /** undefined: this process shares nothing. Contains a password: never log it. */
  sharedStateUrl: createVariable<string | undefined>(
    {
      name: "SHARED_STATE",
      defaultValue: undefined,
      defaultText: "`off`",
      description:
        "`redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS: share chain state, documents, final statuses and limits per caller with other replicas and workers; see [Sharing through Redis](scaling.md#sharing-through-redis)",
    },
    "off or redis[s]://[[user]:password@]host[:port][/database]",
    (text) => {
      if (text === "off") return { value: undefined };
      return isRedisUrl(text) ? { value: text } : undefined;
    },
  ),
};

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname, search, hash } = new URL(text);
  const hasOptions = search !== "" || hash !== "";
  // Options that are ignored would seem to work.
  return /^rediss?:$/.test(protocol) && hostname !== "" && /^\/?[0-9]{0,4}$/.test(pathname) && !hasOptions;
}

/** A database for an index in PostgreSQL; undefined if it is not set. */
const createPostgresVariable = (
  options: Parameters<typeof createVariable<PostgresLocation | undefined>>[0],
): EnvironmentVariable<PostgresLocation | undefined> =>
  createVariable(options, "postgres://user:password@host/database?sslmode=<mode>", (text) => {
    const location = parsePostgresUrl(text);
    return location && { value: location };
  });

const CUSTOM_URL_POLICIES = ["public", "any", "off"] as const satisfies readonly CustomUrlPolicy[];
const QUOTE_ENGINES = ["snapshot", "sdk"] as const;
const PRICE_SOURCE_NAMES = ["assets", "chainlink"] as const;
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** Port of the metrics unless one is configured; OpenTelemetry's exporter for Prometheus uses the same. */
export const DEFAULT_METRICS_PORT = 9464;

export type PriceSourceName = (typeof PRICE_SOURCE_NAMES)[number];
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Every variable of the environment, by the name of its value in the configuration. The loader, `--help` and
 * docs/configuration.md are derived from this table; `npm run docs:configuration` rewrites the latter.
 */
export const environmentTable = {
  host: createVariable(
    { name: "HOST", defaultValue: "0.0.0.0", description: "address to listen on" },
    "an address",
    (text) => ({
      value: text,
    }),
  ),
  port: createIntegerVariable(
    { name: "PORT", defaultValue: 8000, description: "port to listen on; `0` picks a free port" },
    { min: 0, max: MAX_PORT },
  ),
  mainnetRpcUrls: createRpcUrlsVariable(
    "mainnet",
    "RPC_URL_",
    "RPC endpoints of a mainnet chain (`RPC_URL_OPTIMISM`), comma-separated, in order of preference",
  ),
  goerliRpcUrls: createRpcUrlsVariable("goerli", "GOERLI_RPC_URL_", "the same for Goerli"),
  /** undefined: no limit. */
  rpcBudget: createIntegerVariable(
    {
      name: "RPC_BUDGET",
      defaultValue: undefined,
      defaultText: "off",
      description:
        "calls per second to each of these endpoints (a batch counts as the calls in it), divided by the processes of `WORKERS`; each replica has its own, so divide it by their number; `hop-gateway check` suggests a value",
    },
    { min: 1, max: 1_000_000 },
  ),
  /** 1: one endpoint is believed. */
  rpcQuorum: createIntegerVariable(
    {
      name: "RPC_QUORUM",
      defaultValue: 1,
      description:
        "how many endpoints of a mainnet chain have to agree about what quotes, statuses and the index are made of; each chain needs as many, better one more; costs as many times the calls",
    },
    { min: 1, max: 10 },
  ),
  /** Share of reads that are compared in the background, 0 to 1; without a quorum only. */
  rpcQuorumRate: createVariable(
    {
      name: "RPC_QUORUM_RATE",
      defaultValue: 0,
      description:
        "with `RPC_QUORUM=1`: share of reads (`0` to `1`) that are repeated at all endpoints of their chain in the background; who contradicts the majority is reported",
    },
    "a number from 0 to 1",
    (text) => (/^(?:0|1|0?\.[0-9]{1,9}|1\.0+)$/.test(text) ? { value: Number(text) } : undefined),
  ),
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
  /** undefined: there is no index. */
  indexStorage: createVariable<IndexStorage | undefined>(
    {
      name: "INDEX",
      defaultValue: undefined,
      defaultText: "`off`",
      description:
        "keep an index of mainnet's transfers up to date: in a file (`sqlite:<file>`), or for several replicas in PostgreSQL (`postgres://user:password@host:5432/database?sslmode=verify-full`; also through PgBouncer)",
    },
    "off, sqlite:<file> or postgres://user:password@host/database?sslmode=<mode>",
    (text) => {
      const parsed = parseIndexStorage(text);
      return parsed && { value: parsed.storage };
    },
  ),
  /** undefined: requests read where the index is written. */
  indexReadLocation: createPostgresVariable({
    name: "INDEX_READ_URL",
    defaultValue: undefined,
    defaultText: "`INDEX`",
    description: "PostgreSQL server from which requests read: a standby of the one in `INDEX`",
  }),
  /** undefined: no notifications are received. */
  indexListenLocation: createPostgresVariable({
    name: "INDEX_LISTEN_URL",
    defaultValue: undefined,
    defaultText: "none",
    description:
      "the server of `INDEX` without a pooler in between: one connection that receives notifications of changes; without it, changes are noticed within a second",
  }),
  indexPoolSize: createIntegerVariable(
    {
      name: "INDEX_POOL_SIZE",
      defaultValue: 10,
      description:
        "connections to PostgreSQL for requests, per process of `WORKERS`; four more write the index, and one listens",
    },
    { min: 1, max: 1_000 },
  ),
  indexStatementTimeoutMs: createIntegerVariable(
    {
      name: "INDEX_STATEMENT_TIMEOUT_MS",
      defaultValue: 5_000,
      description: "time limit of a statement in PostgreSQL",
    },
    { min: 100, max: 600_000 },
  ),
  /** undefined: the default of the index. */
  indexStart: createVariable<IndexStart | undefined>(
    {
      name: "INDEX_FROM",
      defaultValue: undefined,
      defaultText: "7 days ago",
      description:
        "where the index begins: a date (`2024-01-01`), blocks of single chains (`ethereum:19000000`), or both, comma-separated",
    },
    "a date (2024-01-01) in the past, blocks of chains (ethereum:19000000), or both, comma-separated",
    (text) => {
      const start = parseIndexStart(text, new Set(getNetwork("mainnet").chains.keys()), Date.now());
      return start && { value: start };
    },
  ),
  /** undefined: callers are not limited. */
  rateLimitRequests: createIntegerVariable(
    {
      name: "IP_RATE_LIMIT_REQ_PER_SEC",
      defaultValue: undefined,
      defaultText: "off",
      description: "requests per caller and window; despite its name it counts per `IP_RATE_LIMIT_WINDOW_MS`",
    },
    { min: 1, max: 1_000_000 },
  ),
  rateLimitWindowMs: createIntegerVariable(
    {
      name: "IP_RATE_LIMIT_WINDOW_MS",
      defaultValue: 1000,
      description: "length of the rate limit window in milliseconds",
    },
    { min: 1, max: 86_400_000 },
  ),
  trustProxy: createVariable(
    {
      name: "TRUST_PROXY",
      defaultValue: false,
      description: "`true`: take the caller's address from `X-Forwarded-For`; only behind a proxy that sets it",
    },
    "one of false, true",
    (text) => (text === "true" || text === "false" ? { value: text === "true" } : undefined),
  ),
  /** undefined: errors have no links. */
  docsUrl: createVariable<string | undefined>(
    {
      name: "DOCS_URL",
      defaultValue: undefined,
      defaultText: "`off`",
      description:
        "base URL of this documentation, such as that of the folder `docs` in a repository: errors then link to the section of their reason in `errors.md`, and `/openapi.json` to the pages; see [Errors](errors.md)",
    },
    "off or an http(s) URL without a user, a query or a fragment",
    (text) => {
      const value = text === "off" ? undefined : parseBaseUrl(text);
      return text === "off" || value !== undefined ? { value } : undefined;
    },
  ),
  customRpcUrlPolicy: createChoiceVariable(
    {
      name: "CUSTOM_RPC_URLS",
      defaultValue: "public",
      description:
        "RPC endpoints that callers may name with `rpcUrl[...]`: `public` (https and a public host), `any` (for development: any web page could then make the service call addresses on its network), `off`",
    },
    CUSTOM_URL_POLICIES,
  ),
  customRpcPorts: createVariable(
    {
      name: "CUSTOM_RPC_PORTS",
      defaultValue: DEFAULT_CUSTOM_URL_PORTS,
      defaultText: `\`${DEFAULT_CUSTOM_URL_PORTS.join(",")}\``,
      description: "ports that such a `public` endpoint may use, comma-separated",
    },
    "a comma-separated list of ports",
    parsePorts,
  ),
  customRpcMaxPerCaller: createIntegerVariable(
    {
      name: "CUSTOM_RPC_MAX_PER_CALLER",
      defaultValue: DEFAULT_CUSTOM_ENDPOINT_LIMITS.perCaller,
      description: "endpoints that one caller may have in use with `rpcUrl[...]`; one call names up to nine",
    },
    { min: 1, max: 10_000 },
  ),
  customRpcMaxEndpoints: createIntegerVariable(
    {
      name: "CUSTOM_RPC_MAX_ENDPOINTS",
      defaultValue: DEFAULT_CUSTOM_ENDPOINT_LIMITS.total,
      description: "such endpoints in use of all callers together",
    },
    { min: 1, max: 10_000 },
  ),
  requestTimeoutMs: createIntegerVariable(
    { name: "REQUEST_TIMEOUT_MS", defaultValue: 10_000, description: "maximum time for a response in milliseconds" },
    { min: 1, max: 600_000 },
  ),
  watchMaxSeconds: createIntegerVariable(
    {
      name: "WATCH_MAX_SECONDS",
      defaultValue: 3600,
      description: "longest life of a watch in seconds; it then ends so that the caller resumes it",
    },
    { min: 1, max: 604_800 },
  ),
  /** 0: no limit. */
  watchMaxStreams: createIntegerVariable(
    { name: "WATCH_MAX_STREAMS", defaultValue: 20_000, description: "open watches of each process; `0`: no limit" },
    { min: 0, max: 1_000_000 },
  ),
  /** 0: no limit. */
  watchMaxPerCaller: createIntegerVariable(
    {
      name: "WATCH_MAX_PER_CALLER",
      defaultValue: 1000,
      description: "open watches of one caller in each process; `0`: no limit",
    },
    { min: 0, max: 1_000_000 },
  ),
  quoteEngine: createChoiceVariable(
    {
      name: "QUOTE_ENGINE",
      defaultValue: "snapshot",
      description:
        "`snapshot`: compute quotes from cached chain state; `sdk`: compute every quote with the SDK, slowly",
    },
    QUOTE_ENGINES,
  ),
  /** undefined: two blocks of the slower chain, at least 4 s. */
  quoteMaxAgeMs: createIntegerVariable(
    {
      name: "QUOTE_MAX_AGE_MS",
      defaultValue: undefined,
      defaultText: "two blocks of the slower chain, at least `4000`",
      description: "maximum age of a quote's chain state in milliseconds while the chains respond",
    },
    { min: 1, max: 600_000 },
  ),
  quoteMaxStaleMs: createIntegerVariable(
    {
      name: "QUOTE_MAX_STALE_MS",
      defaultValue: 30_000,
      description: "maximum age in milliseconds while a chain does not respond; beyond it, quotes are refused",
    },
    { min: 1, max: 600_000 },
  ),
  /** undefined: by the block time of each chain. */
  maxBlockAgeMs: createIntegerVariable(
    {
      name: "MAX_BLOCK_AGE_MS",
      defaultValue: undefined,
      defaultText: "20 blocks of the chain, at least `120000`; `900000` on arbitrum, nova and polygonzk",
      description:
        "age of a chain's newest block in milliseconds beyond which the chain is stalled: quotes on its routes are refused; `0`: no limit. Goerli has none",
    },
    { min: 0, max: 24 * 60 * 60_000 },
  ),
  workerCount: createIntegerVariable(
    {
      name: "WORKERS",
      defaultValue: 1,
      description:
        "number of processes that share the port, to use more than one core; of each chain and document, one of them reads for all",
    },
    { min: 1, max: 256 },
  ),
  ...sharedStateVariables,
  /** undefined: the default port, or a free one if that is taken. 0: a free port. same: the main port. */
  metricsPort: createVariable<number | "same" | undefined>(
    {
      name: "METRICS_PORT",
      defaultValue: undefined,
      defaultText: `\`${DEFAULT_METRICS_PORT}\`, or a free port if it is taken`,
      description:
        "port of `/metrics` and a second `/livez`; `0` picks a free port; `same`: serve `/metrics` on `PORT` instead",
    },
    "a port or same",
    (text) => {
      const value = text === "same" ? text : parsePort(text, 0);
      return value === undefined ? undefined : { value };
    },
  ),
  metricsHost: createVariable(
    {
      name: "METRICS_HOST",
      defaultValue: "127.0.0.1",
      description:
        "address of `METRICS_PORT`; `0.0.0.0` where probes or Prometheus come from another machine or container",
    },
    "an address",
    (text) => ({ value: text }),
  ),
  isTracingEnabled: createVariable(
    {
      name: "OTEL_EXPORTER_OTLP_ENDPOINT",
      defaultValue: false,
      defaultText: "none",
      description:
        "enables trace spans; the OpenTelemetry SDK that you load with the service exports them to this endpoint",
    },
    "an http(s) URL",
    (text) => (isHttpUrl(text) ? { value: true } : undefined),
  ),
  logLevel: createChoiceVariable(
    {
      name: "LOG_LEVEL",
      defaultValue: "info",
      description: `one of ${LOG_LEVELS.map((level) => `\`${level}\``).join(", ")}`,
    },
    LOG_LEVELS,
  ),
};

/** Variables that earlier versions had, and what replaces them. */
const REMOVED_VARIABLES: Readonly<Record<string, string>> = {
  QUOTE_VERIFY_INTERVAL_SECONDS: "run `hop-gateway compare` periodically, as in deploy/",
  SHARED_STATE_KEY: "what SHARED_STATE shares is no longer signed",
  QUOTE_VERIFY_RATE: "run `hop-gateway compare` periodically, as in deploy/",
};

/** The names of all variables that have or had a meaning. */
export function listKnownNames(): readonly string[] {
  return [...ENVIRONMENT_VARIABLES.flatMap(({ names }) => names), ...Object.keys(REMOVED_VARIABLES)];
}

/** Returns a warning for each removed variable that is set. */
export function listRemovedVariables(environment: Environment): readonly string[] {
  return Object.entries(REMOVED_VARIABLES)
    .filter(([name]) => environment[name] !== undefined)
    .map(([name, replacement]) => `${name} was removed and has no effect: ${replacement}`);
}

/** The variables in the order of the documentation. */
export const ENVIRONMENT_VARIABLES: readonly EnvironmentVariable<unknown>[] = Object.values(environmentTable);

/** The parsed values by the keys of the table. */
export type EnvironmentValues = {
  readonly [K in keyof typeof environmentTable]: ReturnType<(typeof environmentTable)[K]["read"]>["value"];
};

function parsePriceSources(text: string): { readonly value: readonly PriceSourceName[] } | undefined {
  const names = text.split(",").map((name) => PRICE_SOURCE_NAMES.find((known) => known === name.trim()));
  const value = names.filter((name) => name !== undefined);
  return value.length === names.length && new Set(value).size === value.length ? { value } : undefined;
}

function parseTokenPrices(text: string): { readonly value: ReadonlyMap<string, number> } | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
    const entries = Object.entries(parsed);
    const isPrice = (value: unknown): value is number => typeof value === "number" && value > 0 && value < Infinity;
    return entries.every(([, price]) => isPrice(price)) ? { value: new Map(entries as [string, number][]) } : undefined;
  } catch {
    return undefined;
  }
}
