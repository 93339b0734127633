import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { isQuantity, toQuantity } from "../hex.js";

// What two honest nodes answer alike: the same call about one block, and results without what nodes add of their own. Pure.

type Call = Pick<RpcCall, "method" | "params">;

/** What a call reads, for the log and metrics. */
export type ReadKind =
  | "block"
  | "contract"
  | "finality"
  | "gas_estimate"
  | "gas_price"
  | "head"
  | "logs"
  | "other"
  | "receipt"
  | "transaction";

/**
 * How answers are compared. exact: they have to be equal. quantity: honest nodes differ a little. tag: the number of a block
 * that nodes reach at different times.
 */
export type Comparison = "exact" | "quantity" | "tag";

/** An answer in the form in which it is compared. */
export interface CanonicalAnswer {
  readonly text: string;
  /** The number, for comparisons as quantity, and as tag (-1: no block); undefined: the call has reverted. */
  readonly quantity?: bigint;
  /** Whether it is of a block after the one that all endpoints are asked about, and so counts as not found. */
  readonly isBeyond?: boolean;
}

const KINDS: ReadonlyMap<string, ReadKind> = new Map<string, ReadKind>([
  ["eth_blockNumber", "head"],
  ["eth_call", "contract"],
  ["eth_estimateGas", "gas_estimate"],
  ["eth_gasPrice", "gas_price"],
  ["eth_getBlockByHash", "block"],
  ["eth_getBlockByNumber", "block"],
  ["eth_getLogs", "logs"],
  ["eth_getTransactionByHash", "transaction"],
  ["eth_getTransactionReceipt", "receipt"],
  ["eth_maxPriorityFeePerGas", "gas_price"],
]);
const FINALITY_TAGS: ReadonlySet<unknown> = new Set(["finalized", "safe"]);

const BLOCK_FIELDS = ["hash", "number", "parentHash", "timestamp"];
const TRANSACTION_FIELDS = ["hash", "from", "to", "nonce", "value", "input", "blockHash", "blockNumber"];
const RECEIPT_FIELDS = ["transactionHash", "blockHash", "blockNumber", "from", "to", "status"];
const LOG_FIELDS = ["address", "topics", "data", "blockNumber", "blockHash", "logIndex", "transactionHash"];
/** Nodes may pad numbers with zeros. */
const NUMERIC_FIELDS: ReadonlySet<string> = new Set([
  ...["blockNumber", "logIndex", "nonce", "number", "status", "timestamp", "value"],
]);

/** Index of the block among the parameters, by method. */
const BLOCK_PARAMETERS: ReadonlyMap<string, number> = new Map([
  ["eth_call", 1],
  ["eth_getBalance", 1],
  ["eth_getBlockByNumber", 0],
  ["eth_getCode", 1],
  ["eth_getStorageAt", 2],
  ["eth_getTransactionCount", 1],
]);
/** What changes with the head although the call names no block. */
const HEAD_DEPENDENT: ReadonlySet<string> = new Set([
  "eth_blockNumber",
  "eth_getBlockByHash",
  "eth_getTransactionByHash",
  "eth_getTransactionReceipt",
]);

export function getReadKind({ method, params }: Call): ReadKind {
  if (method === "eth_getBlockByNumber" && FINALITY_TAGS.has(params[0])) return "finality";
  return KINDS.get(method) ?? "other";
}

export function getComparison(call: Call): Comparison {
  const kind = getReadKind(call);
  if (kind === "finality") return "tag";
  return kind === "gas_price" || kind === "gas_estimate" ? "quantity" : "exact";
}

/**
 * Returns the form in which an outcome is compared.
 * @param block number of the block that all endpoints are asked about; undefined: the calls name their blocks
 */
export function canonicalize(call: Call, outcome: RpcCallResult, block: number | undefined): CanonicalAnswer {
  if ("revert" in outcome) return { text: `revert ${(outcome.revert.data ?? "0x").toLowerCase()}` };
  const { result } = outcome;
  const comparison = getComparison(call);
  if (comparison === "tag") return canonicalizeTag(result);
  if (comparison === "quantity" && isQuantity(result)) return { text: "quantity", quantity: BigInt(result) };
  const kind = getReadKind(call);
  if (!isRecord(result)) return { text: kind === "logs" ? canonicalizeLogs(result) : printPlain(result) };
  switch (kind) {
    case "block":
      return isAfter(result.number, block) ? { text: "null", isBeyond: true } : { text: print(result, BLOCK_FIELDS) };
    case "transaction":
      // One without a block is pending: whether a node knows it already is up to the node.
      if (isAfter(result.blockNumber ?? "0xffffffffffff", block)) return { text: "null", isBeyond: true };
      return { text: print(result, TRANSACTION_FIELDS) };
    case "receipt":
      if (isAfter(result.blockNumber, block)) return { text: "null", isBeyond: true };
      return { text: `${print(result, RECEIPT_FIELDS)} ${canonicalizeLogs(result.logs)}` };
    default:
      return { text: printPlain(result) };
  }
}

/** Returns logs in chain order, without those that a reorg removed. */
export function canonicalizeLogs(logs: unknown): string {
  if (!Array.isArray(logs)) return printPlain(logs);
  const position = (log: Record<string, unknown>): number[] => [Number(log.blockNumber), Number(log.logIndex)];
  const sorted = logs
    .filter((log) => isRecord(log) && log.removed !== true)
    .map((log) => ({ position: position(log), text: print(log, LOG_FIELDS) }))
    .sort((a, b) => compareNumbers(a.position, b.position));
  return `[${sorted.map(({ text }) => text).join(",")}]`;
}

/** Honest nodes may differ in the block for a moment; nobody uses more of it than the number. */
function canonicalizeTag(result: unknown): CanonicalAnswer {
  const number = isRecord(result) ? result.number : undefined;
  return { text: "tag", quantity: isQuantity(number) ? BigInt(number) : -1n };
}

function isAfter(blockNumber: unknown, block: number | undefined): boolean {
  return block !== undefined && isQuantity(blockNumber) && Number(blockNumber) > block;
}

function print(record: Record<string, unknown>, fields: readonly string[]): string {
  const printField = (field: string): string => {
    const value = record[field];
    return NUMERIC_FIELDS.has(field) && isQuantity(value) ? String(BigInt(value)) : printPlain(value);
  };
  return `{${fields.map((field) => `${field}:${printField(field)}`).join(",")}}`;
}

/** Prints JSON with sorted keys and hex in lower case. */
function printPlain(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(printPlain).join(",")}]`;
  if (isRecord(value)) return print(value, Object.keys(value).sort());
  return typeof value === "string" ? JSON.stringify(value.toLowerCase()) : String(value ?? null);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function compareNumbers(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) if (value !== b[index]) return value - (b[index] ?? 0);
  return 0;
}

/** Returns whether the answer depends on which block is the latest. */
export function needsHead(call: Call): boolean {
  return HEAD_DEPENDENT.has(call.method) || getReadKind(call) === "finality" || hasLatestTag(call);
}

/** Returns the call about a block instead of the latest one. */
export function pinCall(call: RpcCall, block: number | undefined): RpcCall {
  if (block === undefined || !hasLatestTag(call)) return call;
  const params = [...call.params];
  if (call.method === "eth_getLogs") params[0] = { ...(params[0] as object), ...pinFilter(params[0], block) };
  else params[BLOCK_PARAMETERS.get(call.method) ?? 0] = toQuantity(block);
  return { ...call, params };
}

/** Returns the number of the block that an endpoint has to have for this call; undefined: any head will do. */
export function getNamedBlock({ method, params }: Call): number | undefined {
  const index = BLOCK_PARAMETERS.get(method);
  const named = method === "eth_getLogs" ? (params[0] as { toBlock?: unknown }).toBlock : params[index ?? 0];
  return (index !== undefined || method === "eth_getLogs") && isQuantity(named) ? Number(named) : undefined;
}

export function hasLatestTag({ method, params }: Call): boolean {
  if (method === "eth_getLogs") return Object.keys(pinFilter(params[0], 0)).length > 0;
  const index = BLOCK_PARAMETERS.get(method);
  return index !== undefined && (params[index] === "latest" || params[index] === undefined);
}

function pinFilter(filter: unknown, block: number): Record<string, string> {
  const { fromBlock, toBlock = "latest", blockHash } = (filter ?? {}) as Record<string, unknown>;
  if (blockHash !== undefined) return {};
  return {
    ...(fromBlock === "latest" && { fromBlock: toQuantity(block) }),
    ...(toBlock === "latest" && { toBlock: toQuantity(block) }),
  };
}
