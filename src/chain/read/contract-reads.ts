import { ServiceError } from "../../errors.js";
import { decodeUintAt, toFunctionSelector } from "../abi/abi-encoding.js";
import { type ContractCall, decodeMulticall, encodeMulticall } from "../abi/multicall.js";
import { type ChainClient, getRpcResult, type RpcCall, type RpcCallResult } from "../chain-client.js";
import { isHexData, isQuantity } from "../hex.js";
import { LATEST_BLOCK_CALL } from "../json-rpc/common-calls.js";
import { invalidResponse } from "../json-rpc/parse-results.js";
import { InvalidResultError } from "../json-rpc/rpc-codec.js";

export interface Block {
  readonly number: bigint;
  /** Unix seconds. */
  readonly timeSeconds: bigint;
}

export interface ContractReadResult {
  /** The block in which all contract calls were made. */
  readonly block: Block;
  /** Return data of each contract call as 0x-prefixed hex; undefined for a call that reverted. */
  readonly returnData: readonly (string | undefined)[];
  /** Outcomes of the other calls, in their order. */
  readonly outcomes: readonly RpcCallResult[];
}

export interface ContractReadOptions {
  /** Address of Multicall3; undefined: the chain has none. */
  readonly multicallAddress: string | undefined;
  /** Whether contracts see block numbers of L1, as on Arbitrum's chains. */
  readonly hasL1BlockNumbers: boolean;
}

const GET_BLOCK_NUMBER_SELECTOR = toFunctionSelector("getBlockNumber()");
const GET_CURRENT_BLOCK_TIMESTAMP_SELECTOR = toFunctionSelector("getCurrentBlockTimestamp()");
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
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no response, or one that Multicall3 cannot give
 */
export async function readContracts(
  client: ChainClient,
  { multicallAddress, hasL1BlockNumbers }: ContractReadOptions,
  contractCalls: readonly ContractCall[],
  otherCalls: readonly RpcCall[],
  signal: AbortSignal,
): Promise<ContractReadResult> {
  if (multicallAddress === undefined) return readContractsSingly(client, contractCalls, otherCalls, signal);
  const blockCalls: readonly ContractCall[] = [
    { to: multicallAddress, data: GET_CURRENT_BLOCK_TIMESTAMP_SELECTOR },
    hasL1BlockNumbers ? ARB_BLOCK_NUMBER_CALL : { to: multicallAddress, data: GET_BLOCK_NUMBER_SELECTOR },
  ];
  const allCalls = [...blockCalls, ...contractCalls];
  const decode = (result: unknown) => (isHexData(result) ? decodeMulticall(result, allCalls.length) : undefined);
  const multicall: RpcCall = {
    method: "eth_call",
    params: [{ to: multicallAddress, data: encodeMulticall(allCalls) }, "latest"],
    validate: (result) => decode(result) !== undefined,
  };
  let allOutcomes: readonly RpcCallResult[];
  try {
    allOutcomes = await client.sendBatch([multicall, ...otherCalls], signal);
  } catch (error) {
    // An empty result from every node: the chain has no Multicall3 at this address.
    const cause = error instanceof ServiceError ? error.cause : undefined;
    if (cause instanceof InvalidResultError && cause.isEmpty)
      return readContractsSingly(client, contractCalls, otherCalls, signal);
    throw error;
  }
  const [multicallOutcome, ...outcomes] = allOutcomes;
  const results = decode(getRpcResult(multicallOutcome));
  const [timeSeconds, number] = (results ?? []).map((result) => decodeUintAt(result ?? "0x", 0));
  if (results === undefined || timeSeconds === undefined || number === undefined) throw invalidResponse(client);
  return { block: { number, timeSeconds }, returnData: results.slice(blockCalls.length), outcomes };
}

async function readContractsSingly(
  client: ChainClient,
  contractCalls: readonly ContractCall[],
  otherCalls: readonly RpcCall[],
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
      const result = getRpcResult(outcome);
      return isHexData(result) && result.length <= MAX_RETURN_DATA_CHARS ? result : undefined;
    }),
    outcomes: outcomes.slice(contractCalls.length),
  };
}

/** Decodes the first word of a result as an unsigned integer; undefined where the call reverted or returned none. */
export function decodeUintResult(outcome: RpcCallResult | undefined): bigint | undefined {
  const result = getRpcResult(outcome);
  return isHexData(result) ? decodeUintAt(result, 0) : undefined;
}
