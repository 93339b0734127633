import { foldName, isOneEditAway } from "../nearest-name.js";
import type { Environment } from "./environment-variable.js";

/** Known names with fewer letters (HOST, PORT) are one edit away from variables of other programs. */
const MIN_LETTERS = 5;
/** Known names with fewer words (INDEX) begin variables of other programs. */
const MIN_WORDS = 3;
/** Names that Kubernetes gives every container for each service of its namespace. */
const SERVICE_LINK_NAME = /_SERVICE_|_PORT_/;
const SERVICE_LINK_PORT = /^(?:tcp|udp|sctp):\/\//;
const RPC_URL_PREFIX = /^(?:GOERLI_)?RPC_URL_/;

/** What is wrong with the names of variables, one line each. No line contains a value. */
interface MisspeltVariables {
  /** Near misses: a security setting that is ignored would seem to work. */
  readonly problems: readonly string[];
  /** RPC endpoints of chains that no network has. */
  readonly warnings: readonly string[];
}

/**
 * Finds variables whose names are near misses of known ones: one edit away, or a long one with words added or missing at
 * its end. All others belong to other programs.
 */
export function findMisspeltVariables(environment: Environment, knownNames: readonly string[]): MisspeltVariables {
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
