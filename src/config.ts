import { type CustomUrlPolicy, defaultPorts } from "./chain/url-guard.js";
import { type NetworkSlug, networkOf } from "./hop/networks.js";
import { defaultIndexFrom, type IndexFrom, parseIndexFrom, parseIndexLocation } from "./transfers/index/index-from.js";

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
  readonly index: { readonly file: string; readonly from: IndexFrom } | undefined;
  /** CCTP attestation API; undefined: not asked. */
  readonly attestationApiUrl: string | undefined;
  /** Requests that one caller may make in a window; undefined: no limit. */
  readonly rateLimit: { readonly requests: number; readonly windowMs: number } | undefined;
  readonly trustProxy: boolean;
  readonly customRpcUrls: CustomUrlPolicy;
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
  readonly workers: number;
  readonly logLevel: LogLevel;
}

export const quoteEngines = ["snapshot", "sdk"] as const;
export type QuoteEngineName = (typeof quoteEngines)[number];

export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Every wrong value of the environment, one line each. No line repeats a value that may hold a key. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length} problem(s):\n${problems.map((line) => `  - ${line}`).join("\n")}`);
    this.problems = problems;
  }
}

/** A variable of the environment, as README.md lists it. */
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
  { name: "LOG_LEVEL", fallback: "`info`", meaning: `one of ${logLevels.map((level) => `\`${level}\``).join(", ")}` },
];

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
      parsePrices,
    ),
    explorerApiUrl: urlOrOff("EXPLORER_API_URL", "https://explorer-api.hop.exchange"),
    index: index(),
    attestationApiUrl: urlOrOff("ATTESTATION_API_URL", "https://iris-api.circle.com"),
    rateLimit: rateLimit(),
    trustProxy: choice("TRUST_PROXY", "false", ["false", "true"]) === "true",
    customRpcUrls: choice("CUSTOM_RPC_URLS", "public", ["public", "any", "off"]),
    customRpcPorts: read("CUSTOM_RPC_PORTS", defaultPorts, "a comma-separated list of ports", parsePorts),
    requestTimeoutMs: integer("REQUEST_TIMEOUT_MS", 10_000, 1, 600_000),
    quoteEngine: choice("QUOTE_ENGINE", "snapshot", quoteEngines),
    quoteVerifyRate: read("QUOTE_VERIFY_RATE", 0, "a number from 0 to 1", parseShare),
    quoteMaxAgeMs: integer("QUOTE_MAX_AGE_MS", 0, 1, 600_000) || undefined,
    quoteMaxStaleMs: integer("QUOTE_MAX_STALE_MS", 30_000, 1, 600_000),
    workers: integer("WORKERS", 1, 1, 256),
    logLevel: choice("LOG_LEVEL", "info", logLevels),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);

  function index(): Config["index"] {
    const now = Date.now();
    const slugs = new Set(networkOf("mainnet").chains.keys());
    const { file } = read<{ file: string | undefined }>(
      "INDEX",
      { file: undefined },
      "off or sqlite:<file>",
      parseIndexLocation,
    );
    const expected = "a date (2024-01-01) in the past, blocks of chains (ethereum:19000000), or both, comma-separated";
    const from = read("INDEX_FROM", defaultIndexFrom(now), expected, (text) => parseIndexFrom(text, slugs, now));
    return file === undefined ? undefined : { file, from };
  }

  function rateLimit(): Config["rateLimit"] {
    const requests = integer("IP_RATE_LIMIT_REQ_PER_SEC", 0, 1, 1_000_000);
    const windowMs = integer("IP_RATE_LIMIT_WINDOW_MS", 1000, 1, 86_400_000);
    return requests === 0 ? undefined : { requests, windowMs };
  }

  function rpcUrls(networkSlug: NetworkSlug, prefix: string): ReadonlyMap<string, readonly string[]> {
    const { chains } = networkOf(networkSlug);
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
        return [slug, read(name, publicUrls, expected, parseUrls)] as const;
      }),
    );
  }
}

function parseUrls(text: string): readonly string[] | undefined {
  const urls = text.split(",").map((url) => url.trim());
  return urls.every(isHttpUrl) ? urls : undefined;
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function parsePorts(text: string): readonly number[] | undefined {
  const ports = text.split(",").map((port) => (/^\s*[0-9]{1,5}\s*$/.test(port) ? Number(port) : 0));
  return ports.every((port) => port >= 1 && port <= 65535) ? ports : undefined;
}

function parseShare(text: string): number | undefined {
  return /^(?:0|1|0?\.[0-9]{1,9}|1\.0+)$/.test(text) ? Number(text) : undefined;
}

function parsePrices(text: string): ReadonlyMap<string, number> | undefined {
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
