import { ExchangeError } from "../../resilience/fetch-json.js";
import { selectorOf } from "../abi/abi-encoding.js";
import { decodeMulticall, encodeMulticall } from "../abi/multicall.js";
import { type BlockRange, isBytes, isRevert, type LogFilter, type RpcCall, toQuantity } from "../chain-client.js";
import { fewestBlocks, firstGuess, isAboutWidth, namedBy } from "../endpoints/adaptive-block-range.js";
import { areLogsOf } from "../json-rpc/parse-results.js";
import { CallRefused, UnfitResult } from "../json-rpc/rpc-codec.js";
import { type EndpointProbe, unlessTrouble } from "./endpoint-probe.js";

/** What an endpoint can do. What is undefined is not known. */
export interface Abilities {
  /** Median of a few small calls, in milliseconds. */
  readonly latencyMs: number | undefined;
  /** How it calls contracts: many at a time through Multicall3, only singly since none is there, or not at all. */
  readonly contracts: "together" | "singly" | "none" | undefined;
  /** Most calls that it took in one request; 1: it takes no batches. */
  readonly batch: number | undefined;
  /** Most blocks of which it searched the logs at once; Infinity: the whole chain; 0: it searches none. */
  readonly logBlocks: number | undefined;
}

export interface AbilitiesOptions {
  readonly multicall: string | undefined;
  readonly filter: LogFilter;
  readonly now: () => number;
}

const latencySamples = 3;
/** Sizes of batches that are tried, up to the first that is not taken. */
export const batchSizes = [2, 5, 10, 20, 50];
/** Widths of searches that are tried, down to the first that is taken, where a refusal names no other. */
const logWidths = [Number.POSITIVE_INFINITY, 1_000_000, 100_000, 10_000, 1_000, 100, fewestBlocks];
/** Searches that are tried at most. */
const mostSearches = 10;

const smallCall: RpcCall = { method: "eth_blockNumber", params: [] };
const getBlockNumber = selectorOf("getBlockNumber()");
const zeroAddress = `0x${"0".repeat(40)}`;

/**
 * One thing after the other: an endpoint that serves few requests a second should not seem to serve none. Never rejects
 * because of what it answers.
 * @param head number of its newest block
 */
export async function readAbilities(
  probe: EndpointProbe,
  head: number,
  { multicall, filter, now }: AbilitiesOptions,
  signal: AbortSignal,
): Promise<Abilities> {
  return {
    latencyMs: await latency(),
    contracts: await contracts(),
    batch: await batch(),
    logBlocks: await logBlocks(),
  };

  async function latency(): Promise<number | undefined> {
    const times: number[] = [];
    for (let sample = 0; sample < latencySamples; sample++) {
      const began = now();
      if ((await unlessTrouble(probe.call(smallCall, signal))) !== undefined) times.push(now() - began);
    }
    return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
  }

  async function contracts(): Promise<Abilities["contracts"]> {
    const data = multicall === undefined ? "0x" : encodeMulticall([{ to: multicall, data: getBlockNumber }]);
    const isAnswer = (result: unknown): boolean =>
      multicall === undefined || (isBytes(result) && decodeMulticall(result, 1)?.[0] !== undefined);
    const call = { method: "eth_call", params: [{ to: multicall ?? zeroAddress, data }, "latest"], isAnswer };
    try {
      const outcome = await probe.call(call, signal);
      if (isRevert(outcome)) return "none";
      return multicall === undefined ? "singly" : "together";
    } catch (error) {
      if (error instanceof UnfitResult) return error.isEmpty ? "singly" : "none";
      if (error instanceof CallRefused) return isBusy(error) ? undefined : "none";
      if (error instanceof ExchangeError) return undefined;
      throw error;
    }
  }

  async function batch(): Promise<number | undefined> {
    let most: number | undefined;
    for (const size of batchSizes) {
      const isTaken = await probe.takesBatch(Array<RpcCall>(size).fill(smallCall), signal);
      if (isTaken !== true) return most ?? (isTaken === false ? 1 : undefined);
      most = size;
    }
    return most;
  }

  /** Goes down as the service does when it is refused. */
  async function logBlocks(): Promise<number | undefined> {
    let width = logWidths[0];
    for (let searches = 0; width !== undefined && searches < mostSearches; searches++) {
      const range = rangeOf(width);
      try {
        await search(range);
        return width;
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error;
        if (error instanceof CallRefused && error.refusal?.about === "absent") return 0;
        // What comes late was too long, unless it was short.
        const isLate = error.fault === "timeout" && width > firstGuess;
        if (!isLate && !isAboutWidth(error)) return undefined;
        const named = isLate ? undefined : namedBy(error, range);
        const tried = width;
        width = named ?? logWidths.find((each) => each < tried && each <= Math.max(head, fewestBlocks));
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
    const isAnswer = (result: unknown): boolean => areLogsOf(result, filter, range);
    await probe.call({ method: "eth_getLogs", params, isAnswer }, signal);
  }
}

function isBusy({ refusal }: CallRefused): boolean {
  return refusal?.about === "busy";
}
