import { decodeMulticall, encodeMulticall } from "../../../chain/abi/multicall.js";
import { type ChainClient, getRpcResult, type RpcCall } from "../../../chain/chain-client.js";
import { isHexData } from "../../../chain/hex.js";
import { LATEST_BLOCK_CALL } from "../../../chain/json-rpc/common-calls.js";
import { invalidResponse, parseBlockHeader, parseReceipt } from "../../../chain/json-rpc/parse-results.js";
import { type Log, type Receipt, readLogPage } from "../../../chain/read/chain-reads.js";
import type { Chain } from "../../../hop/networks.js";
import { type Answer, getQuestionKey, joinLogFilters, type Question } from "./questions.js";

type FlagQuestion = Question & { readonly kind: "flag" };
type LogQuestion = Question & { readonly kind: "log" };

/** One poll of a chain. */
export interface ChainPoll {
  readonly questions: readonly Question[];
  /** First block in which logs are searched; it depends on the newest block. */
  readonly getFirstLogBlock: (head: number) => number;
}

export interface ChainAnswers {
  readonly head: number;
  /** The last block in which logs were searched. */
  readonly searchedTo: number;
  getAnswer(question: Question): Answer;
}

/** Up to this many flags are read one by one, so that a chain needs no Multicall3. */
const MAX_SINGLE_FLAGS = 2;

/**
 * Asks a chain many questions: one batch, and one log search for each event among them.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer
 */
export async function askChain(
  client: ChainClient,
  { multicallAddress }: Pick<Chain, "multicallAddress">,
  { questions, getFirstLogBlock }: ChainPoll,
  signal: AbortSignal,
): Promise<ChainAnswers> {
  const unique = [...new Map(questions.map((question) => [getQuestionKey(question), question])).values()];
  const flags = unique.filter((question) => question.kind === "flag");
  const receipts = unique.filter((question) => question.kind === "receipt");
  const logQuestions = unique.filter((question) => question.kind === "log");
  const flagCalls = createFlagCalls(flags, multicallAddress);
  const receiptCalls = receipts.map(({ hash }) => ({ method: "eth_getTransactionReceipt", params: [hash] }));
  const outcomes = await client.sendBatch([LATEST_BLOCK_CALL, ...flagCalls, ...receiptCalls], signal);
  const results = outcomes.map(getRpcResult);
  const head = parseBlockHeader(client, results[0])?.number;
  if (head === undefined) throw invalidResponse(client);
  const flagResults = parseFlags(results.slice(1, 1 + flagCalls.length), flags.length);

  const receiptByHash = new Map<string, Receipt | undefined>();
  for (const [index, { hash }] of receipts.entries()) {
    receiptByHash.set(hash, parseReceipt(client, results[1 + flagCalls.length + index]));
  }
  const setFlags = new Set(flags.filter((_, index) => flagResults[index] === true).map(getQuestionKey));
  const { logs, searchedTo } = await searchNewLogs(client, logQuestions, getFirstLogBlock(head), head, signal);

  return {
    head,
    searchedTo,
    getAnswer: (question) => ({
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
  from: number,
  head: number,
  signal: AbortSignal,
): Promise<{ readonly logs: readonly Log[]; readonly searchedTo: number }> {
  const search = { from: Math.max(0, Math.min(from, head)), to: head };
  const pages = await Promise.all(
    joinLogFilters(questions).map((filter) => readLogPage(client, filter, search, { newestFirst: false }, signal)),
  );
  return {
    logs: pages.flatMap(({ logs }) => logs),
    // An endpoint may search fewer blocks at once: the next poll goes on from there.
    searchedTo: Math.min(head, ...pages.map(({ range }) => range.to)),
  };
}

function matches(log: Log, { address, topics }: LogQuestion): boolean {
  return address.includes(log.address) && topics.every((topic, index) => topic === null || log.topics[index] === topic);
}
