import { isAddressHex, isBytes32 } from "../../chain/hex.js";
import type { ContractRegistry, TransferKind } from "../contract-registry.js";
import { type Chain, findChain, type Network } from "../networks.js";
import { findToken, getTokenDecimals } from "../tokens.js";

/** What the explorer says of a transfer. Hex is lower case, amounts are in the token's smallest unit; 0: not known. */
export interface ExplorerRecord {
  readonly kind: TransferKind;
  /** The explorer's own id: a transfer ID, a decimal CCTP nonce, or from L1 one that nobody else knows. */
  readonly id: string;
  readonly token: string;
  readonly source: Chain;
  readonly destination: Chain;
  readonly transactionHash: string;
  /** When it was sent, Unix seconds. */
  readonly timestamp: number;
  /** Who sent that transaction. */
  readonly account: string;
  readonly recipient: string;
  readonly amount: bigint;
  readonly amountOutMin: bigint;
  /** Unix seconds. */
  readonly deadline: bigint;
  readonly bonderFee: bigint;
  readonly isReceived: boolean;
  /** The transaction that delivered it, where that is known. */
  readonly bondTransactionHash: string | undefined;
  /** Who sent that one, or the contract through which it did. */
  readonly bonder: string | undefined;
  /** Price of the token when it was sent, in USD. */
  readonly priceUsd: number | undefined;
}

type RawFields = Readonly<Record<string, unknown>>;

/** What is wrong with a record does not matter: it is dropped. */
class InvalidRecordError extends Error {
  override readonly name = "InvalidRecordError";
}

/** What crosses by CCTP, and what the same name means where it crosses by a bridge: the explorer says USDC to both. */
const CCTP_TOKEN = "USDC";
const BRIDGED_TOKEN = "USDC.e";

const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_CCTP_NONCE = 2n ** 64n - 1n;
/** In seconds the year 5138; in milliseconds long ago. */
const MAX_TIMESTAMP_SECONDS = 10 ** 11;

/**
 * Reads one record of the explorer; undefined for one that is no transfer, or not a possible one. A number may come as a
 * text and a text as a number, and null and "" are the same as nothing.
 */
export function parseExplorerRecord(
  network: Network,
  book: ContractRegistry,
  json: unknown,
): ExplorerRecord | undefined {
  if (typeof json !== "object" || json === null) return undefined;
  try {
    return parseRecordFields(network, book, json as RawFields);
  } catch (error) {
    if (error instanceof InvalidRecordError) return undefined;
    throw error;
  }
}

function parseRecordFields(network: Network, book: ContractRegistry, fields: RawFields): ExplorerRecord {
  const source = resolveChain(network, fields.sourceChainId, fields.sourceChainSlug);
  const destination = resolveChain(network, fields.destinationChainId, fields.destinationChainSlug);
  const id = parseText(fields.transferId).toLowerCase();
  const kind = parseTransferKind(id, source);
  const token = parseTokenSymbol(network, kind, parseText(fields.token));
  const place = (chain: Chain): unknown =>
    kind === "cctp" ? book.findMessageTransmitter(chain) : book.findBridge(token, chain);
  validate(source !== destination && place(source) !== undefined && place(destination) !== undefined);

  const timestamp = Number(parseUint(fields.timestamp));
  validate(timestamp > 0 && timestamp < MAX_TIMESTAMP_SECONDS);
  const [amountOutMin, deadline] = [fields.amountOutMin, fields.deadline].map((each) => parseOptional(each, parseUint));
  const wantsSwap = (amountOutMin ?? 0n) > 0n || (deadline ?? 0n) > 0n;
  const isReceived = parseOptional(fields.bonded, parseFlag) ?? false;
  const bondTransactionHash = parseOptional(fields.bondTransactionHash, parseHash);
  const bonder = parseOptional(fields.bonderAddress, parseAddress);
  // Whether it has arrived is what is asked for: who says both yes and no says nothing.
  validate(isReceived || (bondTransactionHash === undefined && bonder === undefined));
  if (kind === "l2" && destination.isL1 && !isReceived) {
    // On L1 these two decide whether a bonder can deliver it at all.
    validate(wantsSwap || (amountOutMin !== undefined && deadline !== undefined));
  }
  const isUnbondable = kind === "l2" && destination.isL1 && wantsSwap;
  validate(isUnbondable || !parseOptional(fields.unbondable, parseFlag));

  const amount = parseUint(fields.amount);
  return {
    kind,
    id,
    token,
    source,
    destination,
    transactionHash: parseHash(fields.transactionHash),
    timestamp,
    account: parseAddress(fields.accountAddress),
    recipient: parseAddress(fields.recipientAddress),
    amount,
    amountOutMin: amountOutMin ?? 0n,
    deadline: deadline ?? 0n,
    bonderFee: parseOptional(fields.bonderFee, parseUint) ?? 0n,
    isReceived,
    bondTransactionHash,
    bonder,
    priceUsd: parsePriceUsd(fields, Number(`${amount}e-${getTokenDecimals(token)}`)),
  };
}

function parseTransferKind(id: string, source: Chain): TransferKind {
  if (/^(0|[1-9][0-9]{0,19})$/.test(id) && BigInt(id) <= MAX_CCTP_NONCE) return "cctp";
  // From L1 there is no transfer ID: the explorer's own begins with a hash and may go on.
  validate(source.isL1 ? /^0x[0-9a-f]{64,}(-[0-9]+)?$/.test(id) : isBytes32(id));
  return source.isL1 ? "l1" : "l2";
}

function parseTokenSymbol(network: Network, kind: TransferKind, name: string): string {
  const symbol = findToken(network, name)?.symbol;
  validate(symbol !== undefined);
  const isUsdc = symbol === CCTP_TOKEN || symbol === BRIDGED_TOKEN;
  validate(isUsdc || kind !== "cctp");
  if (!isUsdc) return symbol;
  return kind === "cctp" ? CCTP_TOKEN : BRIDGED_TOKEN;
}

/** The chain that a number and a slug name, of which one may be missing. */
function resolveChain(network: Network, id: unknown, slug: unknown): Chain {
  const all = [...network.chains.values()];
  const named = [
    ...(isAbsent(id) ? [] : [all.find(({ chainId }) => BigInt(chainId) === parseUint(id))]),
    ...(isAbsent(slug) ? [] : [findChain(network, parseText(slug))]),
  ];
  const [chain] = named;
  validate(chain !== undefined && named.every((each) => each === chain));
  return chain;
}

/** USD for one whole token, of which so many were sent. */
function parsePriceUsd({ tokenPriceUsd, amountUsd }: RawFields, tokens: number): number | undefined {
  const isPrice = (price: number): boolean => Number.isFinite(price) && price > 0;
  return [parseNumber(tokenPriceUsd), parseNumber(amountUsd) / tokens].find(isPrice);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

function parseOptional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return isAbsent(value) ? undefined : read(value);
}

function parseText(value: unknown): string {
  const text = Number.isSafeInteger(value) ? String(value) : value;
  validate(typeof text === "string" && text !== "");
  return text;
}

/** An unsigned integer below 2^256. A number that a double does not hold exactly is none. */
function parseUint(value: unknown): bigint {
  const text = parseText(value);
  validate(/^(0|[1-9][0-9]{0,77})$/.test(text));
  const uint = BigInt(text);
  validate(uint <= MAX_UINT256);
  return uint;
}

function parseHash(value: unknown): string {
  const text = parseText(value).toLowerCase();
  validate(isBytes32(text));
  return text;
}

function parseAddress(value: unknown): string {
  const text = parseText(value).toLowerCase();
  validate(isAddressHex(text));
  return text;
}

function parseFlag(value: unknown): boolean {
  const text = String(value).toLowerCase();
  validate(/^(true|false|1|0)$/.test(text));
  return text === "true" || text === "1";
}

/** NaN where it is no number. A price is no reason to doubt the rest. */
function parseNumber(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^[0-9.]+(e[+-]?[0-9]+)?$/i.test(value) ? Number(value) : Number.NaN;
}

function validate(condition: boolean): asserts condition {
  if (!condition) throw new InvalidRecordError();
}
