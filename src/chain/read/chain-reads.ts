import { type BlockRange, type ChainClient, type LogFilter, toQuantity } from "../chain-client.js";
import {
  type BlockHeader,
  headerIn,
  isHex,
  isLogOf,
  type Log,
  logsIn,
  malformed,
  type Receipt,
  receiptIn,
  senderIn,
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
  return ask(client, ...receiptCall(hash), signal, (answer) => receiptOf(client, hash, answer));
}

/** The receipt of a transaction that is there: where one endpoint does not have it, another is asked. */
export async function readKnownReceipt(client: ChainClient, hash: string, signal: AbortSignal): Promise<Receipt> {
  return ask(client, ...receiptCall(hash), signal, (answer) => present(client, receiptOf(client, hash, answer)));
}

function receiptCall(hash: string): [method: string, params: readonly unknown[]] {
  return ["eth_getTransactionReceipt", [hash]];
}

function receiptOf(client: ChainClient, hash: string, answer: unknown): Receipt | undefined {
  const receipt = receiptIn(client, answer);
  if (receipt !== undefined && receipt.transactionHash.toLowerCase() !== hash.toLowerCase()) throw malformed(client);
  return receipt;
}

/**
 * The header of a block; undefined when the chain does not have it.
 * @param block its number, its hash, or what it is to the chain
 */
export async function readHeader(
  client: ChainClient,
  block: number | string,
  signal: AbortSignal,
): Promise<BlockHeader | undefined> {
  return ask(client, ...headerCall(block), signal, (answer) => headerOf(client, block, answer));
}

/**
 * The header of a block that is there: where one endpoint does not have it, another is asked.
 * @param block as for readHeader
 */
export async function readKnownHeader(
  client: ChainClient,
  block: number | string,
  signal: AbortSignal,
): Promise<BlockHeader> {
  return ask(client, ...headerCall(block), signal, (answer) => present(client, headerOf(client, block, answer)));
}

/** The header of the newest block. */
export async function readHead(client: ChainClient, signal: AbortSignal): Promise<BlockHeader> {
  return readKnownHeader(client, "latest", signal);
}

function headerCall(block: number | string): [method: string, params: readonly unknown[]] {
  const named = typeof block === "number" ? toQuantity(block) : block;
  return [isHex(block, 64) ? "eth_getBlockByHash" : "eth_getBlockByNumber", [named, false]];
}

function headerOf(client: ChainClient, block: number | string, answer: unknown): BlockHeader | undefined {
  const header = headerIn(client, answer);
  if (isHex(block, 64) && header !== undefined && header.hash !== block.toLowerCase()) throw malformed(client);
  if (typeof block === "number" && header !== undefined && header.number !== block) throw malformed(client);
  return header;
}

function present<T>(client: ChainClient, found: T | undefined): T {
  if (found === undefined) throw malformed(client);
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
  const end = to === "latest" ? (await readHead(client, signal)).number : to;
  if (end < from) return { logs: [], range: { from, to: end } };
  const page = await readPage(client, filter, { from, to: end }, newestFirst, signal);
  if (page === undefined) throw malformed(client);
  return page;
}

/** The logs from a block up to the head, in one request; undefined when no endpoint gives that many blocks at once. */
export function readLogsToHead(
  client: ChainClient,
  filter: LogFilter,
  from: number,
  signal: AbortSignal,
): Promise<LogPage | undefined> {
  return readPage(client, filter, { from, to: Number.POSITIVE_INFINITY }, false, signal);
}

async function readPage(
  client: ChainClient,
  filter: LogFilter,
  asked: BlockRange,
  newestFirst: boolean,
  signal: AbortSignal,
): Promise<LogPage | undefined> {
  const answer = await client.logs(filter, asked, newestFirst, signal);
  if (answer === undefined) return undefined;
  const { result, range } = answer;
  const logs = logsIn(client, result).filter((log) => isLogOf(log, filter, range));
  return { logs: logs.sort(inOrder), range };
}

/** Who sent a transaction, lower case. */
export async function readSender(client: ChainClient, hash: string, signal: AbortSignal): Promise<string> {
  return ask(client, "eth_getTransactionByHash", [hash], signal, (answer) => senderIn(client, answer));
}

/** The answer of a contract to a call, as an unsigned integer. */
export async function readUint(client: ChainClient, to: string, data: string, signal: AbortSignal): Promise<bigint> {
  return ask(client, "eth_call", [{ to, data }, "latest"], signal, (answer) => {
    if (!isHex(answer, 64)) throw malformed(client);
    return BigInt(answer);
  });
}

/** What `read` makes of an answer. One that it throws at is an endpoint's trouble: another is asked. */
async function ask<T>(
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
    if (error instanceof RevertError) throw malformed(client);
    throw error;
  }
}

function inOrder(a: Log, b: Log): number {
  return Number(a.blockNumber) - Number(b.blockNumber) || Number(a.logIndex) - Number(b.logIndex);
}
