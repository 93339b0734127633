import { ServiceError } from "../../errors.js";
import { selectorOf, uintAt } from "../abi/abi-encoding.js";
import { decodeMulticall, encodeMulticall, type View } from "../abi/multicall.js";
import { type ChainClient, isBytes, isQuantity, type RpcCall, type RpcOutcome, resultOf } from "../chain-client.js";
import { UnfitResult } from "../json-rpc/rpc-codec.js";

export interface Block {
  readonly number: bigint;
  /** Unix seconds. */
  readonly timeSeconds: bigint;
}

export interface ViewReading {
  /** The block in which all views were read. */
  readonly block: Block;
  /** What each view returned, 0x-prefixed hex; undefined where it reverted. */
  readonly answers: readonly (string | undefined)[];
  /** What the other calls gave, in their order. */
  readonly outcomes: readonly RpcOutcome[];
}

export interface ViewOptions {
  /** Where Multicall3 stands; undefined: nowhere. */
  readonly multicall: string | undefined;
  /** Whether EVM code sees the number of a block of L1, as on Arbitrum's chains. */
  readonly seesL1Blocks: boolean;
}

const getBlockNumber = selectorOf("getBlockNumber()");
const getCurrentBlockTimestamp = selectorOf("getCurrentBlockTimestamp()");
/** Arbitrum's own contract, which knows the number of Arbitrum's blocks. */
const arbSys: View = { to: "0x0000000000000000000000000000000000000064", data: selectorOf("arbBlockNumber()") };

/** Longest answer to a view on a chain without Multicall3, in characters. */
const longestAnswer = 2050;

/**
 * Reads views in one block, and makes other calls along with them: one batch of JSON-RPC, or two requests where there is
 * no Multicall3 and the block must be known first.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer, or none that Multicall3 could give
 */
export async function readViews(
  client: ChainClient,
  { multicall, seesL1Blocks }: ViewOptions,
  views: readonly View[],
  others: readonly RpcCall[],
  signal: AbortSignal,
): Promise<ViewReading> {
  if (multicall === undefined) return readViewsSingly(client, views, others, signal);
  const ofBlock: readonly View[] = [
    { to: multicall, data: getCurrentBlockTimestamp },
    seesL1Blocks ? arbSys : { to: multicall, data: getBlockNumber },
  ];
  const all = [...ofBlock, ...views];
  const decode = (answer: unknown) => (isBytes(answer) ? decodeMulticall(answer, all.length) : undefined);
  const call: RpcCall = {
    method: "eth_call",
    params: [{ to: multicall, data: encodeMulticall(all) }, "latest"],
    isAnswer: (result) => decode(result) !== undefined,
  };
  let answered: readonly RpcOutcome[];
  try {
    answered = await client.batch([call, ...others], signal);
  } catch (error) {
    // No node has code there: the chain has no Multicall3 after all.
    const cause = error instanceof ServiceError ? error.cause : undefined;
    if (cause instanceof UnfitResult && cause.isEmpty) return readViewsSingly(client, views, others, signal);
    throw error;
  }
  const [first, ...outcomes] = answered;
  const answers = decode(resultOf(first));
  const [timeSeconds, number] = (answers ?? []).map((each) => uintAt(each ?? "0x", 0));
  if (answers === undefined || timeSeconds === undefined || number === undefined) throw unreadable(client);
  return { block: { number, timeSeconds }, answers: answers.slice(ofBlock.length), outcomes };
}

async function readViewsSingly(
  client: ChainClient,
  views: readonly View[],
  others: readonly RpcCall[],
  signal: AbortSignal,
): Promise<ViewReading> {
  const head = await client.send("eth_getBlockByNumber", ["latest", false], signal);
  const { number, timestamp } = (head ?? {}) as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) throw unreadable(client);
  const calls = views.map((view) => ({ method: "eth_call", params: [view, number] }));
  const outcomes = await client.batch([...calls, ...others], signal);
  return {
    block: { number: BigInt(number), timeSeconds: BigInt(timestamp) },
    answers: outcomes.slice(0, views.length).map((outcome) => {
      const answer = resultOf(outcome);
      return isBytes(answer) && answer.length <= longestAnswer ? answer : undefined;
    }),
    outcomes: outcomes.slice(views.length),
  };
}

/** The first word of what a view returned, as an unsigned integer; undefined where it reverted or returned none. */
export function wordOf(outcome: RpcOutcome | undefined): bigint | undefined {
  const answer = resultOf(outcome);
  return isBytes(answer) ? uintAt(answer, 0) : undefined;
}

function unreadable({ slug }: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} gives an answer that Hop's chain could not give`);
}
