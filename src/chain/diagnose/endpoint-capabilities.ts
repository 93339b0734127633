import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import { toFunctionSelector } from "../abi/abi-encoding.js";
import { decodeMulticall, encodeMulticall } from "../abi/multicall.js";
import { type BlockRange, isReverted, type LogFilter, type RpcCall } from "../chain-client.js";
import { DEFAULT_MAX_BLOCK_RANGE, MIN_BLOCK_RANGE } from "../endpoints/endpoint.js";
import { isBlockRangeError, parseSuggestedBlockRange } from "../endpoints/log-reader.js";
import { isHexData, toQuantity } from "../hex.js";
import { areLogsMatching } from "../json-rpc/parse-results.js";
import { InvalidResultError, RpcError } from "../json-rpc/rpc-errors.js";
import { type EndpointProbe, ignoreUpstreamError } from "./endpoint-probe.js";

/** What an endpoint can do. undefined: unknown. */
export interface EndpointCapabilities {
  /** Median latency of a few small calls, in milliseconds. */
  readonly latencyMs: number | undefined;
  /** together: contract calls through Multicall3; singly: one by one, because there is no Multicall3; none: not at all. */
  readonly contracts: "together" | "singly" | "none" | undefined;
  /** Number of calls in the largest accepted batch; 1: no batches. */
  readonly batch: number | undefined;
  /** Largest accepted block range of a log search; Infinity: the whole chain; 0: no log searches. */
  readonly logBlocks: number | undefined;
  /** How many of BURST_CALLS calls at the same time are not throttled. */
  readonly callsAtOnce: number | undefined;
}

export interface DetectCapabilitiesOptions {
  /** Address of Multicall3; undefined: the chain has none. */
  readonly multicall: string | undefined;
  /** Filter for log searches: like that of a lookup, but with few matches. */
  readonly filter: LogFilter;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

const LATENCY_SAMPLES = 3;
/** Calls that are sent at the same time to see whether the endpoint throttles them. */
export const BURST_CALLS = 40;
/** Batch sizes to try, up to the first that is rejected. */
export const PROBED_BATCH_SIZES = [2, 5, 10, 20, 50];
/** Block ranges to try, down to the first that is accepted, unless a rejection names another. */
const PROBED_BLOCK_RANGES = [Number.POSITIVE_INFINITY, 1_000_000, 100_000, 10_000, 1_000, 100, MIN_BLOCK_RANGE];
const MAX_LOG_SEARCHES = 10;

const BLOCK_NUMBER_CALL: RpcCall = { method: "eth_blockNumber", params: [] };
const GET_BLOCK_NUMBER_SELECTOR = toFunctionSelector("getBlockNumber()");
const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/**
 * Detects the capabilities of an endpoint, one after the other, so that an endpoint with a low rate limit does not seem to
 * lack them.
 */
export class CapabilityDetector {
  readonly #probe: EndpointProbe;
  readonly #head: number;
  readonly #options: DetectCapabilitiesOptions;
  readonly #signal: AbortSignal;

  /** @param head number of the endpoint's latest block */
  constructor(probe: EndpointProbe, head: number, options: DetectCapabilitiesOptions, signal: AbortSignal) {
    this.#probe = probe;
    this.#head = head;
    this.#options = options;
    this.#signal = signal;
  }

  /** Never rejects because of the endpoint's responses. To be called once. */
  async detect(): Promise<EndpointCapabilities> {
    return {
      latencyMs: await this.#measureLatency(),
      contracts: await this.#detectContracts(),
      batch: await this.#detectBatchSize(),
      logBlocks: await this.#detectBlockRange(),
      // Last: an endpoint that throttles would seem to lack what is tried after it.
      callsAtOnce: await this.#countCallsAtOnce(),
    };
  }

  async #countCallsAtOnce(): Promise<number | undefined> {
    const send = async (): Promise<"answered" | "throttled" | "failed"> => {
      try {
        await this.#probe.send(BLOCK_NUMBER_CALL, this.#signal);
        return "answered";
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        const isThrottled = error.status === 429 || (error instanceof RpcError && isRateLimited(error));
        return isThrottled ? "throttled" : "failed";
      }
    };
    const results = await Promise.all(Array.from({ length: BURST_CALLS }, send));
    return results.includes("failed") ? undefined : results.filter((result) => result === "answered").length;
  }

  async #measureLatency(): Promise<number | undefined> {
    const latencies: number[] = [];
    for (let sample = 0; sample < LATENCY_SAMPLES; sample++) {
      const startedAt = this.#options.now();
      const outcome = await ignoreUpstreamError(this.#probe.send(BLOCK_NUMBER_CALL, this.#signal));
      if (outcome !== undefined) latencies.push(this.#options.now() - startedAt);
    }
    return latencies.sort((a, b) => a - b)[Math.floor(latencies.length / 2)];
  }

  async #detectContracts(): Promise<EndpointCapabilities["contracts"]> {
    const { multicall } = this.#options;
    const data = multicall === undefined ? "0x" : encodeMulticall([{ to: multicall, data: GET_BLOCK_NUMBER_SELECTOR }]);
    const validate = (result: unknown): boolean =>
      multicall === undefined || (isHexData(result) && decodeMulticall(result, 1)?.[0] !== undefined);
    const call = { method: "eth_call", params: [{ to: multicall ?? ZERO_ADDRESS, data }, "latest"], validate };
    try {
      const outcome = await this.#probe.send(call, this.#signal);
      if (isReverted(outcome)) return "none";
      return multicall === undefined ? "singly" : "together";
    } catch (error) {
      if (error instanceof InvalidResultError) return error.isEmpty ? "singly" : "none";
      if (error instanceof RpcError) return isRateLimited(error) ? undefined : "none";
      if (error instanceof UpstreamError) return undefined;
      throw error;
    }
  }

  async #detectBatchSize(): Promise<number | undefined> {
    let largest: number | undefined;
    for (const size of PROBED_BATCH_SIZES) {
      const isSupported = await this.#probe.supportsBatch(Array<RpcCall>(size).fill(BLOCK_NUMBER_CALL), this.#signal);
      if (isSupported !== true) return largest ?? (isSupported === false ? 1 : undefined);
      largest = size;
    }
    return largest;
  }

  /** Narrows the range after each rejection, as the adaptive log reader does. */
  async #detectBlockRange(): Promise<number | undefined> {
    let blockCount = PROBED_BLOCK_RANGES[0];
    for (let searches = 0; blockCount !== undefined && searches < MAX_LOG_SEARCHES; searches++) {
      const range = this.#toRange(blockCount);
      try {
        await this.#searchLogs(range);
        return blockCount;
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        if (error instanceof RpcError && error.classification?.kind === "not_found") return 0;
        // A timeout means that the range was too wide, unless it was narrow.
        const isTimeout = error.kind === "timeout" && blockCount > DEFAULT_MAX_BLOCK_RANGE;
        if (!isTimeout && !isBlockRangeError(error)) return undefined;
        const suggested = isTimeout ? undefined : parseSuggestedBlockRange(error, range);
        blockCount = suggested ?? this.#findNextBlockRange(blockCount);
      }
    }
    return 0;
  }

  #findNextBlockRange(rejected: number): number | undefined {
    return PROBED_BLOCK_RANGES.find((blocks) => blocks < rejected && blocks <= Math.max(this.#head, MIN_BLOCK_RANGE));
  }

  #toRange(blockCount: number): BlockRange {
    if (blockCount === Number.POSITIVE_INFINITY) return { from: 0, to: blockCount };
    return { from: Math.max(this.#head - blockCount + 1, 0), to: this.#head };
  }

  async #searchLogs(range: BlockRange): Promise<void> {
    const toBlock = range.to === Number.POSITIVE_INFINITY ? "latest" : toQuantity(range.to);
    const params = [{ ...this.#options.filter, fromBlock: toQuantity(range.from), toBlock }];
    const validate = (result: unknown): boolean => areLogsMatching(result, this.#options.filter, range);
    await this.#probe.send({ method: "eth_getLogs", params, validate }, this.#signal);
  }
}

function isRateLimited({ classification }: RpcError): boolean {
  return classification?.kind === "rate_limited";
}
