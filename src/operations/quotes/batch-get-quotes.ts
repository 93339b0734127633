import type {
  BatchGetQuotesRequest,
  BatchGetQuotesResponse,
  GetQuoteRequest,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../errors.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { FeeSettingsSource } from "../../hop/fee-settings-source.js";
import type { NetworkSlug } from "../../hop/networks.js";
import type { PreparedQuote, QuoteEngine, TimestampedQuote } from "../../quotes/quote-engine.js";
import type { FairQuota } from "../../resilience/fair-quota.js";
import { isPromise, type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import { createTimeSlicer, type TimeSlicer } from "../../resilience/time-slicer.js";
import type { CallContext, Operation } from "../operation.js";
import { listQuoteRequests } from "./batch-requests.js";
import { type BatchResults, createBatchResults } from "./batch-results.js";
import {
  assertRouteEnabled,
  assertRouteExists,
  createQuoteRequestParser,
  type ParsedQuoteRequest,
} from "./quote-request.js";
import { toQuoteResponse } from "./quote-response.js";

export interface BatchGetQuotesDeps {
  readonly settings: FeeSettingsSource;
  readonly engine: Pick<QuoteEngine, "prepareQuotes">;
  /** Slots for the quotes of batches that have to wait. */
  readonly quoteQuota: FairQuota;
  /** Maximum duration of a call, in milliseconds. */
  readonly maxTimeoutMs: number;
  /** Milliseconds on a monotonic clock. */
  readonly monotonicNow: () => number;
  /** Shares the event loop among all batches. */
  readonly slicer?: TimeSlicer;
  /** Observes the number of results by their reason; quotes have an empty one. */
  readonly onResults?: (counts: ReadonlyMap<string, number>) => void;
}

/** Time of each turn of the event loop that all batches take together. */
const SLICE_MS = 2;
/** What is kept of the time of a call for the way of the response: 5 %, within these limits. */
const MIN_RESPONSE_TIME_MS = 10;
const MAX_RESPONSE_TIME_MS = 200;

/** A batch in progress. */
interface Batch {
  readonly results: BatchResults;
  readonly context: CallContext;
  /** Sets an error as the result at an index. */
  fail(index: number, error: unknown): void;
}

/** A request with valid parameters, and the index of its result. */
interface IndexedRequest {
  readonly index: number;
  readonly parsed: ParsedQuoteRequest;
}

/** Creates the operation that answers many quotes at once. Each fails alone, with what a call of its own would get. */
export function createBatchGetQuotes(
  deps: BatchGetQuotesDeps,
): Operation<BatchGetQuotesRequest, BatchGetQuotesResponse> {
  const { settings, engine, quoteQuota, maxTimeoutMs, monotonicNow, onResults } = deps;
  const { slicer = createTimeSlicer({ sliceMs: SLICE_MS }) } = deps;
  const parse = createQuoteRequestParser();

  function quoteAll(
    messages: readonly GetQuoteRequest[],
    deadlineAt: number,
    context: CallContext,
  ): MaybePromise<BatchGetQuotesResponse> {
    const results = createBatchResults(messages);
    const batch = {
      results,
      context,
      fail: (index: number, error: unknown) => results.setError(index, context.describeFailure(error)),
    };
    const indexed = messages.map((message, index) => ({ index, message }));
    const valid = mapOrFail(batch, indexed, ({ index, message }) => {
      const parsed = parse(message);
      assertRouteExists(parsed);
      return { index, parsed };
    });
    for (const [network, requests] of groupByNetwork(valid)) {
      const current = settings.peek(network);
      if (current !== undefined) startQuotes(batch, requests, current);
      else
        settings.getCurrent(network).then(
          (loaded) => startQuotes(batch, requests, loaded),
          (error: unknown) => {
            for (const { index } of requests) batch.fail(index, error);
          },
        );
    }
    return results.isComplete() ? respond(batch) : completeWithin(deadlineAt - monotonicNow(), messages.length, batch);
  }

  /** Starts the quotes of one network. */
  function startQuotes(batch: Batch, requests: readonly IndexedRequest[], currentSettings: FeeSettings): void {
    const enabled = mapOrFail(batch, requests, (request) => {
      assertRouteEnabled(request.parsed, currentSettings);
      return request;
    });
    const { caller } = batch.context;
    const quoteRequests = enabled.map(({ parsed }) => parsed.request);
    const ready: (() => void)[] = [];
    for (const [position, prepared] of engine.prepareQuotes(quoteRequests, batch.context).entries()) {
      const request = enabled[position] as IndexedRequest;
      if (!isPromise(prepared)) ready.push(() => compute(batch, request, prepared));
      else
        prepared.then(
          (quote) => runInSlices(batch, caller, [() => compute(batch, request, quote)]),
          (error: unknown) => batch.fail(request.index, error),
        );
    }
    runInSlices(batch, caller, ready);
  }

  /** Runs work unless all results are set: after the deadline nobody waits for it. */
  function runInSlices({ results }: Batch, caller: string, work: readonly (() => void)[]): void {
    let next = 0;
    void slicer.run(caller, () => {
      if (results.isComplete()) return false;
      work[next]?.();
      next += 1;
      return next < work.length;
    });
  }

  function compute(batch: Batch, { index, parsed }: IndexedRequest, quote: PreparedQuote): void {
    const succeed = (result: TimestampedQuote): void =>
      batch.results.setQuote(index, toQuoteResponse(parsed.request, result.quote), result.freshness);
    try {
      const result = quote();
      if (isPromise(result)) result.then(succeed).catch((error: unknown) => batch.fail(index, error));
      else succeed(result);
    } catch (error) {
      batch.fail(index, error);
    }
  }

  /** Waits for the results, and answers before the deadline with those at hand: a slow chain must not fail the others. */
  async function completeWithin(timeoutMs: number, count: number, batch: Batch): Promise<BatchGetQuotesResponse> {
    const { results, context } = batch;
    function failMissing(error: ServiceError): void {
      for (let index = 0; index < count; index += 1) if (!results.isSet(index)) batch.fail(index, error);
    }
    const release = quoteQuota.tryAcquire(context.caller, count);
    if (release === undefined) {
      const message = "too many quotes of batches are waiting here";
      const error = new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
      failMissing(error);
      throw error;
    }
    const responseTimeMs = Math.min(Math.max(timeoutMs / 20, MIN_RESPONSE_TIME_MS), MAX_RESPONSE_TIME_MS);
    const stop = (): void => failMissing(new ServiceError("DEADLINE_EXCEEDED", "no quote within the deadline"));
    const timer = setTimeout(stop, Math.max(timeoutMs / 2, timeoutMs - responseTimeMs));
    context.signal.addEventListener("abort", stop);
    try {
      await results.waitUntilComplete();
      return respond(batch);
    } finally {
      clearTimeout(timer);
      context.signal.removeEventListener("abort", stop);
      release();
    }
  }

  function respond({ results, context }: Batch): BatchGetQuotesResponse {
    const counts = results.countByReason();
    const response = results.toResponse();
    context.addLogFields({ quotes: response.results.length, failed: response.results.length - (counts.get("") ?? 0) });
    context.setCachePolicy(results.getCachePolicy());
    onResults?.(counts);
    return response;
  }

  return (message, context) => {
    const deadlineAt = monotonicNow() + Math.min(context.timeoutMs ?? maxTimeoutMs, maxTimeoutMs);
    return mapMaybeAsync(listQuoteRequests(message, settings), (requests) => {
      // Before any work.
      const counted = context.countAsRequests(requests.length);
      const quote = () => quoteAll(requests, deadlineAt, context);
      return counted === undefined ? quote() : counted.then(quote);
    });
  };
}

/** Returns what `map` returns for each request; where it throws, the request fails. */
function mapOrFail<T extends { readonly index: number }, R>(
  { fail }: Batch,
  requests: readonly T[],
  map: (request: T) => R,
): readonly R[] {
  const mapped: R[] = [];
  for (const request of requests) {
    try {
      mapped.push(map(request));
    } catch (error) {
      fail(request.index, error);
    }
  }
  return mapped;
}

function groupByNetwork(requests: readonly IndexedRequest[]): ReadonlyMap<NetworkSlug, readonly IndexedRequest[]> {
  const groups = new Map<NetworkSlug, IndexedRequest[]>();
  for (const request of requests) {
    const { network } = request.parsed.request;
    const group = groups.get(network);
    if (group === undefined) groups.set(network, [request]);
    else group.push(request);
  }
  return groups;
}
