import { ServiceError } from "../errors.js";
import type { ChainClient } from "./chain-client.js";
import { RevertError } from "./rpc-error.js";

/** A log as nodes give it: hex throughout, numbers as quantities. */
export interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly blockNumber: string;
  readonly logIndex: string;
  readonly transactionHash: string;
}

/** A transaction receipt, as far as it is read here. */
export interface Receipt {
  readonly transactionHash: string;
  readonly blockHash: string;
  readonly from: string;
  readonly logs: readonly Log[];
}

/** Filter of `eth_getLogs`: null in a place of topics matches anything, a list any of its entries. */
export interface LogFilter {
  readonly address: string | readonly string[];
  readonly topics: readonly (string | readonly string[] | null)[];
}

// Each function reads one thing of one chain and throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no
// answer or one of another form: what they return can be trusted to be well formed, though not to be true.

/** The receipt of a transaction; undefined when the chain does not have it. */
export async function readReceipt(
  client: ChainClient,
  hash: string,
  signal: AbortSignal,
): Promise<Receipt | undefined> {
  const receipt = await ask(client, "eth_getTransactionReceipt", [hash], signal);
  if (receipt === null) return undefined;
  if (!isObject(receipt)) throw malformed(client);
  const { transactionHash, blockHash, from, logs } = receipt;
  if (!isHex(transactionHash, 64) || transactionHash.toLowerCase() !== hash.toLowerCase()) throw malformed(client);
  if (!isHex(blockHash, 64) || !isHex(from, 40) || !isLogs(logs)) throw malformed(client);
  return { transactionHash, blockHash, from, logs: logs.map(inLowerCase) };
}

/** Time of a block, Unix seconds. */
export async function readBlockTime(client: ChainClient, blockHash: string, signal: AbortSignal): Promise<number> {
  const block = await ask(client, "eth_getBlockByHash", [blockHash, false], signal);
  if (!isObject(block) || !isTime(block.timestamp)) throw malformed(client);
  return Number(block.timestamp);
}

/** Who sent a transaction, lower case. */
export async function readSender(client: ChainClient, hash: string, signal: AbortSignal): Promise<string> {
  const transaction = await ask(client, "eth_getTransactionByHash", [hash], signal);
  if (!isObject(transaction) || !isHex(transaction.from, 40)) throw malformed(client);
  return transaction.from.toLowerCase();
}

/** All logs of a chain that a filter matches, from its first block on. */
export async function readLogs(client: ChainClient, filter: LogFilter, signal: AbortSignal): Promise<readonly Log[]> {
  const logs = await ask(client, "eth_getLogs", [{ ...filter, fromBlock: "0x0", toBlock: "latest" }], signal);
  if (!isLogs(logs)) throw malformed(client);
  // A node that does not know filters would answer with everything there is.
  return logs.map(inLowerCase).filter((log) => matches(log, filter));
}

/** The answer of a contract to a call, as an unsigned integer. */
export async function readUint(client: ChainClient, to: string, data: string, signal: AbortSignal): Promise<bigint> {
  const result = await ask(client, "eth_call", [{ to, data }, "latest"], signal);
  if (!isHex(result, 64)) throw malformed(client);
  return BigInt(result);
}

async function ask(
  client: ChainClient,
  method: string,
  params: readonly unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  try {
    return await client.send(method, params, signal);
  } catch (error) {
    // None of these reads can revert on a chain that has Hop's contracts.
    if (error instanceof RevertError) throw malformed(client);
    throw error;
  }
}

function malformed(client: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${client.slug} gives an answer that Hop's chain could not give`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Topics are compared as text. */
function inLowerCase(log: Log): Log {
  return { ...log, topics: log.topics.map((topic) => topic.toLowerCase()) };
}

function matches(log: Log, { address, topics }: LogFilter): boolean {
  const isOneOf = (value: string | undefined, wanted: string | readonly string[]): boolean =>
    value !== undefined && [wanted].flat().some((each) => each.toLowerCase() === value.toLowerCase());
  return (
    isOneOf(log.address, address) &&
    topics.every((wanted, index) => wanted === null || isOneOf(log.topics[index], wanted))
  );
}

/** A time in seconds, up to the year 8921556. */
function isTime(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-f]{1,12}$/i.test(value);
}

/** @param digits exact number of hex digits; undefined: at least one */
function isHex(value: unknown, digits?: number): value is string {
  if (typeof value !== "string" || !/^0x[0-9a-f]+$/i.test(value)) return false;
  return digits === undefined || value.length === digits + 2;
}

function isLogs(value: unknown): value is readonly Log[] {
  return Array.isArray(value) && value.every(isLog);
}

function isLog(value: unknown): value is Log {
  if (!isObject(value)) return false;
  const { address, topics, data, blockNumber, logIndex, transactionHash } = value;
  return (
    isHex(address, 40) &&
    Array.isArray(topics) &&
    topics.every((topic) => isHex(topic, 64)) &&
    (data === "0x" || isHex(data)) &&
    isHex(blockNumber) &&
    isHex(logIndex) &&
    isHex(transactionHash, 64)
  );
}
