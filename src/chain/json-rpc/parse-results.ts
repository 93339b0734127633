import { ServiceError } from "../../errors.js";
import type { BlockRange, ChainClient, LogFilter } from "../chain-client.js";
import { isAddressHex, isBytes32, isHexData, isQuantity } from "../hex.js";

// Parses results of JSON-RPC calls into types that the rest of the code can trust: numbers are numbers, hex is lower
// case. Each function throws ServiceError UPSTREAM_UNAVAILABLE for a result of another form. A parsed result is well
// formed, but not necessarily true.

/** A log as nodes send it: numbers are quantities, hex is of either case. */
export interface RpcLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly logIndex: string;
  readonly transactionHash: string;
  /** True when a reorg removed its block from the chain. */
  readonly removed?: unknown;
}

/** A parsed log. All hex is lower case. */
export interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logIndex: number;
  readonly transactionHash: string;
}

/** The fields of a block header that this service uses. The hash is lower case. */
export interface BlockHeader {
  readonly number: number;
  readonly hash: string;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** The fields of a transaction receipt that this service uses. All hex is lower case. */
export interface Receipt {
  readonly transactionHash: string;
  readonly blockHash: string;
  readonly from: string;
  readonly logs: readonly Log[];
}

/** Parses a receipt. Returns undefined for `null`: the node does not have the transaction. */
export function parseReceipt(client: ChainClient, result: unknown): Receipt | undefined {
  if (result === null) return undefined;
  if (!isObject(result)) throw invalidResponse(client);
  const { transactionHash, blockHash, from, logs } = result;
  if (!isBytes32(transactionHash) || !isBytes32(blockHash) || !isAddressHex(from)) throw invalidResponse(client);
  const receipt: Receipt = {
    transactionHash: transactionHash.toLowerCase(),
    blockHash: blockHash.toLowerCase(),
    from: from.toLowerCase(),
    logs: parseLogs(client, logs),
  };
  const isConsistent = receipt.logs.every(
    (log) => log.transactionHash === receipt.transactionHash && log.blockHash === receipt.blockHash,
  );
  if (!isConsistent) throw invalidResponse(client);
  return receipt;
}

/** Parses a block header. Returns undefined for `null`: the node does not have the block. */
export function parseBlockHeader(client: ChainClient, result: unknown): BlockHeader | undefined {
  if (result === null) return undefined;
  if (!isObject(result)) throw invalidResponse(client);
  const number = parseSafeInteger(result.number);
  const { hash, timestamp } = result;
  if (number === undefined || !isBytes32(hash) || !isTimestamp(timestamp)) throw invalidResponse(client);
  return { number, hash: hash.toLowerCase(), timestamp: Number(timestamp) };
}

/** Parses a list of logs. Leaves out logs that a reorg removed. */
export function parseLogs(client: ChainClient, result: unknown): readonly Log[] {
  if (!Array.isArray(result)) throw invalidResponse(client);
  const logs: Log[] = [];
  for (const value of result) {
    const log = parseLog(value);
    if (log === undefined) throw invalidResponse(client);
    if ((value as RpcLog).removed !== true) logs.push(log);
  }
  return logs;
}

/** Returns whether a result is a list of logs all of which match a filter and lie in a range of blocks. */
export function areLogsMatching(result: unknown, filter: LogFilter, range: BlockRange): boolean {
  if (!Array.isArray(result)) return false;
  const isMatching = createLogMatcher(filter, range);
  return result.every((value) => {
    const log = parseLog(value);
    return log !== undefined && isMatching(log);
  });
}

/** Returns a predicate for the logs that `eth_getLogs` has to return for a filter and a range of blocks. */
export function createLogMatcher({ address, topics }: LogFilter, { from, to }: BlockRange): (log: Log) => boolean {
  const addresses = toLowerCaseSet(address);
  const topicSets = topics.map((accepted) => (accepted === null ? undefined : toLowerCaseSet(accepted)));
  return (log) =>
    log.blockNumber >= from &&
    log.blockNumber <= to &&
    addresses.has(log.address) &&
    topicSets.every((accepted, index) => accepted === undefined || accepted.has(log.topics[index] ?? ""));
}

/** Parses the sender of a transaction, in lower case. */
export function parseSender(client: ChainClient, result: unknown): string {
  if (!isObject(result) || !isAddressHex(result.from)) throw invalidResponse(client);
  return result.from.toLowerCase();
}

export function invalidResponse(client: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${client.slug} returned an invalid result`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function toLowerCaseSet(values: string | readonly string[]): ReadonlySet<string> {
  return new Set([values].flat().map((value) => value.toLowerCase()));
}

/** Returns undefined beyond 2^53 - 1, where a number cannot tell two neighbouring blocks apart. */
function parseSafeInteger(value: unknown): number | undefined {
  if (!isQuantity(value)) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}

/** Returns whether a value is a time in seconds, up to the year 8921556. */
function isTimestamp(value: unknown): value is string {
  return isQuantity(value) && value.length <= 2 + 12;
}

/** Returns undefined for a value of another form. */
function parseLog(value: unknown): Log | undefined {
  if (!isObject(value)) return undefined;
  const { address, topics, data, blockHash, transactionHash } = value;
  const blockNumber = parseSafeInteger(value.blockNumber);
  const logIndex = parseSafeInteger(value.logIndex);
  if (blockNumber === undefined || logIndex === undefined) return undefined;
  if (!isAddressHex(address) || !isBytes32(blockHash) || !isBytes32(transactionHash) || !isHexData(data))
    return undefined;
  if (!Array.isArray(topics) || !topics.every(isBytes32)) return undefined;
  return {
    address: address.toLowerCase(),
    topics: topics.map((topic) => topic.toLowerCase()),
    data: data.toLowerCase(),
    blockNumber,
    blockHash: blockHash.toLowerCase(),
    logIndex,
    transactionHash: transactionHash.toLowerCase(),
  };
}
