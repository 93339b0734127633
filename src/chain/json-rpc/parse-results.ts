import { ServiceError } from "../../errors.js";
import { type BlockRange, type ChainClient, isQuantity, type LogFilter } from "../chain-client.js";

// What nodes answer, checked. Each function throws ServiceError UPSTREAM_UNAVAILABLE for an answer of another form: what it
// returns can be trusted to be well formed, though not to be true.

/** A log as nodes give it: hex throughout, numbers as quantities. */
export interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly logIndex: string;
  readonly transactionHash: string;
  /** Whether its block was undone. */
  readonly removed?: unknown;
}

/** A block's own account of itself. */
export interface BlockHeader {
  readonly number: number;
  readonly hash: string;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** A transaction receipt, as far as it is read here. */
export interface Receipt {
  readonly transactionHash: string;
  readonly blockHash: string;
  readonly from: string;
  readonly logs: readonly Log[];
}

/** A receipt; undefined: there is no such transaction. */
export function parseReceipt(client: ChainClient, answer: unknown): Receipt | undefined {
  if (answer === null) return undefined;
  if (!isObject(answer)) throw invalidResponse(client);
  const { transactionHash, blockHash, from, logs } = answer;
  if (!isHex(transactionHash, 64) || !isHex(blockHash, 64) || !isHex(from, 40)) throw invalidResponse(client);
  const checked = parseLogs(client, logs);
  const isIts = (log: Log): boolean =>
    isEqualIgnoringCase(log.transactionHash, transactionHash) && isEqualIgnoringCase(log.blockHash, blockHash);
  if (!checked.every(isIts)) throw invalidResponse(client);
  return { transactionHash, blockHash, from, logs: checked };
}

function isEqualIgnoringCase(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** The header of a block; undefined: there is no such block. */
export function parseBlockHeader(client: ChainClient, answer: unknown): BlockHeader | undefined {
  if (answer === null) return undefined;
  if (!isObject(answer)) throw invalidResponse(client);
  const { number, hash, timestamp } = answer;
  if (!isQuantity(number) || !isHex(hash, 64) || !isTimestamp(timestamp)) throw invalidResponse(client);
  // Beyond that, one block more is the same number.
  if (!Number.isSafeInteger(Number(number))) throw invalidResponse(client);
  return { number: Number(number), hash: hash.toLowerCase(), timestamp: Number(timestamp) };
}

/** Logs that stand. */
export function parseLogs(client: ChainClient, answer: unknown): readonly Log[] {
  if (!Array.isArray(answer) || !answer.every(isLog)) throw invalidResponse(client);
  return answer.filter(({ removed }) => removed !== true).map(lowercaseTopics);
}

/** Whether a result is a list of logs, all of which a search asked for. */
export function areLogsMatching(result: unknown, filter: LogFilter, range: BlockRange): boolean {
  return Array.isArray(result) && result.every((log) => isLog(log) && isLogMatching(log, filter, range));
}

/** Whether a search asked for a log. */
export function isLogMatching(log: Log, { address, topics }: LogFilter, { from, to }: BlockRange): boolean {
  const isOneOf = (value: string | undefined, wanted: string | readonly string[]): boolean =>
    value !== undefined && [wanted].flat().some((each) => isEqualIgnoringCase(each, value));
  return (
    isOneOf(log.address, address) &&
    topics.every((wanted, index) => wanted === null || isOneOf(log.topics[index], wanted)) &&
    Number(log.blockNumber) >= from &&
    Number(log.blockNumber) <= to
  );
}

/** Who sent a transaction, lower case. */
export function parseSender(client: ChainClient, answer: unknown): string {
  if (!isObject(answer) || !isHex(answer.from, 40)) throw invalidResponse(client);
  return answer.from.toLowerCase();
}

export function invalidResponse(client: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${client.slug} gives an answer that Hop's chain could not give`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Topics are compared as text. */
function lowercaseTopics(log: Log): Log {
  return { ...log, topics: log.topics.map((topic) => topic.toLowerCase()) };
}

/** A time in seconds, up to the year 8921556. */
function isTimestamp(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-f]{1,12}$/i.test(value);
}

/** @param digits exact number of hex digits; undefined: at least one */
export function isHex(value: unknown, digits?: number): value is string {
  if (typeof value !== "string" || !/^0x[0-9a-f]+$/i.test(value)) return false;
  return digits === undefined || value.length === digits + 2;
}

function isLog(value: unknown): value is Log {
  if (!isObject(value)) return false;
  const { address, topics, data, blockNumber, blockHash, logIndex, transactionHash } = value;
  return (
    isHex(address, 40) &&
    Array.isArray(topics) &&
    topics.every((topic) => isHex(topic, 64)) &&
    (data === "0x" || isHex(data)) &&
    isQuantity(blockNumber) &&
    isHex(blockHash, 64) &&
    isQuantity(logIndex) &&
    isHex(transactionHash, 64)
  );
}
