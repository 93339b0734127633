import type { BlockRange, ChainClient, LogFilter } from "../chain-client.js";
import { isBytes32, isHexData, toQuantity } from "../hex.js";
import {
  type BlockHeader,
  createLogMatcher,
  invalidResponse,
  type Log,
  parseBlockHeader,
  parseLogs,
  parseReceipt,
  parseSender,
  type Receipt,
} from "../json-rpc/parse-results.js";
import { RevertError } from "../json-rpc/revert-error.js";

export type { BlockRange, LogFilter } from "../chain-client.js";
export type { BlockHeader, Log, Receipt } from "../json-rpc/parse-results.js";

/** Blocks from `from` up to `to`, or up to the head. */
export interface LogRange {
  readonly from: number;
  readonly to: number | "latest";
}

/** The logs of a range of blocks. */
export interface LogPage {
  /** In chain order. */
  readonly logs: readonly Log[];
  /** The blocks that were searched. `to` is Infinity for a search up to a head whose number is unknown. */
  readonly range: BlockRange;
}

// Each function reads one thing from one chain and throws ServiceError UPSTREAM_UNAVAILABLE when there is no valid
// response. Results are well formed, but not necessarily true. The "required" variants expect data that is known to
// exist: where one endpoint does not have it, the next one is tried.

/** Reads the receipt of a transaction; undefined when the chain does not have it. */
export async function readReceipt(
  client: ChainClient,
  hash: string,
  signal: AbortSignal,
): Promise<Receipt | undefined> {
  return sendValidated(client, ...createReceiptCall(hash), signal, (result) => parseReceiptOf(client, hash, result));
}

/** Reads the receipt of a transaction that is known to exist. */
export async function readRequiredReceipt(client: ChainClient, hash: string, signal: AbortSignal): Promise<Receipt> {
  return sendValidated(client, ...createReceiptCall(hash), signal, (result) =>
    requirePresent(client, parseReceiptOf(client, hash, result)),
  );
}

function createReceiptCall(hash: string): [method: string, params: readonly unknown[]] {
  return ["eth_getTransactionReceipt", [hash]];
}

function parseReceiptOf(client: ChainClient, hash: string, result: unknown): Receipt | undefined {
  const receipt = parseReceipt(client, result);
  if (receipt !== undefined && receipt.transactionHash !== hash.toLowerCase()) throw invalidResponse(client);
  return receipt;
}

/**
 * Reads the header of a block; undefined when the chain does not have it.
 * @param block number, hash or tag
 */
export async function readBlockHeader(
  client: ChainClient,
  block: number | string,
  signal: AbortSignal,
): Promise<BlockHeader | undefined> {
  return sendValidated(client, ...createHeaderCall(block), signal, (result) => parseHeaderOf(client, block, result));
}

/**
 * Reads the header of a block that is known to exist.
 * @param block number, hash or tag
 */
export async function readRequiredBlockHeader(
  client: ChainClient,
  block: number | string,
  signal: AbortSignal,
): Promise<BlockHeader> {
  return sendValidated(client, ...createHeaderCall(block), signal, (result) =>
    requirePresent(client, parseHeaderOf(client, block, result)),
  );
}

export async function readLatestBlockHeader(client: ChainClient, signal: AbortSignal): Promise<BlockHeader> {
  return readRequiredBlockHeader(client, "latest", signal);
}

function createHeaderCall(block: number | string): [method: string, params: readonly unknown[]] {
  const encoded = typeof block === "number" ? toQuantity(block) : block;
  return [isBytes32(block) ? "eth_getBlockByHash" : "eth_getBlockByNumber", [encoded, false]];
}

function parseHeaderOf(client: ChainClient, block: number | string, result: unknown): BlockHeader | undefined {
  const header = parseBlockHeader(client, result);
  if (isBytes32(block) && header !== undefined && header.hash !== block.toLowerCase()) throw invalidResponse(client);
  if (typeof block === "number" && header !== undefined && header.number !== block) throw invalidResponse(client);
  return header;
}

function requirePresent<T>(client: ChainClient, value: T | undefined): T {
  if (value === undefined) throw invalidResponse(client);
  return value;
}

/**
 * Reads the logs of as much of a range as an endpoint accepts at once: of its beginning, or of its end with `newestFirst`.
 * A read up to the head costs one request where an endpoint accepts that, and two more where none does.
 * @param range not empty
 */
export async function readLogPage(
  client: ChainClient,
  filter: LogFilter,
  { from, to }: LogRange,
  { newestFirst }: { readonly newestFirst: boolean },
  signal: AbortSignal,
): Promise<LogPage> {
  if (to === "latest") {
    const all = await readLogsToHead(client, filter, from, signal);
    if (all !== undefined) return all;
  }
  const end = to === "latest" ? (await readLatestBlockHeader(client, signal)).number : to;
  if (end < from) return { logs: [], range: { from, to: end } };
  const page = await fetchLogPage(client, filter, { from, to: end }, newestFirst, signal);
  if (page === undefined) throw invalidResponse(client);
  return page;
}

/** Reads the logs from a block up to the head in one request; undefined when no endpoint accepts that many blocks. */
export function readLogsToHead(
  client: ChainClient,
  filter: LogFilter,
  from: number,
  signal: AbortSignal,
): Promise<LogPage | undefined> {
  return fetchLogPage(client, filter, { from, to: Number.POSITIVE_INFINITY }, false, signal);
}

async function fetchLogPage(
  client: ChainClient,
  filter: LogFilter,
  requested: BlockRange,
  newestFirst: boolean,
  signal: AbortSignal,
): Promise<LogPage | undefined> {
  const response = await client.getLogs(filter, requested, newestFirst, signal);
  if (response === undefined) return undefined;
  const { result, range } = response;
  const logs = parseLogs(client, result).filter(createLogMatcher(filter, range));
  return { logs: logs.sort(compareLogs), range };
}

/** Reads the sender of a transaction, in lower case. */
export async function readSender(client: ChainClient, hash: string, signal: AbortSignal): Promise<string> {
  return sendValidated(client, "eth_getTransactionByHash", [hash], signal, (result) => parseSender(client, result));
}

/** Calls a contract and returns the result as an unsigned integer. */
export async function readUint(client: ChainClient, to: string, data: string, signal: AbortSignal): Promise<bigint> {
  return sendValidated(client, "eth_call", [{ to, data }, "latest"], signal, (result) => {
    if (!isBytes32(result)) throw invalidResponse(client);
    return BigInt(result);
  });
}

/**
 * Calls a contract and returns the decoded result.
 * @param decode returns undefined for malformed data: the next endpoint is tried
 */
export async function callContract<T>(
  client: ChainClient,
  call: { readonly to: string; readonly data: string },
  decode: (data: string) => T | undefined,
  signal: AbortSignal,
): Promise<T> {
  return sendValidated(client, "eth_call", [call, "latest"], signal, (result) =>
    requirePresent(client, isHexData(result) ? decode(result) : undefined),
  );
}

/** Sends a call and parses its result. A result that `parse` rejects is a failure of the endpoint: the next is tried. */
async function sendValidated<T>(
  client: ChainClient,
  method: string,
  params: readonly unknown[],
  signal: AbortSignal,
  parse: (result: unknown) => T,
): Promise<T> {
  const validate = (result: unknown): boolean => {
    try {
      parse(result);
      return true;
    } catch {
      return false;
    }
  };
  try {
    return parse(await client.send(method, params, signal, validate));
  } catch (error) {
    // None of these reads can revert on a chain that has Hop's contracts.
    if (error instanceof RevertError) throw invalidResponse(client);
    throw error;
  }
}

function compareLogs(a: Log, b: Log): number {
  return a.blockNumber - b.blockNumber || a.logIndex - b.logIndex;
}
