import { ServiceError } from "../errors.js";
import { type Chain, findChain, getNetwork, NETWORK_SLUGS, type Network } from "../hop/networks.js";
import { findToken, type Token } from "../hop/tokens.js";

// Each function parses one request field. It returns the value or throws a ServiceError with the name of the field.

const MAX_UINT256 = 2n ** 256n - 1n;
/** Number of digits of 2^256-1. */
const MAX_AMOUNT_DIGITS = 78;
/** Maximum length of a caller's value in an error message. */
const MAX_QUOTED_CHARS = 64;
const NO_URLS: ReadonlyMap<string, string> = new Map();

/** Returns a value that must not be empty. @throws ServiceError MISSING_PARAMETER. */
export function requireParameter(field: string, value: string): string {
  if (value === "") throw new ServiceError("MISSING_PARAMETER", `${field} is required`, { field });
  return value;
}

/** Returns the network with a slug; mainnet for an empty one. @throws ServiceError UNSUPPORTED_NETWORK. */
export function parseNetwork(value: string): Network {
  const slug = NETWORK_SLUGS.find((networkSlug) => networkSlug === (value || "mainnet"));
  if (slug === undefined) {
    const message = `network ${quoteForError(value)} is not one of ${NETWORK_SLUGS.join(", ")}`;
    throw new ServiceError("UNSUPPORTED_NETWORK", message, { field: "network" });
  }
  return getNetwork(slug);
}

/** Returns the token with a symbol or alias. @throws ServiceError UNSUPPORTED_TOKEN. */
export function parseToken(network: Network, value: string): Token {
  const token = findToken(network, value);
  if (token === undefined) {
    const symbols = [...network.contracts.keys()].join(", ");
    const message = `token ${quoteForError(value)} is not one of ${symbols} on ${network.slug}`;
    throw new ServiceError("UNSUPPORTED_TOKEN", message, { field: "token" });
  }
  return token;
}

/** Returns the chain with a slug or alias. @throws ServiceError UNSUPPORTED_CHAIN. */
export function parseChain(network: Network, field: string, value: string): Chain {
  const chain = findChain(network, value);
  if (chain === undefined) {
    const slugs = [...network.chains.keys()].join(", ");
    const message = `${field} ${quoteForError(value)} is not one of ${slugs} on ${network.slug}`;
    throw new ServiceError("UNSUPPORTED_CHAIN", message, { field });
  }
  return chain;
}

/** Returns whether the view is FULL; it is BASIC when it is empty. @throws ServiceError INVALID_PARAMETER. */
export function parseIsFullView(value: string): boolean {
  if (value === "" || value === "BASIC") return false;
  if (value === "FULL") return true;
  throw new ServiceError("INVALID_PARAMETER", `view ${quoteForError(value)} is not one of BASIC, FULL`, {
    field: "view",
  });
}

/** Parses an amount in the token's smallest unit, 1 to 2^256-1. @throws ServiceError INVALID_PARAMETER. */
export function parseAmount(value: string, field = "amount"): bigint {
  // The length is checked first, because converting millions of digits would block the event loop.
  if (value.length <= MAX_AMOUNT_DIGITS && /^[1-9][0-9]*$/.test(value)) {
    const amount = BigInt(value);
    if (amount <= MAX_UINT256) return amount;
  }
  const message = `${field} is not a whole number from 1 to 2^256-1 in the token's smallest unit, in plain digits`;
  throw new ServiceError("INVALID_PARAMETER", message, { field });
}

/** Parses an address; returns it in lower case. @throws ServiceError INVALID_PARAMETER. */
export function parseAddress(field: string, value: string): string {
  if (/^0[xX][0-9a-fA-F]{40}$/.test(value)) return value.toLowerCase();
  throw new ServiceError("INVALID_PARAMETER", `${field} is not 20 bytes as 0x-prefixed hex`, { field });
}

/** Validates a slippage tolerance in percent, 0 <= slippage < 100. @throws ServiceError MISSING_PARAMETER or INVALID_PARAMETER. */
export function parseSlippage(value: number | undefined): number {
  const field = "slippage";
  if (value === undefined) throw new ServiceError("MISSING_PARAMETER", `${field} is required`, { field });
  if (!(value >= 0 && value < 100) || Object.is(value, -0)) {
    const message = "slippage is not a plain decimal number of percent, at least 0 and less than 100";
    throw new ServiceError("INVALID_PARAMETER", message, { field });
  }
  return value;
}

/** Returns the custom RPC URLs of a request by chain slug. @throws ServiceError UNSUPPORTED_CHAIN or INVALID_PARAMETER. */
export function parseRpcUrls(network: Network, urls: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const entries = Object.entries(urls);
  if (entries.length === 0) return NO_URLS;
  const bySlug = new Map<string, string>();
  for (const [name, url] of entries) {
    const field = `rpcUrl[${name}]`;
    const chain = findChain(network, name);
    if (chain === undefined) {
      const message = `rpcUrl names chain ${quoteForError(name)}, which ${network.slug} does not have`;
      throw new ServiceError("UNSUPPORTED_CHAIN", message, {
        field: name.length > MAX_QUOTED_CHARS ? "rpcUrl" : field,
      });
    }
    const { slug } = chain;
    if (bySlug.has(slug)) throw new ServiceError("INVALID_PARAMETER", `${slug} has two RPC URLs`, { field });
    if (url !== "") bySlug.set(slug, url);
  }
  return bySlug;
}

/** Formats a caller's value for an error message: short, printable, quoted. */
function quoteForError(value: string): string {
  const short = value.length > MAX_QUOTED_CHARS ? `${value.slice(0, MAX_QUOTED_CHARS)}...` : value;
  return JSON.stringify(short.replace(/[^\x20-\x7e]/g, "?"));
}
