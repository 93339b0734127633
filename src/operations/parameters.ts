import { ServiceError } from "../errors.js";
import { type Chain, findChain, getNetwork, NETWORK_SLUGS, type Network } from "../hop/networks.js";
import { findToken, type Token } from "../hop/tokens.js";

// Every function here reads one request field: it gives the value or throws a ServiceError that names the field.

const MAX_UINT256 = 2n ** 256n - 1n;
/** Digits of 2^256-1. */
const MAX_AMOUNT_DIGITS = 78;
/** Most characters of a caller's value that an error repeats. */
const MAX_ECHOED_CHARS = 64;

/** @throws ServiceError MISSING_PARAMETER when the value is empty. */
export function requireParameter(field: string, value: string): string {
  if (value === "") throw new ServiceError("MISSING_PARAMETER", `${field} is required`, { field });
  return value;
}

/** Empty is mainnet. @throws ServiceError UNSUPPORTED_NETWORK. */
export function parseNetwork(value: string): Network {
  const slug = NETWORK_SLUGS.find((known) => known === (value || "mainnet"));
  if (slug === undefined) {
    const message = `network ${quoteForError(value)} is none of ${NETWORK_SLUGS.join(", ")}`;
    throw new ServiceError("UNSUPPORTED_NETWORK", message, { field: "network" });
  }
  return getNetwork(slug);
}

/** @throws ServiceError UNSUPPORTED_TOKEN. */
export function parseToken(network: Network, value: string): Token {
  const token = findToken(network, value);
  if (token === undefined) {
    const known = [...network.contracts.keys()].join(", ");
    const message = `token ${quoteForError(value)} is none of ${known} on ${network.slug}`;
    throw new ServiceError("UNSUPPORTED_TOKEN", message, { field: "token" });
  }
  return token;
}

/** @throws ServiceError UNSUPPORTED_CHAIN. */
export function parseChain(network: Network, field: string, value: string): Chain {
  const chain = findChain(network, value);
  if (chain === undefined) {
    const known = [...network.chains.keys()].join(", ");
    const message = `${field} ${quoteForError(value)} is none of ${known} on ${network.slug}`;
    throw new ServiceError("UNSUPPORTED_CHAIN", message, { field });
  }
  return chain;
}

/** An amount in the token's smallest unit, 1 to 2^256-1. @throws ServiceError INVALID_PARAMETER. */
export function parseAmount(value: string): bigint {
  // The length is checked first: turning millions of digits into a number would hold everybody up.
  if (value.length <= MAX_AMOUNT_DIGITS && /^[1-9][0-9]*$/.test(value)) {
    const amount = BigInt(value);
    if (amount <= MAX_UINT256) return amount;
  }
  const message = "amount is not a whole number from 1 to 2^256-1 in the token's smallest unit, in plain digits";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "amount" });
}

/** Percent, 0 <= slippage < 100. @throws ServiceError MISSING_PARAMETER or INVALID_PARAMETER. */
export function parseSlippage(value: number | undefined): number {
  const field = "slippage";
  if (value === undefined) throw new ServiceError("MISSING_PARAMETER", `${field} is required`, { field });
  if (!(value >= 0 && value < 100) || Object.is(value, -0)) {
    const message = "slippage is not a plain decimal number of percent, at least 0 and less than 100";
    throw new ServiceError("INVALID_PARAMETER", message, { field });
  }
  return value;
}

/** RPC endpoints of this request by chain slug. @throws ServiceError UNSUPPORTED_CHAIN or INVALID_PARAMETER. */
export function parseRpcUrls(network: Network, urls: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const bySlug = new Map<string, string>();
  for (const [name, url] of Object.entries(urls)) {
    const field = `rpcUrl[${name}]`;
    const chain = findChain(network, name);
    if (chain === undefined) {
      const message = `rpcUrl names chain ${quoteForError(name)}, which ${network.slug} does not have`;
      throw new ServiceError("UNSUPPORTED_CHAIN", message, {
        field: name.length > MAX_ECHOED_CHARS ? "rpcUrl" : field,
      });
    }
    const { slug } = chain;
    if (bySlug.has(slug)) throw new ServiceError("INVALID_PARAMETER", `${slug} has two RPC URLs`, { field });
    if (url !== "") bySlug.set(slug, url);
  }
  return bySlug;
}

/** A caller's value as an error may repeat it: short, printable, quoted. */
function quoteForError(value: string): string {
  const short = value.length > MAX_ECHOED_CHARS ? `${value.slice(0, MAX_ECHOED_CHARS)}...` : value;
  return JSON.stringify(short.replace(/[^\x20-\x7e]/g, "?"));
}
