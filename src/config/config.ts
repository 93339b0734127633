import type { NetworkSlug } from "../hop/networks.js";
import { getDefaultIndexStart, type IndexLocation, type IndexStart } from "../transfers/index/index-options.js";
import { type EnvironmentValues, environmentTable, listKnownNames, listRemovedVariables } from "./environment-table.js";
import type { Environment } from "./environment-variable.js";
import { findMisspeltVariables } from "./misspelt-variables.js";

/** Values that are combined with others in the configuration. */
type CombinedKey =
  | "mainnetRpcUrls"
  | "goerliRpcUrls"
  | "indexStorage"
  | "indexReadLocation"
  | "indexListenLocation"
  | "indexPoolSize"
  | "indexStatementTimeoutMs"
  | "indexStart"
  | "rateLimitRequests"
  | "rateLimitWindowMs";

/** The validated configuration. */
export interface Config extends Omit<EnvironmentValues, CombinedKey> {
  /** RPC endpoints by network and chain slug, in order of preference. The URLs may contain keys: never log them. */
  readonly rpcUrls: Readonly<Record<NetworkSlug, ReadonlyMap<string, readonly string[]>>>;
  /** Place and start of the transfer index; undefined: there is no index. The place may contain a password: never log it. */
  readonly index: { readonly location: IndexLocation; readonly from: IndexStart } | undefined;
  /** Requests per caller and window; undefined: no limit. */
  readonly rateLimit: { readonly requests: number; readonly windowMs: number } | undefined;
  /** What the operator should know, one line each. No line contains a value. */
  readonly warnings: readonly string[];
}

/** Lists every invalid variable, one line each. No line contains a value, which may be a key. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length} problem(s):\n${problems.map((line) => `  - ${line}`).join("\n")}`);
    this.problems = problems;
  }
}

/**
 * Reads the configuration from the environment. An empty variable counts as not set.
 * @throws ConfigError with every problem
 */
export function loadConfig(environment: Environment): Config {
  const misspelt = findMisspeltVariables(environment, listKnownNames());
  const read = readValues(environment, misspelt.problems);
  const { mainnetRpcUrls, goerliRpcUrls, indexStart, rateLimitRequests, rateLimitWindowMs, ...others } = read;
  const { indexStorage, indexReadLocation, indexListenLocation, indexPoolSize, indexStatementTimeoutMs, ...values } =
    others;
  const location = combineIndexLocation(read);
  assertEnoughEndpoints(read);
  return Object.freeze({
    ...values,
    rpcUrls: { mainnet: mainnetRpcUrls, goerli: goerliRpcUrls },
    index: location && { location, from: indexStart ?? getDefaultIndexStart(Date.now()) },
    rateLimit:
      rateLimitRequests === undefined ? undefined : { requests: rateLimitRequests, windowMs: rateLimitWindowMs },
    warnings: [...listRemovedVariables(environment), ...misspelt.warnings],
  });
}

/** @throws ConfigError when a chain of mainnet has fewer endpoints than have to agree */
function assertEnoughEndpoints({ rpcQuorum, mainnetRpcUrls }: EnvironmentValues): void {
  const problems = [...mainnetRpcUrls].flatMap(([slug, urls]) => {
    const { size } = new Set(urls);
    if (size >= rpcQuorum) return [];
    return [
      `RPC_QUORUM=${rpcQuorum} needs ${rpcQuorum} endpoints of ${slug}; RPC_URL_${slug.toUpperCase()} has ${size}`,
    ];
  });
  if (rpcQuorum > 1 && problems.length > 0) throw new ConfigError(problems);
}

/** @throws ConfigError when a variable for PostgreSQL is set for an index that is not there */
function combineIndexLocation(values: EnvironmentValues): IndexLocation | undefined {
  const { indexStorage, indexReadLocation, indexListenLocation, indexPoolSize, indexStatementTimeoutMs } = values;
  if (indexStorage?.kind === "postgres")
    return {
      kind: "postgres",
      primary: indexStorage.location,
      read: indexReadLocation,
      listen: indexListenLocation,
      poolSize: indexPoolSize,
      statementTimeoutMs: indexStatementTimeoutMs,
    };
  if (indexReadLocation !== undefined || indexListenLocation !== undefined)
    throw new ConfigError(["INDEX_READ_URL and INDEX_LISTEN_URL need INDEX=postgres://..."]);
  return indexStorage;
}

function readValues(environment: Environment, otherProblems: readonly string[]): EnvironmentValues {
  const results = Object.entries(environmentTable).map(([key, variable]) => [key, variable.read(environment)] as const);
  const problems = [...otherProblems, ...results.flatMap(([, result]) => result.problems)];
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(results.map(([key, { value }]) => [key, value])) as EnvironmentValues;
}
