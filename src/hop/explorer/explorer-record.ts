import type { BridgeBook, SenderKind } from "../contract-registry.js";
import { type Chain, findChain, type Network } from "../networks.js";
import { decimalsOf, findToken } from "../tokens.js";

/** What the explorer says of a transfer. Hex is lower case, amounts are in the token's smallest unit; 0: not known. */
export interface ExplorerRecord {
  readonly kind: SenderKind;
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

type Fields = Readonly<Record<string, unknown>>;

/** What is wrong with a record does not matter: it is dropped. */
class Unbelievable extends Error {
  override readonly name = "Unbelievable";
}

/** What crosses by CCTP, and what the same name means where it crosses by a bridge: the explorer says USDC to both. */
const cctpToken = "USDC";
const bridgedToken = "USDC.e";

const maxUint = 2n ** 256n - 1n;
const maxNonce = 2n ** 64n - 1n;
/** In seconds the year 5138; in milliseconds long ago. */
const maxTimestamp = 10 ** 11;

/**
 * Reads one record of the explorer; undefined for one that is no transfer, or not a possible one. A number may come as a
 * text and a text as a number, and null and "" are the same as nothing.
 */
export function parseExplorerRecord(network: Network, book: BridgeBook, json: unknown): ExplorerRecord | undefined {
  if (typeof json !== "object" || json === null) return undefined;
  try {
    return readRecord(network, book, json as Fields);
  } catch (error) {
    if (error instanceof Unbelievable) return undefined;
    throw error;
  }
}

function readRecord(network: Network, book: BridgeBook, fields: Fields): ExplorerRecord {
  const source = chainOf(network, fields.sourceChainId, fields.sourceChainSlug);
  const destination = chainOf(network, fields.destinationChainId, fields.destinationChainSlug);
  const id = textOf(fields.transferId).toLowerCase();
  const kind = kindOf(id, source);
  const token = tokenOf(network, kind, textOf(fields.token));
  const place = (chain: Chain): unknown =>
    kind === "cctp" ? book.messageTransmitter(chain) : book.bridge(token, chain);
  believe(source !== destination && place(source) !== undefined && place(destination) !== undefined);

  const timestamp = Number(uintOf(fields.timestamp));
  believe(timestamp > 0 && timestamp < maxTimestamp);
  const [amountOutMin, deadline] = [fields.amountOutMin, fields.deadline].map((each) => optional(each, uintOf));
  const wantsSwap = (amountOutMin ?? 0n) > 0n || (deadline ?? 0n) > 0n;
  const isReceived = optional(fields.bonded, flagOf) ?? false;
  const bondTransactionHash = optional(fields.bondTransactionHash, hashOf);
  const bonder = optional(fields.bonderAddress, addressOf);
  // Whether it has arrived is what is asked for: who says both yes and no says nothing.
  believe(isReceived || (bondTransactionHash === undefined && bonder === undefined));
  if (kind === "l2" && destination.isL1 && !isReceived) {
    // On L1 these two decide whether a bonder can deliver it at all.
    believe(wantsSwap || (amountOutMin !== undefined && deadline !== undefined));
  }
  const isUnbondable = kind === "l2" && destination.isL1 && wantsSwap;
  believe(isUnbondable || !optional(fields.unbondable, flagOf));

  const amount = uintOf(fields.amount);
  return {
    kind,
    id,
    token,
    source,
    destination,
    transactionHash: hashOf(fields.transactionHash),
    timestamp,
    account: addressOf(fields.accountAddress),
    recipient: addressOf(fields.recipientAddress),
    amount,
    amountOutMin: amountOutMin ?? 0n,
    deadline: deadline ?? 0n,
    bonderFee: optional(fields.bonderFee, uintOf) ?? 0n,
    isReceived,
    bondTransactionHash,
    bonder,
    priceUsd: priceOf(fields, Number(`${amount}e-${decimalsOf(token)}`)),
  };
}

function kindOf(id: string, source: Chain): SenderKind {
  if (/^(0|[1-9][0-9]{0,19})$/.test(id) && BigInt(id) <= maxNonce) return "cctp";
  // From L1 there is no transfer ID: the explorer's own begins with a hash and may go on.
  believe((source.isL1 ? /^0x[0-9a-f]{64,}(-[0-9]+)?$/ : /^0x[0-9a-f]{64}$/).test(id));
  return source.isL1 ? "l1" : "l2";
}

function tokenOf(network: Network, kind: SenderKind, name: string): string {
  const symbol = findToken(network, name)?.symbol;
  believe(symbol !== undefined);
  const isUsdc = symbol === cctpToken || symbol === bridgedToken;
  believe(isUsdc || kind !== "cctp");
  if (!isUsdc) return symbol;
  return kind === "cctp" ? cctpToken : bridgedToken;
}

/** The chain that a number and a slug name, of which one may be missing. */
function chainOf(network: Network, id: unknown, slug: unknown): Chain {
  const all = [...network.chains.values()];
  const named = [
    ...(isAbsent(id) ? [] : [all.find(({ chainId }) => BigInt(chainId) === uintOf(id))]),
    ...(isAbsent(slug) ? [] : [findChain(network, textOf(slug))]),
  ];
  const [chain] = named;
  believe(chain !== undefined && named.every((each) => each === chain));
  return chain;
}

/** USD for one whole token, of which so many were sent. */
function priceOf({ tokenPriceUsd, amountUsd }: Fields, tokens: number): number | undefined {
  const isPrice = (price: number): boolean => Number.isFinite(price) && price > 0;
  return [numberOf(tokenPriceUsd), numberOf(amountUsd) / tokens].find(isPrice);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

function optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return isAbsent(value) ? undefined : read(value);
}

function textOf(value: unknown): string {
  const text = Number.isSafeInteger(value) ? String(value) : value;
  believe(typeof text === "string" && text !== "");
  return text;
}

/** An unsigned integer below 2^256. A number that a double does not hold exactly is none. */
function uintOf(value: unknown): bigint {
  const text = textOf(value);
  believe(/^(0|[1-9][0-9]{0,77})$/.test(text));
  const uint = BigInt(text);
  believe(uint <= maxUint);
  return uint;
}

function hashOf(value: unknown): string {
  const text = textOf(value).toLowerCase();
  believe(/^0x[0-9a-f]{64}$/.test(text));
  return text;
}

function addressOf(value: unknown): string {
  const text = textOf(value).toLowerCase();
  believe(/^0x[0-9a-f]{40}$/.test(text));
  return text;
}

function flagOf(value: unknown): boolean {
  const text = String(value).toLowerCase();
  believe(/^(true|false|1|0)$/.test(text));
  return text === "true" || text === "1";
}

/** NaN where it is no number. A price is no reason to doubt the rest. */
function numberOf(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^[0-9.]+(e[+-]?[0-9]+)?$/i.test(value) ? Number(value) : Number.NaN;
}

function believe(condition: boolean): asserts condition {
  if (!condition) throw new Unbelievable();
}
