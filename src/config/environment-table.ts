import { getNetwork } from "../hop/networks.js";
import {
  type IndexStart,
  type IndexStorage,
  parseIndexStart,
  parseIndexStorage,
} from "../transfers/index/index-options.js";
import { type PostgresLocation, parsePostgresUrl } from "../transfers/index/store/postgres/connection/location.js";
import { customEndpointVariables } from "./custom-endpoint-variables.js";
import {
  createChoiceVariable,
  createIntegerVariable,
  createRpcUrlsVariable,
  createVariable,
  type EnvironmentVariable,
} from "./environment-variable.js";
import { quorumVariables } from "./quorum-variables.js";
import { quoteVariables } from "./quote-variables.js";
import { sharedStateVariables } from "./shared-state-variables.js";
import { sourceVariables } from "./source-variables.js";
import { isHttpUrl, MAX_PORT, parsePort } from "./value-parsers.js";
import { watchVariables } from "./watch-variables.js";

/** A database for an index in PostgreSQL; undefined if it is not set. */
const createPostgresVariable = (
  options: Parameters<typeof createVariable<PostgresLocation | undefined>>[0],
): EnvironmentVariable<PostgresLocation | undefined> =>
  createVariable(options, "postgres://user:password@host/database?sslmode=<mode>", (text) => {
    const location = parsePostgresUrl(text);
    return location && { value: location };
  });

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** Port of the metrics unless one is configured; OpenTelemetry's exporter for Prometheus uses the same. */
export const DEFAULT_METRICS_PORT = 9464;

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
        "calls per second to each of these endpoints (a batch counts as the calls in it), shared by the processes of `WORKERS`; `hop-gateway check` suggests a value",
    },
    { min: 1, max: 1_000_000 },
  ),
  ...quorumVariables,
  ...sourceVariables,
  /** undefined: there is no index. */
  indexStorage: createVariable<IndexStorage | undefined>(
    {
      name: "INDEX",
      defaultValue: undefined,
      defaultText: "`off`",
      description:
        "keep an index of mainnet's transfers up to date: in a file (`sqlite:<file>`; needs `npm run build:sqlite` once), or for several replicas in PostgreSQL (`postgres://user:password@host:5432/database?sslmode=verify-full`; also through PgBouncer)",
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
  ...customEndpointVariables,
  requestTimeoutMs: createIntegerVariable(
    { name: "REQUEST_TIMEOUT_MS", defaultValue: 10_000, description: "maximum time for a response in milliseconds" },
    { min: 1, max: 600_000 },
  ),
  ...watchVariables,
  ...quoteVariables,
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

/** The variables in the order of the documentation. */
export const ENVIRONMENT_VARIABLES: readonly EnvironmentVariable<unknown>[] = Object.values(environmentTable);

/** The parsed values by the keys of the table. */
export type EnvironmentValues = {
  readonly [K in keyof typeof environmentTable]: ReturnType<(typeof environmentTable)[K]["read"]>["value"];
};
