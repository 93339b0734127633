import type { GetTransferStatusRequest } from "../../gen/hop/bridge/v1/bridge_pb.js";
import { isBytes32 } from "../chain/hex.js";
import { ServiceError } from "../errors.js";
import { type Chain, findChain, findChainBySlug, getNetwork, NETWORK_SLUGS, type Network } from "../hop/networks.js";
import { findToken, type Token } from "../hop/tokens.js";
import { suggestName } from "../nearest-name.js";
import type { TransferQuery } from "../transfers/sources/transfer-source.js";

// Each function parses one request field. It returns the value or throws a ServiceError with the name of the field.

const MAX_UINT256 = 2n ** 256n - 1n;
/** Number of digits of 2^256-1. */
const MAX_AMOUNT_DIGITS = 78;
/** Maximum length of a caller's value in an error message. */
const MAX_QUOTED_CHARS = 64;
/** Most messages in a list of a request. What reads requests stops there. */
export const MAX_LISTED_MESSAGES = 100;
const VIEWS = ["BASIC", "FULL"] as const;
const NO_URLS: ReadonlyMap<string, string> = new Map();
const NETWORKS: ReadonlyMap<string, Network> = new Map(NETWORK_SLUGS.map((slug) => [slug, getNetwork(slug)]));

/** Returns the error for a list of a request with too many items. */
export function createTooManyItemsError(field: string, max: number): ServiceError {
  return new ServiceError("INVALID_PARAMETER", `${field} has more than ${max} items`, { field });
}

/** Returns a value that must not be empty. @throws ServiceError MISSING_PARAMETER. */
export function requireParameter(field: string, value: string): string {
  if (value === "") throw new ServiceError("MISSING_PARAMETER", `${field} is required`, { field });
  return value;
}

/** Returns the network with a slug; mainnet for an empty one. @throws ServiceError UNSUPPORTED_NETWORK. */
export function parseNetwork(value: string): Network {
  const network = findNetwork(value);
  if (network !== undefined) return network;
  const problem = describeUnknownName("network", value, NETWORK_SLUGS);
  throw new ServiceError("UNSUPPORTED_NETWORK", problem, { field: "network" });
}

/** Returns the slug of a chain that a request names; undefined where the network or the chain is unknown. */
export function findChainSlug(network: string, name: string): string | undefined {
  const found = findNetwork(network);
  return found && findChain(found, name)?.slug;
}

function findNetwork(value: string): Network | undefined {
  return NETWORKS.get(value || "mainnet");
}

/** Returns the token with a symbol or alias. @throws ServiceError UNSUPPORTED_TOKEN. */
export function parseToken(network: Network, value: string): Token {
  const token = findToken(network, value);
  if (token !== undefined) return token;
  const problem = describeUnknownName("token", value, [...network.contracts.keys()], ` on ${network.slug}`);
  throw new ServiceError("UNSUPPORTED_TOKEN", problem, { field: "token" });
}

/** Returns the chain with a slug or alias, in any case, or with a chain ID. @throws ServiceError UNSUPPORTED_CHAIN. */
export function parseChain(network: Network, field: string, value: string): Chain {
  const chain = findChain(network, value);
  if (chain !== undefined) return chain;
  const problem = describeUnknownName(field, value, [...network.chains.keys()], ` on ${network.slug}`);
  throw new ServiceError("UNSUPPORTED_CHAIN", problem, { field });
}

/** Returns whether the view is FULL; it is BASIC when it is empty. @throws ServiceError INVALID_PARAMETER. */
export function parseIsFullView(value: string): boolean {
  return value !== "" && parseEnumValue("view", value, VIEWS) === "FULL";
}

/** Returns a value if it is one of these. @throws ServiceError INVALID_PARAMETER. */
export function parseEnumValue<T extends string>(field: string, value: string, values: readonly T[]): T {
  const found = values.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  throw new ServiceError("INVALID_PARAMETER", describeUnknownName(field, value, values), { field });
}

/** Parses an amount in the token's smallest unit, 1 to 2^256-1. @throws ServiceError INVALID_PARAMETER. */
export function parseAmount(value: string, field = "amount"): bigint {
  // The length is checked first, because converting millions of digits would block the event loop.
  if (value.length <= MAX_AMOUNT_DIGITS && /^[1-9][0-9]*$/.test(value)) {
    const amount = BigInt(value);
    if (amount <= MAX_UINT256) return amount;
  }
  const problem = `${field} is not a whole number from 1 to 2^256-1 in the token's smallest unit, in plain digits`;
  throw new ServiceError("INVALID_PARAMETER", problem + explainCommas(field, value), { field });
}

/** Parses an address; returns it in lower case. @throws ServiceError INVALID_PARAMETER. */
export function parseAddress(field: string, value: string): string {
  if (/^0[xX][0-9a-fA-F]{40}$/.test(value)) return value.toLowerCase();
  const problem = `${field} is not 20 bytes as 0x-prefixed hex`;
  throw new ServiceError("INVALID_PARAMETER", problem + explainCommas(field, value), { field });
}

/** Parses the hash of a transaction into lower case. @throws ServiceError INVALID_PARAMETER. */
export function parseTransactionHash(field: string, value: string): string {
  if (isBytes32(value)) return value.toLowerCase();
  const problem = `${field} is not 32 bytes as 0x-prefixed hex`;
  throw new ServiceError("INVALID_PARAMETER", problem + explainCommas(field, value), { field });
}

/** Parses a transfer ID as in TransferQuery, in lower case. @throws ServiceError INVALID_PARAMETER. */
export function parseTransferId(field: string, value: string): string {
  // A CCTP nonce is an unsigned 64-bit integer.
  if (/^(0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n) return value;
  return parseTransactionHash(field, value);
}

/**
 * Parses what identifies the transfer of a request: its ID, the hash of a transaction under either of its names, or both.
 * @throws ServiceError MISSING_PARAMETER or INVALID_PARAMETER
 */
export function parseTransferIdentifiers(
  request: Pick<GetTransferStatusRequest, "transferId" | "transferHash" | "transactionHash">,
): TransferQuery {
  const transferHash = parseHash("transferHash", request.transferHash);
  const transactionHash = parseHash("transactionHash", request.transactionHash);
  if (transferHash !== undefined && transactionHash !== undefined && transferHash !== transactionHash) {
    const message = "transferHash and transactionHash are names of the same parameter and must be equal";
    throw new ServiceError("INVALID_PARAMETER", message, { field: "transactionHash" });
  }
  const transferId = request.transferId === "" ? undefined : parseTransferId("transferId", request.transferId);
  const hash = transferHash ?? transactionHash;
  if (transferId === undefined && hash === undefined) {
    throw new ServiceError("MISSING_PARAMETER", "transferId or transferHash is required", { field: "transferId" });
  }
  return { transferId, transactionHash: hash };
}

function parseHash(field: string, value: string): string | undefined {
  return value === "" ? undefined : parseTransactionHash(field, value);
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
    const chain = findChainBySlug(network, name);
    if (chain === undefined) {
      const hint = suggestSlug(network, name);
      const message = `rpcUrl names chain ${quoteForError(name)}, which ${network.slug} does not have${hint}`;
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

/** Says which names are valid, and which one is near. @param where completes the sentence */
function describeUnknownName(field: string, value: string, names: readonly string[], where = ""): string {
  const hint = explainCommas(field, value) || suggestName(value, names);
  return `${field} ${quoteForError(value)} is not one of ${names.join(", ")}${where}${hint}`;
}

/** Says how to write a list to a caller who wrote one with commas; empty for other values. */
function explainCommas(field: string, value: string): string {
  return value.includes(",") ? `: commas do not separate values; repeat ${field} for each, where it takes several` : "";
}

/** Returns a hint for a key of `rpcUrl`, where neither another case nor a chain ID is allowed. */
function suggestSlug(network: Network, name: string): string {
  return suggestName(findChain(network, name)?.slug ?? name, network.chains.keys());
}

/** Formats a caller's value for an error message: short, printable, quoted. */
function quoteForError(value: string): string {
  const short = value.length > MAX_QUOTED_CHARS ? `${value.slice(0, MAX_QUOTED_CHARS)}...` : value;
  return JSON.stringify(short.replace(/[^\x20-\x7e]/g, "?"));
}
