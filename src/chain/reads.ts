import {
  type BlockHeader,
  headerIn,
  isHex,
  type Log,
  logsIn,
  malformed,
  type Receipt,
  receiptIn,
  senderIn,
} from "./answers.js";
import { type BlockRange, type ChainClient, type LogFilter, toQuantity } from "./chain-client.js";
import { RevertError } from "./rpc-error.js";

export type { BlockHeader, Log, Receipt } from "./answers.js";
export type { BlockRange, LogFilter } from "./chain-client.js";

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
  const receipt = receiptIn(client, await ask(client, "eth_getTransactionReceipt", [hash], signal));
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
  const isHash = isHex(block, 64);
  const named = typeof block === "number" ? toQuantity(block) : block;
  const method = isHash ? "eth_getBlockByHash" : "eth_getBlockByNumber";
  const header = headerIn(client, await ask(client, method, [named, false], signal));
  if (header === undefined) return undefined;
  if (isHash && header.hash !== block.toLowerCase()) throw malformed(client);
  if (typeof block === "number" && header.number !== block) throw malformed(client);
  return header;
}

/** The header of the newest block. */
export async function readHead(client: ChainClient, signal: AbortSignal): Promise<BlockHeader> {
  const head = await readHeader(client, "latest", signal);
  if (head === undefined) throw malformed(client);
  return head;
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
  const logs = logsIn(client, result)
    // A node that does not know filters would answer with everything there is.
    .filter((log) => matches(log, filter) && isWithin(log, range))
    .sort(inOrder);
  return { logs, range };
}

/** Who sent a transaction, lower case. */
export async function readSender(client: ChainClient, hash: string, signal: AbortSignal): Promise<string> {
  return senderIn(client, await ask(client, "eth_getTransactionByHash", [hash], signal));
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

function matches(log: Log, { address, topics }: LogFilter): boolean {
  const isOneOf = (value: string | undefined, wanted: string | readonly string[]): boolean =>
    value !== undefined && [wanted].flat().some((each) => each.toLowerCase() === value.toLowerCase());
  return (
    isOneOf(log.address, address) &&
    topics.every((wanted, index) => wanted === null || isOneOf(log.topics[index], wanted))
  );
}

function isWithin({ blockNumber }: Log, { from, to }: BlockRange): boolean {
  return Number(blockNumber) >= from && Number(blockNumber) <= to;
}

function inOrder(a: Log, b: Log): number {
  return Number(a.blockNumber) - Number(b.blockNumber) || Number(a.logIndex) - Number(b.logIndex);
}
