import { isAddressHex, isBytes32 } from "../chain/hex.js";
import type { ContractRegistry, TransferKind } from "./contract-registry.js";
import { type Chain, findChain, type Network } from "./networks.js";
import { findToken, getTokenDecimals } from "./tokens.js";
import type { TransferSentEvent } from "./transfer-events.js";

/** A transfer as the explorer describes it. Hex is lower case, amounts are in the token's smallest unit; 0: unknown. */
export interface ExplorerRecord {
  readonly kind: TransferKind;
  /** Transfer ID or decimal CCTP nonce; from L1, an id that only the explorer uses. */
  readonly id: string;
  readonly token: string;
  readonly source: Chain;
  readonly destination: Chain;
  readonly transactionHash: string;
  /** Unix seconds of the sending transaction. */
  readonly timestamp: number;
  /** Sender of that transaction. */
  readonly account: string;
  /** Without the relayer, which the explorer does not report. */
  readonly event: TransferSentEvent;
  readonly isReceived: boolean;
  /** The delivering transaction, if known. */
  readonly bondTransactionHash: string | undefined;
  /** Sender of the delivering transaction, or the contract that it called. */
  readonly bonder: string | undefined;
  /** USD price of the token at the time of the transfer. */
  readonly priceUsd: number | undefined;
}

type RawFields = Readonly<Record<string, unknown>>;

/** An invalid record is dropped; the reason does not matter. */
class InvalidRecordError extends Error {
  override readonly name = "InvalidRecordError";
}

/** The explorer calls both tokens USDC: the one that CCTP transfers and the one that Hop's bridge transfers. */
const CCTP_TOKEN = "USDC";
const BRIDGED_TOKEN = "USDC.e";

const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_CCTP_NONCE = 2n ** 64n - 1n;
/** The year 5138 in seconds; excludes timestamps in milliseconds. */
const MAX_TIMESTAMP_SECONDS = 10 ** 11;
/** Plausibility limit, the same as for prices from the price document (src/prices/token-prices.ts). */
const MAX_PRICE_USD = 1e9;

/**
 * Parses one record of the explorer; returns undefined for one that is not a possible transfer. Numbers may be strings and
 * vice versa; null and "" mean absent.
 */
export function parseExplorerRecord(
  network: Network,
  registry: ContractRegistry,
  json: unknown,
): ExplorerRecord | undefined {
  if (typeof json !== "object" || json === null) return undefined;
  try {
    return parseRecordFields(network, registry, json as RawFields);
  } catch (error) {
    if (error instanceof InvalidRecordError) return undefined;
    throw error;
  }
}

function parseRecordFields(network: Network, registry: ContractRegistry, fields: RawFields): ExplorerRecord {
  const source = resolveChain(network, fields.sourceChainId, fields.sourceChainSlug);
  const destination = resolveChain(network, fields.destinationChainId, fields.destinationChainSlug);
  const id = parseText(fields.transferId).toLowerCase();
  const kind = parseTransferKind(id, source);
  const token = parseTokenSymbol(network, kind, parseText(fields.token));
  const findContract = (chain: Chain): unknown =>
    kind === "cctp" ? registry.findMessageTransmitter(chain) : registry.findBridge(token, chain);
  validate(source !== destination && findContract(source) !== undefined && findContract(destination) !== undefined);

  const timestamp = Number(parseUint(fields.timestamp));
  validate(timestamp > 0 && timestamp < MAX_TIMESTAMP_SECONDS);
  const [amountOutMin, deadline] = [fields.amountOutMin, fields.deadline].map((value) =>
    parseOptional(value, parseUint),
  );
  const wantsSwap = (amountOutMin ?? 0n) > 0n || (deadline ?? 0n) > 0n;
  const isReceived = parseOptional(fields.bonded, parseFlag) ?? false;
  const bondTransactionHash = parseOptional(fields.bondTransactionHash, parseHash);
  const bonder = parseOptional(fields.bonderAddress, parseAddress);
  // The delivery state is what callers need, so a record must not contradict itself about it.
  validate(isReceived || (bondTransactionHash === undefined && bonder === undefined));
  if (kind === "l2" && destination.isL1 && !isReceived) {
    // On L1, these two decide whether the transfer can be bonded.
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
    event: {
      transferId: kind === "l1" ? undefined : id,
      destinationChainId: destination.chainId,
      recipient: parseAddress(fields.recipientAddress),
      amount,
      amountOutMin: amountOutMin ?? 0n,
      deadline: deadline ?? 0n,
      bonderFee: parseOptional(fields.bonderFee, parseUint) ?? 0n,
      relayer: undefined,
    },
    isReceived,
    bondTransactionHash,
    bonder,
    priceUsd: parsePriceUsd(fields, Number(`${amount}e-${getTokenDecimals(token)}`)),
  };
}

function parseTransferKind(id: string, source: Chain): TransferKind {
  if (/^(0|[1-9][0-9]{0,19})$/.test(id) && BigInt(id) <= MAX_CCTP_NONCE) return "cctp";
  // Transfers from L1 have no transfer ID: the explorer's own id is a hash with an optional suffix.
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

/** Returns the chain with an id and a slug, of which one may be absent. */
function resolveChain(network: Network, id: unknown, slug: unknown): Chain {
  const chains = [...network.chains.values()];
  const matches = [
    ...(isAbsent(id) ? [] : [chains.find(({ chainId }) => BigInt(chainId) === parseUint(id))]),
    ...(isAbsent(slug) ? [] : [findChain(network, parseText(slug))]),
  ];
  const [chain] = matches;
  validate(chain !== undefined && matches.every((match) => match === chain));
  return chain;
}

/** Returns the first plausible USD price of one whole token. @param amount of the transfer in whole tokens */
function parsePriceUsd({ tokenPriceUsd, amountUsd }: RawFields, amount: number): number | undefined {
  return [parseNumber(tokenPriceUsd), parseNumber(amountUsd) / amount].find(
    (price) => price > 0 && price < MAX_PRICE_USD,
  );
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

function parseOptional<T>(value: unknown, parse: (value: unknown) => T): T | undefined {
  return isAbsent(value) ? undefined : parse(value);
}

function parseText(value: unknown): string {
  const text = Number.isSafeInteger(value) ? String(value) : value;
  validate(typeof text === "string" && text !== "");
  return text;
}

/** Parses an unsigned integer below 2^256; rejects JSON numbers that a double does not represent exactly. */
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

/** Returns NaN for an invalid number: an invalid price does not invalidate the record. */
function parseNumber(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^[0-9.]+(e[+-]?[0-9]+)?$/i.test(value) ? Number(value) : Number.NaN;
}

function validate(condition: boolean): asserts condition {
  if (!condition) throw new InvalidRecordError();
}
