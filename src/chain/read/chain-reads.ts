import type { BlockRange, ChainClient, LogSearch, LogsResult, RpcCall } from "../chain-client.js";
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
import { RevertError } from "../json-rpc/rpc-errors.js";

export type { BlockRange, LogFilter } from "../chain-client.js";
export type { BlockHeader, Log, Receipt } from "../json-rpc/parse-results.js";

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

/** A call, and the parser of its result, which throws for a result that the call cannot have. */
interface ParsedCall<T> extends Pick<RpcCall, "method" | "params"> {
  readonly parse: (result: unknown) => T;
}

/** Reads the receipt of a transaction; undefined when the chain does not have it. */
export async function readReceipt(
  client: ChainClient,
  hash: string,
  signal: AbortSignal,
): Promise<Receipt | undefined> {
  return sendParsed(client, createReceiptCall(client, hash), signal);
}

/** Reads the receipt of a transaction that is known to exist. */
export async function readRequiredReceipt(client: ChainClient, hash: string, signal: AbortSignal): Promise<Receipt> {
  return sendRequired(client, createReceiptCall(client, hash), signal);
}

function createReceiptCall(client: ChainClient, hash: string): ParsedCall<Receipt | undefined> {
  return {
    method: "eth_getTransactionReceipt",
    params: [hash],
    parse(result) {
      const receipt = parseReceipt(client, result);
      if (receipt !== undefined && receipt.transactionHash !== hash.toLowerCase()) throw invalidResponse(client);
      return receipt;
    },
  };
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
  return sendParsed(client, createHeaderCall(client, block), signal);
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
  return sendRequired(client, createHeaderCall(client, block), signal);
}

export async function readLatestBlockHeader(client: ChainClient, signal: AbortSignal): Promise<BlockHeader> {
  return readRequiredBlockHeader(client, "latest", signal);
}

function createHeaderCall(client: ChainClient, block: number | string): ParsedCall<BlockHeader | undefined> {
  const isHash = isBytes32(block);
  return {
    method: isHash ? "eth_getBlockByHash" : "eth_getBlockByNumber",
    params: [typeof block === "number" ? toQuantity(block) : block, false],
    parse(result) {
      const header = parseBlockHeader(client, result);
      if (isHash && header !== undefined && header.hash !== block.toLowerCase()) throw invalidResponse(client);
      if (typeof block === "number" && header !== undefined && header.number !== block) throw invalidResponse(client);
      return header;
    },
  };
}

/**
 * Reads the logs of as much of a range as an endpoint accepts at once: of its beginning, or of its end with `newestFirst`.
 * A read up to the head costs one request where an endpoint accepts that, and two more where none does.
 * @param search.range not empty, up to a block or to the head
 */
export async function readLogPage(
  client: ChainClient,
  {
    filter,
    range: { from, to },
    newestFirst,
  }: Pick<LogSearch, "filter" | "newestFirst"> & {
    readonly range: { readonly from: number; readonly to: number | "latest" };
  },
  signal: AbortSignal,
): Promise<LogPage> {
  let found: LogsResult | undefined;
  let end = to;
  if (end === "latest") {
    found = await client.getLogs({ filter, range: { from, to: Number.POSITIVE_INFINITY } }, signal);
    end = found?.range.to ?? (await readLatestBlockHeader(client, signal)).number;
  }
  if (end < from) return { logs: [], range: { from, to: end } };
  found ??= await client.getLogs({ filter, range: { from, to: end }, newestFirst }, signal);
  if (found === undefined) throw invalidResponse(client);
  const logs = parseLogs(client, found.result).filter(createLogMatcher(filter, found.range));
  return { logs: logs.sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex), range: found.range };
}

/** Reads the sender of a transaction, in lower case. */
export async function readSender(client: ChainClient, hash: string, signal: AbortSignal): Promise<string> {
  const parse = (result: unknown): string => parseSender(client, result);
  return sendParsed(client, { method: "eth_getTransactionByHash", params: [hash], parse }, signal);
}

/** Calls a contract and returns the result as an unsigned integer. */
export async function readUint(client: ChainClient, to: string, data: string, signal: AbortSignal): Promise<bigint> {
  return callContract(client, { to, data }, (result) => (isBytes32(result) ? BigInt(result) : undefined), signal);
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
  const parse = (result: unknown): T | undefined => (isHexData(result) ? decode(result) : undefined);
  return sendRequired(client, { method: "eth_call", params: [call, "latest"], parse }, signal);
}

/** Sends a call whose result has to be present. */
function sendRequired<T>(client: ChainClient, call: ParsedCall<T | undefined>, signal: AbortSignal): Promise<T> {
  const parse = (result: unknown): T => {
    const value = call.parse(result);
    if (value === undefined) throw invalidResponse(client);
    return value;
  };
  return sendParsed(client, { ...call, parse }, signal);
}

/** Sends a call and parses its result. A result that `parse` rejects is a failure of the endpoint: the next is tried. */
async function sendParsed<T>(
  client: ChainClient,
  { method, params, parse }: ParsedCall<T>,
  signal: AbortSignal,
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
    return parse(await client.send(method, params, signal, { validate }));
  } catch (error) {
    // None of these reads can revert on a chain that has Hop's contracts.
    if (error instanceof RevertError) throw invalidResponse(client);
    throw error;
  }
}
