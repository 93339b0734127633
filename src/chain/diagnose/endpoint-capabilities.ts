import { UpstreamError } from "../../resilience/upstream-error.js";
import { toFunctionSelector } from "../abi/abi-encoding.js";
import { decodeMulticall, encodeMulticall } from "../abi/multicall.js";
import { type BlockRange, isReverted, type LogFilter, type RpcCall } from "../chain-client.js";
import {
  DEFAULT_MAX_BLOCK_RANGE,
  isBlockRangeError,
  MIN_BLOCK_RANGE,
  parseSuggestedBlockRange,
} from "../endpoints/adaptive-block-range.js";
import { isHexData, toQuantity } from "../hex.js";
import { areLogsMatching } from "../json-rpc/parse-results.js";
import { InvalidResultError, RpcError } from "../json-rpc/rpc-codec.js";
import { type EndpointProbe, ignoreUpstreamError } from "./endpoint-probe.js";

/** What an endpoint can do. What is undefined is not known. */
export interface EndpointCapabilities {
  /** Median of a few small calls, in milliseconds. */
  readonly latencyMs: number | undefined;
  /** How it calls contracts: many at a time through Multicall3, only singly since none is there, or not at all. */
  readonly contracts: "together" | "singly" | "none" | undefined;
  /** Most calls that it took in one request; 1: it takes no batches. */
  readonly batch: number | undefined;
  /** Most blocks of which it searched the logs at once; Infinity: the whole chain; 0: it searches none. */
  readonly logBlocks: number | undefined;
}

export interface DetectCapabilitiesOptions {
  readonly multicall: string | undefined;
  readonly filter: LogFilter;
  readonly now: () => number;
}

const LATENCY_SAMPLES = 3;
/** Sizes of batches that are tried, up to the first that is not taken. */
export const PROBED_BATCH_SIZES = [2, 5, 10, 20, 50];
/** Widths of searches that are tried, down to the first that is taken, where a refusal names no other. */
const PROBED_BLOCK_RANGES = [Number.POSITIVE_INFINITY, 1_000_000, 100_000, 10_000, 1_000, 100, MIN_BLOCK_RANGE];
/** Searches that are tried at most. */
const MAX_LOG_SEARCHES = 10;

const BLOCK_NUMBER_CALL: RpcCall = { method: "eth_blockNumber", params: [] };
const getBlockNumberSelector = toFunctionSelector("getBlockNumber()");
const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/**
 * One thing after the other: an endpoint that serves few requests a second should not seem to serve none. Never rejects
 * because of what it answers.
 * @param head number of its newest block
 */
export async function detectCapabilities(
  probe: EndpointProbe,
  head: number,
  { multicall, filter, now }: DetectCapabilitiesOptions,
  signal: AbortSignal,
): Promise<EndpointCapabilities> {
  return {
    latencyMs: await latency(),
    contracts: await contracts(),
    batch: await batch(),
    logBlocks: await logBlocks(),
  };

  async function latency(): Promise<number | undefined> {
    const times: number[] = [];
    for (let sample = 0; sample < LATENCY_SAMPLES; sample++) {
      const began = now();
      if ((await ignoreUpstreamError(probe.send(BLOCK_NUMBER_CALL, signal))) !== undefined) times.push(now() - began);
    }
    return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
  }

  async function contracts(): Promise<EndpointCapabilities["contracts"]> {
    const data = multicall === undefined ? "0x" : encodeMulticall([{ to: multicall, data: getBlockNumberSelector }]);
    const validate = (result: unknown): boolean =>
      multicall === undefined || (isHexData(result) && decodeMulticall(result, 1)?.[0] !== undefined);
    const call = { method: "eth_call", params: [{ to: multicall ?? ZERO_ADDRESS, data }, "latest"], validate };
    try {
      const outcome = await probe.send(call, signal);
      if (isReverted(outcome)) return "none";
      return multicall === undefined ? "singly" : "together";
    } catch (error) {
      if (error instanceof InvalidResultError) return error.isEmpty ? "singly" : "none";
      if (error instanceof RpcError) return isRateLimited(error) ? undefined : "none";
      if (error instanceof UpstreamError) return undefined;
      throw error;
    }
  }

  async function batch(): Promise<number | undefined> {
    let most: number | undefined;
    for (const size of PROBED_BATCH_SIZES) {
      const isTaken = await probe.supportsBatch(Array<RpcCall>(size).fill(BLOCK_NUMBER_CALL), signal);
      if (isTaken !== true) return most ?? (isTaken === false ? 1 : undefined);
      most = size;
    }
    return most;
  }

  /** Goes down as the service does when it is refused. */
  async function logBlocks(): Promise<number | undefined> {
    let width = PROBED_BLOCK_RANGES[0];
    for (let searches = 0; width !== undefined && searches < MAX_LOG_SEARCHES; searches++) {
      const range = rangeOf(width);
      try {
        await search(range);
        return width;
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        if (error instanceof RpcError && error.classification?.kind === "absent") return 0;
        // What comes late was too long, unless it was short.
        const isLate = error.kind === "timeout" && width > DEFAULT_MAX_BLOCK_RANGE;
        if (!isLate && !isBlockRangeError(error)) return undefined;
        const named = isLate ? undefined : parseSuggestedBlockRange(error, range);
        const tried = width;
        width = named ?? PROBED_BLOCK_RANGES.find((each) => each < tried && each <= Math.max(head, MIN_BLOCK_RANGE));
      }
    }
    return 0;
  }

  function rangeOf(width: number): BlockRange {
    if (width === Number.POSITIVE_INFINITY) return { from: 0, to: width };
    return { from: Math.max(head - width + 1, 0), to: head };
  }

  async function search(range: BlockRange): Promise<void> {
    const toBlock = range.to === Number.POSITIVE_INFINITY ? "latest" : toQuantity(range.to);
    const params = [{ ...filter, fromBlock: toQuantity(range.from), toBlock }];
    const validate = (result: unknown): boolean => areLogsMatching(result, filter, range);
    await probe.send({ method: "eth_getLogs", params, validate }, signal);
  }
}

function isRateLimited({ classification }: RpcError): boolean {
  return classification?.kind === "busy";
}
