import { createAbortScope } from "../../resilience/abort-scope.js";
import type { ChainClient, RpcCall } from "../chain-client.js";
import type { AdaptiveLogReader } from "../endpoints/adaptive-block-range.js";
import type { EndpointPool } from "../endpoints/endpoint-pool.js";
import type { HedgedRequester } from "../endpoints/hedged-requests.js";

export interface SampledClientOptions {
  /** Answers the reads. */
  readonly pool: EndpointPool;
  /** Makes a read at several endpoints and compares. Its result is not used. */
  readonly compareRequest: HedgedRequester;
  readonly compareLogs: AdaptiveLogReader;
  /** Share of the reads that are compared, from 0 to 1. */
  readonly sampleRate: number;
  readonly closing: AbortSignal;
  /** Returns a random number from 0 up to 1. */
  readonly random: () => number;
}

/** Comparisons of one chain at the same time; what comes meanwhile is not compared. */
const MAX_COMPARISONS = 4;
const COMPARE_TIMEOUT_MS = 10_000;

/**
 * Creates a client that answers like the pool, and repeats a share of its successful reads at several endpoints in the
 * background. Nobody waits for that, and nobody's budget but that of the endpoints is spent.
 */
export function createSampledClient(options: SampledClientOptions): ChainClient & { asBackground(): ChainClient } {
  const { pool, compareRequest, compareLogs, sampleRate, closing, random } = options;
  let running = 0;

  function sample(compare: (signal: AbortSignal) => Promise<unknown>): void {
    if (running >= MAX_COMPARISONS || closing.aborted || random() >= sampleRate) return;
    running += 1;
    const scope = createAbortScope(closing, COMPARE_TIMEOUT_MS);
    compare(scope.signal)
      // The comparison has reported what it found.
      .catch(() => {})
      .finally(() => {
        running -= 1;
        scope.cancel();
      });
  }

  const toBackground = (call: RpcCall): RpcCall => ({ ...call, onRequest: undefined, isBackground: true });

  const decorate = (client: ChainClient): ChainClient => ({
    slug: client.slug,
    cacheKey: pool,
    async send(method, params, signal, validate, onRequest) {
      const result = await client.send(method, params, signal, validate, onRequest);
      sample((sampleSignal) => compareRequest([toBackground({ method, params, validate })], sampleSignal));
      return result;
    },
    async sendBatch(calls, signal) {
      const outcomes = await client.sendBatch(calls, signal);
      if (calls.length > 0) sample((sampleSignal) => compareRequest(calls.map(toBackground), sampleSignal));
      return outcomes;
    },
    async getLogs(filter, range, newestFirst, signal, onRequest) {
      const result = await client.getLogs(filter, range, newestFirst, signal, onRequest);
      if (result !== undefined)
        sample((sampleSignal) => compareLogs(filter, result.range, newestFirst, sampleSignal, undefined, true));
      return result;
    },
  });

  return { ...decorate(pool), asBackground: () => decorate(pool.asBackground()) };
}
