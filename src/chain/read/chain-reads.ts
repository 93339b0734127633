import type { BlockRange, ChainClient, LogFilter } from "../chain-client.js";
import { isBytes32, toQuantity } from "../hex.js";
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

/** Blocks from one on, up to another or to the head. */
export interface LogRange {
  readonly from: number;
  readonly to: number | "latest";
}

/** The logs of a range of blocks. */
export interface LogPage {
  /** In the order of the chain. */
  readonly logs: readonly Log[];
  /** Which blocks were searched. `to` is Infinity where that was up to a head that nobody named. */
  readonly range: BlockRange;
}

// Each function reads one thing of one chain and throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no
// answer or one of another form: what they return can be trusted to be well formed, though not to be true.

/** The receipt of a transaction; undefined when the chain does not have it. */
export async function readReceipt(
  client: ChainClient,
  hash: string,
  signal: AbortSignal,
): Promise<Receipt | undefined> {
  return sendValidated(client, ...receiptCall(hash), signal, (answer) => parseReceiptOf(client, hash, answer));
}

/** The receipt of a transaction that is there: where one endpoint does not have it, another is asked. */
export async function readRequiredReceipt(client: ChainClient, hash: string, signal: AbortSignal): Promise<Receipt> {
  return sendValidated(client, ...receiptCall(hash), signal, (answer) =>
    requirePresent(client, parseReceiptOf(client, hash, answer)),
  );
}

function receiptCall(hash: string): [method: string, params: readonly unknown[]] {
  return ["eth_getTransactionReceipt", [hash]];
}

function parseReceiptOf(client: ChainClient, hash: string, answer: unknown): Receipt | undefined {
  const receipt = parseReceipt(client, answer);
  if (receipt !== undefined && receipt.transactionHash !== hash.toLowerCase()) throw invalidResponse(client);
  return receipt;
}

/**
 * The header of a block; undefined when the chain does not have it.
 * @param block its number, its hash, or what it is to the chain
 */
export async function readBlockHeader(
  client: ChainClient,
  block: number | string,
  signal: AbortSignal,
): Promise<BlockHeader | undefined> {
  return sendValidated(client, ...headerCall(block), signal, (answer) => parseHeaderOf(client, block, answer));
}

/**
 * The header of a block that is there: where one endpoint does not have it, another is asked.
 * @param block as for readHeader
 */
export async function readRequiredBlockHeader(
  client: ChainClient,
  block: number | string,
  signal: AbortSignal,
): Promise<BlockHeader> {
  return sendValidated(client, ...headerCall(block), signal, (answer) =>
    requirePresent(client, parseHeaderOf(client, block, answer)),
  );
}

/** The header of the newest block. */
export async function readLatestBlockHeader(client: ChainClient, signal: AbortSignal): Promise<BlockHeader> {
  return readRequiredBlockHeader(client, "latest", signal);
}

function headerCall(block: number | string): [method: string, params: readonly unknown[]] {
  const named = typeof block === "number" ? toQuantity(block) : block;
  return [isBytes32(block) ? "eth_getBlockByHash" : "eth_getBlockByNumber", [named, false]];
}

function parseHeaderOf(client: ChainClient, block: number | string, answer: unknown): BlockHeader | undefined {
  const header = parseBlockHeader(client, answer);
  if (isBytes32(block) && header !== undefined && header.hash !== block.toLowerCase()) throw invalidResponse(client);
  if (typeof block === "number" && header !== undefined && header.number !== block) throw invalidResponse(client);
  return header;
}

function requirePresent<T>(client: ChainClient, found: T | undefined): T {
  if (found === undefined) throw invalidResponse(client);
  return found;
}

/**
 * The logs of as much of a range as an endpoint gives at once: of its beginning, or of its end when the newest are to
 * come first. Up to the head costs one request where an endpoint takes it so, and two more where none does.
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

/** The logs from a block up to the head, in one request; undefined when no endpoint gives that many blocks at once. */
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
  asked: BlockRange,
  newestFirst: boolean,
  signal: AbortSignal,
): Promise<LogPage | undefined> {
  const answer = await client.getLogs(filter, asked, newestFirst, signal);
  if (answer === undefined) return undefined;
  const { result, range } = answer;
  const logs = parseLogs(client, result).filter(createLogMatcher(filter, range));
  return { logs: logs.sort(compareLogs), range };
}

/** Who sent a transaction, lower case. */
export async function readSender(client: ChainClient, hash: string, signal: AbortSignal): Promise<string> {
  return sendValidated(client, "eth_getTransactionByHash", [hash], signal, (answer) => parseSender(client, answer));
}

/** The answer of a contract to a call, as an unsigned integer. */
export async function readUint(client: ChainClient, to: string, data: string, signal: AbortSignal): Promise<bigint> {
  return sendValidated(client, "eth_call", [{ to, data }, "latest"], signal, (answer) => {
    if (!isBytes32(answer)) throw invalidResponse(client);
    return BigInt(answer);
  });
}

/** What `read` makes of an answer. One that it throws at is an endpoint's trouble: another is asked. */
async function sendValidated<T>(
  client: ChainClient,
  method: string,
  params: readonly unknown[],
  signal: AbortSignal,
  read: (answer: unknown) => T,
): Promise<T> {
  const isAnswer = (answer: unknown): boolean => {
    try {
      read(answer);
      return true;
    } catch {
      return false;
    }
  };
  try {
    return read(await client.send(method, params, signal, isAnswer));
  } catch (error) {
    // None of these reads can revert on a chain that has Hop's contracts.
    if (error instanceof RevertError) throw invalidResponse(client);
    throw error;
  }
}

function compareLogs(a: Log, b: Log): number {
  return a.blockNumber - b.blockNumber || a.logIndex - b.logIndex;
}
