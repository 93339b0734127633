import { ServiceError } from "../../errors.js";
import { decodeUintAt, toFunctionSelector } from "../abi/abi-encoding.js";
import { type ContractCall, decodeMulticall, encodeMulticall } from "../abi/multicall.js";
import { type ChainClient, findRpcResult, type RpcCall, type RpcCallResult } from "../chain-client.js";
import { isHexData, isQuantity } from "../hex.js";
import { invalidResponse } from "../json-rpc/parse-results.js";
import { LATEST_BLOCK_CALL } from "../json-rpc/rpc-codec.js";
import { InvalidResultError } from "../json-rpc/rpc-errors.js";

export interface Block {
  readonly number: bigint;
  /** Unix seconds. */
  readonly timeSeconds: bigint;
}

interface ContractReadResult {
  /** The block in which all contract calls were made. */
  readonly block: Block;
  /** Return data of each contract call as 0x-prefixed hex; undefined for a call that reverted. */
  readonly returnData: readonly (string | undefined)[];
  /** Outcomes of the other calls, in their order. */
  readonly outcomes: readonly RpcCallResult[];
}

interface ContractReads {
  readonly contractCalls: readonly ContractCall[];
  /** Default: none. */
  readonly otherCalls?: readonly RpcCall[];
}

const GET_BLOCK_NUMBER_SELECTOR = toFunctionSelector("getBlockNumber()");
const GET_CURRENT_BLOCK_TIMESTAMP_SELECTOR = toFunctionSelector("getCurrentBlockTimestamp()");
/** Chains where a contract sees the block number of L1 instead of its own. */
const L1_BLOCK_NUMBER_SLUGS = new Set(["arbitrum", "nova"]);
/** Arbitrum's precompile ArbSys, which returns the number of Arbitrum's own block. */
const ARB_BLOCK_NUMBER_CALL: ContractCall = {
  to: "0x0000000000000000000000000000000000000064",
  data: toFunctionSelector("arbBlockNumber()"),
};

/** Maximum length of a contract call's return data on a chain without Multicall3, in characters. */
const MAX_RETURN_DATA_CHARS = 2050;

/**
 * Makes contract calls in one block, along with other calls: in one JSON-RPC batch, or in two requests where there is no
 * Multicall3 and the block must be known first.
 * @param multicallAddress address of Multicall3; undefined: the chain has none
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no response, or one that Multicall3 cannot give
 */
export async function readContracts(
  client: ChainClient,
  multicallAddress: string | undefined,
  reads: ContractReads,
  signal: AbortSignal,
): Promise<ContractReadResult> {
  const { contractCalls, otherCalls = [] } = reads;
  if (multicallAddress === undefined) return readContractsSingly(client, reads, signal);
  const blockCalls: readonly ContractCall[] = [
    { to: multicallAddress, data: GET_CURRENT_BLOCK_TIMESTAMP_SELECTOR },
    L1_BLOCK_NUMBER_SLUGS.has(client.slug)
      ? ARB_BLOCK_NUMBER_CALL
      : { to: multicallAddress, data: GET_BLOCK_NUMBER_SELECTOR },
  ];
  const allCalls = [...blockCalls, ...contractCalls];
  const decode = (result: unknown) => (isHexData(result) ? decodeMulticall(result, allCalls.length) : undefined);
  const multicall: RpcCall = {
    method: "eth_call",
    params: [{ to: multicallAddress, data: encodeMulticall(allCalls) }, "latest"],
    validate: (result) => decode(result) !== undefined,
    parseHead(result) {
      const block = decodeBlock(decode(result));
      return block && { number: Number(block.number), timestamp: Number(block.timeSeconds) };
    },
  };
  let allOutcomes: readonly RpcCallResult[];
  try {
    allOutcomes = await client.sendBatch([multicall, ...otherCalls], signal);
  } catch (error) {
    // An empty result from every node: the chain has no Multicall3 at this address.
    const cause = error instanceof ServiceError ? error.cause : undefined;
    if (cause instanceof InvalidResultError && cause.isEmpty) return readContractsSingly(client, reads, signal);
    throw error;
  }
  const [multicallOutcome, ...outcomes] = allOutcomes;
  const results = decode(findRpcResult(multicallOutcome));
  const block = decodeBlock(results);
  if (results === undefined || block === undefined) throw invalidResponse(client);
  return { block, returnData: results.slice(blockCalls.length), outcomes };
}

/** Decodes the block from the results of a multicall, of which the first two are its time and its number. */
function decodeBlock(results: readonly (string | undefined)[] | undefined): Block | undefined {
  const [timeSeconds, number] = (results ?? []).slice(0, 2).map((result) => decodeUintAt(result ?? "0x", 0));
  return timeSeconds === undefined || number === undefined ? undefined : { number, timeSeconds };
}

async function readContractsSingly(
  client: ChainClient,
  { contractCalls, otherCalls = [] }: ContractReads,
  signal: AbortSignal,
): Promise<ContractReadResult> {
  const head = await client.send(LATEST_BLOCK_CALL.method, LATEST_BLOCK_CALL.params, signal);
  const { number, timestamp } = (head ?? {}) as { number?: unknown; timestamp?: unknown };
  if (!isQuantity(number) || !isQuantity(timestamp)) throw invalidResponse(client);
  const calls = contractCalls.map((call) => ({ method: "eth_call", params: [call, number] }));
  const outcomes = await client.sendBatch([...calls, ...otherCalls], signal);
  return {
    block: { number: BigInt(number), timeSeconds: BigInt(timestamp) },
    returnData: outcomes.slice(0, contractCalls.length).map((outcome) => {
      const result = findRpcResult(outcome);
      return isHexData(result) && result.length <= MAX_RETURN_DATA_CHARS ? result : undefined;
    }),
    outcomes: outcomes.slice(contractCalls.length),
  };
}

/** Decodes the first word of a result as an unsigned integer; undefined where the call reverted or returned none. */
export function decodeUintResult(outcome: RpcCallResult | undefined): bigint | undefined {
  const result = findRpcResult(outcome);
  return isHexData(result) ? decodeUintAt(result, 0) : undefined;
}
