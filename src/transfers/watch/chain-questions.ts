import { type ContractCall, decodeMulticall, encodeMulticall } from "../../chain/abi/multicall.js";
import { type ChainClient, findRpcResult, type RpcCall } from "../../chain/chain-client.js";
import { isHexData } from "../../chain/hex.js";
import { invalidResponse, parseBlockHeader, parseReceipt } from "../../chain/json-rpc/parse-results.js";
import { LATEST_BLOCK_CALL } from "../../chain/json-rpc/rpc-codec.js";
import { type BlockRange, type Log, type LogFilter, type Receipt, readLogPage } from "../../chain/read/chain-reads.js";
import { getCctpDomain } from "../../hop/cctp.js";
import type { ContractRegistry } from "../../hop/contract-registry.js";
import type { Chain } from "../../hop/networks.js";
import {
  EVENT_TOPICS,
  encodeIsTransferIdSpentCall,
  encodeTopic,
  encodeUsedNoncesCall,
} from "../../hop/transfer-events.js";
import { isCctpNonce, type SentTransfer } from "../status.js";

// What followers ask a chain at each poll. The answers only tell that something may have changed; a lookup then finds out
// what. A question is therefore one cheap call, and equal questions of several followers are asked once.

export type Question =
  /** Has the transaction been mined, and in which block? */
  | { readonly kind: "receipt"; readonly hash: string }
  /** Does a contract's flag say that a transfer was delivered? */
  | { readonly kind: "flag"; readonly call: ContractCall }
  /** Is there a log with these topics? */
  | { readonly kind: "log"; readonly address: readonly string[]; readonly topics: readonly (string | null)[] };

type FlagQuestion = Question & { readonly kind: "flag" };
type LogQuestion = Question & { readonly kind: "log" };

/** The answer of a chain to one question. */
export interface Answer {
  /** Number of the newest block that the endpoint has. */
  readonly head: number;
  /** undefined: the endpoint does not have it. Only for a question of that kind. */
  readonly receipt: Receipt | undefined;
  /** Whether the flag is set, or the log was found. */
  readonly isFound: boolean;
}

/** Returns a key that equal questions share. */
function getQuestionKey(question: Question): string {
  switch (question.kind) {
    case "receipt":
      return question.hash;
    case "flag":
      return `${question.call.to} ${question.call.data}`;
    case "log":
      return `${question.address.join()} ${question.topics.join()}`;
  }
}

/** Returns what tells on its destination that a transfer was delivered; undefined: nothing, the route does not exist. */
export function createDeliveryQuestion(sent: SentTransfer, contracts: ContractRegistry): Question | undefined {
  const { kind, id, token, source, destination, event } = sent;
  if (kind === "cctp") {
    const transmitter = contracts.findMessageTransmitter(destination);
    const domain = getCctpDomain(source);
    if (transmitter === undefined || domain === undefined) return undefined;
    return { kind: "flag", call: { to: transmitter, data: encodeUsedNoncesCall(domain, BigInt(id)) } };
  }
  const bridge = contracts.findBridge(token, destination);
  if (bridge === undefined) return undefined;
  if (kind === "l2") return { kind: "flag", call: { to: bridge, data: encodeIsTransferIdSpentCall(id) } };
  if (event.relayer === undefined) return undefined;
  const topics = [EVENT_TOPICS.transferFromL1Completed, encodeTopic(event.recipient), encodeTopic(event.relayer)];
  return { kind: "log", address: [bridge], topics };
}

/** Returns what tells on a chain that a transfer has appeared which nobody knew; undefined: it cannot appear there. */
export function createAppearanceQuestion(
  target: { readonly kind: "id" | "hash"; readonly value: string },
  chain: Chain,
  contracts: ContractRegistry,
): Question | undefined {
  const { kind, value } = target;
  if (kind === "hash") return { kind: "receipt", hash: value };
  const isNonce = isCctpNonce(value);
  // The ID of a transfer from L1 is the hash of its transaction.
  if (!isNonce && chain.isL1) return { kind: "receipt", hash: value };
  const senders = [...contracts.getSendingContracts(chain)];
  const address = senders.flatMap(([each, sender]) => (sender.kind === (isNonce ? "cctp" : "l2") ? [each] : []));
  if (address.length === 0) return undefined;
  const topics = isNonce
    ? [EVENT_TOPICS.cctpTransferSent, encodeTopic(BigInt(value))]
    : [EVENT_TOPICS.transferSent, value];
  return { kind: "log", address, topics };
}

/** Joins log questions to as few filters as possible: one for each event. A filter may match more than was asked for. */
export function joinLogFilters(questions: readonly LogQuestion[]): readonly LogFilter[] {
  const events = new Set(questions.map(({ topics: [event] }) => event));
  return [...events].map((event) => {
    const group = questions.filter(({ topics }) => topics[0] === event);
    const topicCount = Math.min(...group.map(({ topics }) => topics.length));
    const topics = Array.from({ length: topicCount }, (_, index) =>
      joinTopics(group.map(({ topics }) => topics[index])),
    );
    return { address: unique(group.flatMap(({ address }) => address)), topics };
  });
}

/** Returns the topics of which a log has one; null: any. */
function joinTopics(topics: readonly (string | null | undefined)[]): string[] | null {
  const known = topics.filter((topic) => typeof topic === "string");
  return known.length < topics.length ? null : unique(known);
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

/** Up to this many flags are read one by one, so that a chain needs no Multicall3. */
const MAX_SINGLE_FLAGS = 2;

/**
 * Asks a chain many questions: one batch, and one log search for each event among them.
 * @returns the newest block, the last block in which logs were searched, and the answer to each question
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer
 */
export async function askChain(
  client: ChainClient,
  {
    questions,
    multicallAddress,
    getFirstLogBlock,
  }: {
    readonly questions: readonly Question[];
    /** undefined: the chain has no Multicall3. */
    readonly multicallAddress: string | undefined;
    /** First block in which logs are searched; it depends on the newest block. */
    readonly getFirstLogBlock: (head: number) => number;
  },
  signal: AbortSignal,
) {
  const unique = [...new Map(questions.map((question) => [getQuestionKey(question), question])).values()];
  const flags = unique.filter((question) => question.kind === "flag");
  const receipts = unique.filter((question) => question.kind === "receipt");
  const logQuestions = unique.filter((question) => question.kind === "log");
  const flagCalls = createFlagCalls(flags, multicallAddress);
  const receiptCalls = receipts.map(({ hash }) => ({ method: "eth_getTransactionReceipt", params: [hash] }));
  const outcomes = await client.sendBatch([LATEST_BLOCK_CALL, ...flagCalls, ...receiptCalls], signal);
  const results = outcomes.map(findRpcResult);
  const head = parseBlockHeader(client, results[0])?.number;
  if (head === undefined) throw invalidResponse(client);
  const flagResults = parseFlags(results.slice(1, 1 + flagCalls.length), flags.length);

  const receiptByHash = new Map<string, Receipt | undefined>();
  for (const [index, { hash }] of receipts.entries()) {
    receiptByHash.set(hash, parseReceipt(client, results[1 + flagCalls.length + index]));
  }
  const setFlags = new Set(flags.filter((_, index) => flagResults[index] === true).map(getQuestionKey));
  const range = { from: Math.max(0, Math.min(getFirstLogBlock(head), head)), to: head };
  const { logs, searchedTo } = await searchNewLogs(client, logQuestions, range, signal);

  return {
    head,
    searchedTo,
    getAnswer: (question: Question): Answer => ({
      head,
      receipt: question.kind === "receipt" ? receiptByHash.get(question.hash) : undefined,
      isFound:
        question.kind === "log" ? logs.some((log) => matches(log, question)) : setFlags.has(getQuestionKey(question)),
    }),
  };
}

function createFlagCalls(flags: readonly FlagQuestion[], multicallAddress: string | undefined): readonly RpcCall[] {
  const createCall = (to: string, data: string) => ({ method: "eth_call", params: [{ to, data }, "latest"] });
  if (multicallAddress === undefined || flags.length <= MAX_SINGLE_FLAGS)
    return flags.map(({ call }) => createCall(call.to, call.data));
  return [createCall(multicallAddress, encodeMulticall(flags.map(({ call }) => call)))];
}

/** Returns for each flag whether it is set; undefined: the call has failed. */
function parseFlags(results: readonly unknown[], count: number): readonly (boolean | undefined)[] {
  const [first] = results;
  const isMulticall = results.length < count;
  const words = isMulticall ? (isHexData(first) ? decodeMulticall(first, count) : undefined) : results;
  return (words ?? []).map((word) => (isHexData(word) && word.length > 2 ? BigInt(word) !== 0n : undefined));
}

async function searchNewLogs(
  client: ChainClient,
  questions: readonly LogQuestion[],
  range: BlockRange,
  signal: AbortSignal,
): Promise<{ readonly logs: readonly Log[]; readonly searchedTo: number }> {
  const pages = await Promise.all(
    joinLogFilters(questions).map((filter) => readLogPage(client, { filter, range }, signal)),
  );
  return {
    logs: pages.flatMap(({ logs }) => logs),
    // An endpoint may search fewer blocks at once: the next poll goes on from there.
    searchedTo: Math.min(range.to, ...pages.map((page) => page.range.to)),
  };
}

function matches(log: Log, { address, topics }: LogQuestion): boolean {
  return address.includes(log.address) && topics.every((topic, index) => topic === null || log.topics[index] === topic);
}
