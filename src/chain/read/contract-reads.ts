import { ServiceError } from "../../errors.js";
import { decodeUintAt, toFunctionSelector } from "../abi/abi-encoding.js";
import { type ContractCall, decodeMulticall, encodeMulticall } from "../abi/multicall.js";
import { type ChainClient, getResult, type RpcCall, type RpcOutcome } from "../chain-client.js";
import { isHexData, isQuantity } from "../hex.js";
import { InvalidResultError } from "../json-rpc/rpc-codec.js";

export interface Block {
  readonly number: bigint;
  /** Unix seconds. */
  readonly timeSeconds: bigint;
}

export interface ContractReadResult {
  /** The block in which all views were read. */
  readonly block: Block;
  /** What each view returned, 0x-prefixed hex; undefined where it reverted. */
  readonly returnData: readonly (string | undefined)[];
  /** What the other calls gave, in their order. */
  readonly outcomes: readonly RpcOutcome[];
}

export interface ContractReadOptions {
  /** Where Multicall3 stands; undefined: nowhere. */
  readonly multicall: string | undefined;
  /** Whether EVM code sees the number of a block of L1, as on Arbitrum's chains. */
  readonly seesL1Blocks: boolean;
}

const getBlockNumberSelector = toFunctionSelector("getBlockNumber()");
const getCurrentBlockTimestampSelector = toFunctionSelector("getCurrentBlockTimestamp()");
/** Arbitrum's own contract, which knows the number of Arbitrum's blocks. */
const arbBlockNumberCall: ContractCall = {
  to: "0x0000000000000000000000000000000000000064",
  data: toFunctionSelector("arbBlockNumber()"),
};

/** Longest answer to a view on a chain without Multicall3, in characters. */
const MAX_RETURN_DATA_CHARS = 2050;

/**
 * Reads views in one block, and makes other calls along with them: one batch of JSON-RPC, or two requests where there is
 * no Multicall3 and the block must be known first.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer, or none that Multicall3 could give
 */
export async function readContracts(
  client: ChainClient,
  { multicall, seesL1Blocks }: ContractReadOptions,
  views: readonly ContractCall[],
  others: readonly RpcCall[],
  signal: AbortSignal,
): Promise<ContractReadResult> {
  if (multicall === undefined) return readContractsSingly(client, views, others, signal);
  const ofBlock: readonly ContractCall[] = [
    { to: multicall, data: getCurrentBlockTimestampSelector },
    seesL1Blocks ? arbBlockNumberCall : { to: multicall, data: getBlockNumberSelector },
  ];
  const all = [...ofBlock, ...views];
  const decode = (answer: unknown) => (isHexData(answer) ? decodeMulticall(answer, all.length) : undefined);
  const call: RpcCall = {
    method: "eth_call",
    params: [{ to: multicall, data: encodeMulticall(all) }, "latest"],
    validate: (result) => decode(result) !== undefined,
  };
  let answered: readonly RpcOutcome[];
  try {
    answered = await client.sendBatch([call, ...others], signal);
  } catch (error) {
    // No node has code there: the chain has no Multicall3 after all.
    const cause = error instanceof ServiceError ? error.cause : undefined;
    if (cause instanceof InvalidResultError && cause.isEmpty) return readContractsSingly(client, views, others, signal);
    throw error;
  }
  const [first, ...outcomes] = answered;
  const answers = decode(getResult(first));
  const [timeSeconds, number] = (answers ?? []).map((each) => decodeUintAt(each ?? "0x", 0));
  if (answers === undefined || timeSeconds === undefined || number === undefined) throw invalidResponse(client);
  return { block: { number, timeSeconds }, returnData: answers.slice(ofBlock.length), outcomes };
}

async function readContractsSingly(
  client: ChainClient,
  views: readonly ContractCall[],
  others: readonly RpcCall[],
  signal: AbortSignal,
): Promise<ContractReadResult> {
  const head = await client.send("eth_getBlockByNumber", ["latest", false], signal);
  const { number, timestamp } = (head ?? {}) as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) throw invalidResponse(client);
  const calls = views.map((view) => ({ method: "eth_call", params: [view, number] }));
  const outcomes = await client.sendBatch([...calls, ...others], signal);
  return {
    block: { number: BigInt(number), timeSeconds: BigInt(timestamp) },
    returnData: outcomes.slice(0, views.length).map((outcome) => {
      const answer = getResult(outcome);
      return isHexData(answer) && answer.length <= MAX_RETURN_DATA_CHARS ? answer : undefined;
    }),
    outcomes: outcomes.slice(views.length),
  };
}

/** The first word of what a view returned, as an unsigned integer; undefined where it reverted or returned none. */
export function decodeUintResult(outcome: RpcOutcome | undefined): bigint | undefined {
  const answer = getResult(outcome);
  return isHexData(answer) ? decodeUintAt(answer, 0) : undefined;
}

function invalidResponse({ slug }: ChainClient): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} gives an answer that Hop's chain could not give`);
}
