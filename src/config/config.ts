import { type CustomUrlPolicy, DEFAULT_CUSTOM_URL_PORTS } from "../chain/custom-endpoints/ssrf-guard.js";
import { getNetwork, type NetworkSlug } from "../hop/networks.js";
import {
  getDefaultIndexStart,
  type IndexStart,
  parseIndexLocation,
  parseIndexStart,
} from "../transfers/index/index-options.js";

/** Everything that the environment decides, checked. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** RPC endpoints by network and chain slug, in order of preference. They hold keys: never log them. */
  readonly rpcUrls: Readonly<Record<NetworkSlug, ReadonlyMap<string, readonly string[]>>>;
  /** Base of the settings and price documents; undefined: no such fetch. */
  readonly assetsUrl: string | undefined;
  /** Fixed prices in USD by token symbol. */
  readonly tokenPrices: ReadonlyMap<string, number>;
  /** Explorer APIs; undefined: not asked. */
  readonly explorerApiUrl: string | undefined;
  /** The index of transfers: its file, and where it begins; undefined: none. */
  readonly index: { readonly file: string; readonly from: IndexStart } | undefined;
  /** CCTP attestation API; undefined: not asked. */
  readonly attestationApiUrl: string | undefined;
  /** Requests that one caller may make in a window; undefined: no limit. */
  readonly rateLimit: { readonly requests: number; readonly windowMs: number } | undefined;
  readonly trustProxy: boolean;
  readonly customRpcUrlPolicy: CustomUrlPolicy;
  /** Ports of the public endpoints that callers may name. */
  readonly customRpcPorts: readonly number[];
  readonly requestTimeoutMs: number;
  readonly quoteEngine: QuoteEngineName;
  /** Share of quotes that the SDK computes again afterwards, 0 to 1. */
  readonly quoteVerifyRate: number;
  /** How old a quote's facts may be while upstreams answer; undefined: two blocks of the slower chain, at least 4 s. */
  readonly quoteMaxAgeMs: number | undefined;
  /** How old they may be while upstreams do not answer. */
  readonly quoteMaxStaleMs: number;
  /** Processes that share the port. */
  readonly workerCount: number;
  /** Port of a listener for nothing but metrics; undefined: they stand beside everything else. */
  readonly metricsPort: number | undefined;
  /** Whether spans are wanted: somebody named where to send them. */
  readonly isTracingEnabled: boolean;
  readonly logLevel: LogLevel;
}

export const QUOTE_ENGINES = ["snapshot", "sdk"] as const;
export type QuoteEngineName = (typeof QUOTE_ENGINES)[number];

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Every wrong value of the environment, one line each. No line repeats a value that may hold a key. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length} problem(s):\n${problems.map((line) => `  - ${line}`).join("\n")}`);
    this.problems = problems;
  }
}

/**
 * Reads the environment; an empty variable counts as not set.
 * @throws ConfigError with every problem there is.
 */
export function loadConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];

  /** The parsed value of a variable, or the fallback when it is not set or wrong. */
  function read<T>(name: string, fallback: T, expected: string, parse: (text: string) => T | undefined): T {
    const text = environment[name]?.trim();
    if (text === undefined || text === "") return fallback;
    const value = parse(text);
    if (value === undefined) problems.push(`${name} is not ${expected}`);
    return value ?? fallback;
  }

  const integer = (name: string, fallback: number, least: number, most: number): number =>
    read(name, fallback, `a whole number from ${least} to ${most}`, (text) => {
      const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
      return value >= least && value <= most ? value : undefined;
    });
  const choice = <T extends string>(name: string, fallback: T, choices: readonly T[]): T =>
    read(name, fallback, `one of ${choices.join(", ")}`, (text) => choices.find((known) => known === text));
  const urlOrOff = (name: string, fallback: string): string | undefined =>
    read<{ url: string | undefined }>(name, { url: fallback }, "an http(s) URL or off", (text) =>
      text === "off" ? { url: undefined } : isHttpUrl(text) ? { url: text.replace(/\/+$/, "") } : undefined,
    ).url;

  const config: Config = {
    host: read("HOST", "0.0.0.0", "an address", (text) => text),
    port: integer("PORT", 8000, 0, 65535),
    rpcUrls: {
      mainnet: rpcUrls("mainnet", "RPC_URL_"),
      goerli: rpcUrls("goerli", "GOERLI_RPC_URL_"),
    },
    assetsUrl: urlOrOff("ASSETS_URL", "https://assets.hop.exchange"),
    tokenPrices: read<ReadonlyMap<string, number>>(
      "TOKEN_PRICES",
      new Map(),
      "a JSON object of positive numbers",
      parseTokenPrices,
    ),
    explorerApiUrl: urlOrOff("EXPLORER_API_URL", "https://explorer-api.hop.exchange"),
    index: index(),
    attestationApiUrl: urlOrOff("ATTESTATION_API_URL", "https://iris-api.circle.com"),
    rateLimit: rateLimit(),
    trustProxy: choice("TRUST_PROXY", "false", ["false", "true"]) === "true",
    customRpcUrlPolicy: choice("CUSTOM_RPC_URLS", "public", ["public", "any", "off"]),
    customRpcPorts: read("CUSTOM_RPC_PORTS", DEFAULT_CUSTOM_URL_PORTS, "a comma-separated list of ports", parsePorts),
    requestTimeoutMs: integer("REQUEST_TIMEOUT_MS", 10_000, 1, 600_000),
    quoteEngine: choice("QUOTE_ENGINE", "snapshot", QUOTE_ENGINES),
    quoteVerifyRate: read("QUOTE_VERIFY_RATE", 0, "a number from 0 to 1", parseRatio),
    quoteMaxAgeMs: integer("QUOTE_MAX_AGE_MS", 0, 1, 600_000) || undefined,
    quoteMaxStaleMs: integer("QUOTE_MAX_STALE_MS", 30_000, 1, 600_000),
    workerCount: integer("WORKERS", 1, 1, 256),
    // 0 picks a free one.
    metricsPort: read<number | undefined>("METRICS_PORT", undefined, "a port", (text) => parsePort(text, 0)),
    isTracingEnabled: read(
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      false,
      "an http(s) URL",
      (text) => isHttpUrl(text) || undefined,
    ),
    logLevel: choice("LOG_LEVEL", "info", LOG_LEVELS),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);

  function index(): Config["index"] {
    const now = Date.now();
    const slugs = new Set(getNetwork("mainnet").chains.keys());
    const { file } = read<{ file: string | undefined }>(
      "INDEX",
      { file: undefined },
      "off or sqlite:<file>",
      parseIndexLocation,
    );
    const expected = "a date (2024-01-01) in the past, blocks of chains (ethereum:19000000), or both, comma-separated";
    const from = read("INDEX_FROM", getDefaultIndexStart(now), expected, (text) => parseIndexStart(text, slugs, now));
    return file === undefined ? undefined : { file, from };
  }

  function rateLimit(): Config["rateLimit"] {
    const requests = integer("IP_RATE_LIMIT_REQ_PER_SEC", 0, 1, 1_000_000);
    const windowMs = integer("IP_RATE_LIMIT_WINDOW_MS", 1000, 1, 86_400_000);
    return requests === 0 ? undefined : { requests, windowMs };
  }

  function rpcUrls(networkSlug: NetworkSlug, prefix: string): ReadonlyMap<string, readonly string[]> {
    const { chains } = getNetwork(networkSlug);
    const names = new Map([...chains.keys()].map((slug) => [`${prefix}${slug.toUpperCase()}`, slug]));
    for (const name of Object.keys(environment)) {
      if (name.startsWith(prefix) && !names.has(name)) {
        problems.push(`${name} names no chain of ${networkSlug}: there are ${[...names.keys()].join(", ")}`);
      }
    }
    return new Map(
      [...names].map(([name, slug]) => {
        const publicUrls = chains.get(slug)?.publicRpcUrls ?? [];
        const expected = "a comma-separated list of http(s) URLs";
        return [slug, read(name, publicUrls, expected, parseHttpUrls)] as const;
      }),
    );
  }
}

function parseHttpUrls(text: string): readonly string[] | undefined {
  const urls = text.split(",").map((url) => url.trim());
  return urls.every(isHttpUrl) ? urls : undefined;
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function parsePorts(text: string): readonly number[] | undefined {
  const ports = text.split(",").map((port) => parsePort(port.trim(), 1));
  return ports.every((port) => port !== undefined) ? ports : undefined;
}

function parsePort(text: string, least: number): number | undefined {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : -1;
  return port >= least && port <= 65_535 ? port : undefined;
}

function parseRatio(text: string): number | undefined {
  return /^(?:0|1|0?\.[0-9]{1,9}|1\.0+)$/.test(text) ? Number(text) : undefined;
}

function parseTokenPrices(text: string): ReadonlyMap<string, number> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
    const entries = Object.entries(parsed);
    const isPrice = (value: unknown): value is number => typeof value === "number" && value > 0 && value < Infinity;
    return entries.every(([, price]) => isPrice(price)) ? new Map(entries as [string, number][]) : undefined;
  } catch {
    return undefined;
  }
}
