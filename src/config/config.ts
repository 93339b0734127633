import type { NetworkSlug } from "../hop/networks.js";
import { foldName, isOneEditAway } from "../nearest-name.js";
import { getDefaultIndexStart, type IndexLocation, type IndexStart } from "../transfers/index/index-options.js";
import { type EnvironmentValues, environmentTable, listKnownNames, listRemovedVariables } from "./environment-table.js";
import type { Environment } from "./environment-variable.js";

/** Known names with fewer letters (HOST, PORT) are one edit away from variables of other programs. */
const MIN_LETTERS = 5;
/** Known names with fewer words (INDEX) begin variables of other programs. */
const MIN_WORDS = 3;
/** Names that Kubernetes gives every container for each service of its namespace. */
const SERVICE_LINK_NAME = /_SERVICE_|_PORT_/;
const SERVICE_LINK_PORT = /^(?:tcp|udp|sctp):\/\//;
const RPC_URL_PREFIX = /^(?:GOERLI_)?RPC_URL_/;

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
    const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
    super(`the configuration has ${count}:\n${problems.map((line) => `  - ${line}`).join("\n")}`);
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

/**
 * Finds variables whose names are near misses of known ones: one edit away, or a long one with words added or missing at
 * its end. All others belong to other programs.
 * @returns `problems`: near misses, since a security setting that is ignored would seem to work; `warnings`: RPC endpoints of
 *   chains that no network has. One line each, none of which contains a value
 */
export function findMisspeltVariables(environment: Environment, knownNames: readonly string[]) {
  const known = new Set(knownNames);
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const [name, value = ""] of Object.entries(environment)) {
    const isOfKubernetes = SERVICE_LINK_NAME.test(name) || SERVICE_LINK_PORT.test(value);
    if (known.has(name) || value.trim() === "" || isOfKubernetes) continue;
    const meant = knownNames.filter((candidate) => isNearMiss(name, candidate));
    if (meant.length > 0)
      problems.push(`${name} is not a variable of this service: did you mean ${meant.join(" or ")}?`);
    else if (RPC_URL_PREFIX.test(name)) warnings.push(`${name} has no effect: it names no chain of its network`);
  }
  return { problems, warnings };
}

function isNearMiss(name: string, known: string): boolean {
  const [folded, foldedKnown] = [foldName(name), foldName(known)];
  if (foldedKnown.length >= MIN_LETTERS && isOneEditAway(folded, foldedKnown)) return true;
  // RPC_URL_OPTIMISM_SEPOLIA is another chain.
  if (known.split("_").length < MIN_WORDS || RPC_URL_PREFIX.test(name)) return false;
  return name.startsWith(`${known}_`) || (name.includes("_") && known.startsWith(`${name}_`));
}
