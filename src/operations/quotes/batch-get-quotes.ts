import {
  type BatchGetQuotesRequest,
  type BatchGetQuotesResponse,
  BatchGetQuotesResponseSchema,
  type GetQuoteRequest,
  QuoteErrorSchema,
  type QuoteResult,
  QuoteResultSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../errors.js";
import type { FeeSettings, FeeSettingsSource } from "../../hop/fee-settings.js";
import type { NetworkSlug } from "../../hop/networks.js";
import type { PreparedQuote, QuoteEngine, QuoteFreshness, TimestampedQuote } from "../../quotes/quote-engine.js";
import type { QuoteRequest } from "../../quotes/state/quote-request.js";
import type { FairQuota } from "../../resilience/fair-quota.js";
import type { FairScheduler } from "../../resilience/fair-scheduler.js";
import { isPromise, type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { CallContext, Operation } from "../operation.js";
import { findChainSlug } from "../parameters.js";
import { describeExceededBurnLimit, formatBurnLimitWarning, toQuoteCachePolicy, toQuoteResponse } from "./get-quote.js";
import {
  assertRouteEnabled,
  assertRouteExists,
  createQuoteRequestParser,
  listQuoteRequests,
  type ParsedQuoteRequest,
} from "./quote-request.js";

interface BatchGetQuotesDeps {
  readonly settings: FeeSettingsSource;
  readonly engine: Pick<QuoteEngine, "prepareQuotes">;
  /** Slots for the quotes of batches, while they wait. */
  readonly quoteQuota: FairQuota;
  /** Divides the time of the event loop among callers. */
  readonly eventLoop: FairScheduler;
  /** Observes the number of results by their reason; quotes have an empty one. */
  readonly onResults?: (counts: ReadonlyMap<string, number>) => void;
}

/** What is kept of the time of a call for the way of the response: 5 %, within these limits. */
const MIN_RESPONSE_TIME_MS = 10;
const MAX_RESPONSE_TIME_MS = 200;
/** Longest text of a request that its result repeats. Valid ones are shorter. */
const MAX_REPEATED_CHARS = 100;

/** Creates the operation that answers many quotes at once. Each fails alone, with what a call of its own would get. */
export function createBatchGetQuotes(
  deps: BatchGetQuotesDeps,
): Operation<BatchGetQuotesRequest, BatchGetQuotesResponse> {
  const quoter = new BatchQuoter(deps);
  return (message, context) =>
    mapMaybeAsync(listQuoteRequests(message, deps.settings), (requests) => {
      // Before any work.
      const counted = context.countAsRequests(requests.length);
      const quote = () => quoter.quoteAll(requests, context);
      return counted === undefined ? quote() : counted.then(quote);
    });
}

/** A request with valid parameters, and the index of its result. */
interface IndexedRequest {
  readonly index: number;
  readonly parsed: ParsedQuoteRequest;
}

class BatchQuoter {
  readonly #deps: BatchGetQuotesDeps;
  readonly #parse = createQuoteRequestParser();

  constructor(deps: BatchGetQuotesDeps) {
    this.#deps = deps;
  }

  quoteAll(messages: readonly GetQuoteRequest[], context: CallContext): MaybePromise<BatchGetQuotesResponse> {
    // Before any work: who has too many quotes waiting must not cost more by asking for more.
    const release = this.#deps.quoteQuota.tryAcquire(context.caller, messages.length);
    if (release === undefined) {
      throw new ServiceError("OVERLOADED", "too many quotes of batches are waiting here", { retryAfterSeconds: 1 });
    }
    let isWaiting = false;
    try {
      const batch = new Batch(messages, context);
      this.#start(batch, messages);
      if (batch.isComplete) return batch.respond(this.#deps.onResults);
      isWaiting = true;
      return this.#completeInTime(batch).finally(release);
    } finally {
      if (!isWaiting) release();
    }
  }

  #start(batch: Batch, messages: readonly GetQuoteRequest[]): void {
    const { settings } = this.#deps;
    const indexed = messages.map((message, index) => ({ index, message }));
    const valid = mapOrFail(batch, indexed, ({ index, message }) => {
      const parsed = this.#parse(message);
      assertRouteExists(parsed);
      return { index, parsed };
    });
    for (const [network, requests] of groupByNetwork(valid)) {
      const current = settings.peek(network);
      if (current !== undefined) this.#startQuotes(batch, requests, current);
      else
        settings.getCurrent(network).then(
          (loaded) => this.#startQuotes(batch, requests, loaded),
          (error: unknown) => {
            for (const { index } of requests) batch.fail(index, error);
          },
        );
    }
  }

  /** Starts the quotes of one network. */
  #startQuotes(batch: Batch, requests: readonly IndexedRequest[], currentSettings: FeeSettings): void {
    const enabled = mapOrFail(batch, requests, (request) => {
      assertRouteEnabled(request.parsed, currentSettings);
      return request;
    });
    const quoteRequests = enabled.map(({ parsed }) => parsed.request);
    const ready: (() => void)[] = [];
    for (const [position, prepared] of this.#deps.engine.prepareQuotes(quoteRequests, batch.context).entries()) {
      const request = enabled[position] as IndexedRequest;
      if (!isPromise(prepared)) ready.push(() => compute(batch, request, prepared));
      else
        prepared.then(
          (quote) => this.#runInTurns(batch, [() => compute(batch, request, quote)]),
          (error: unknown) => batch.fail(request.index, error),
        );
    }
    this.#runInTurns(batch, ready);
  }

  /** Runs work unless all results are set: after the deadline nobody waits for it. */
  #runInTurns(batch: Batch, work: readonly (() => void)[]): void {
    let next = 0;
    this.#deps.eventLoop.runSteps(batch.context, () => {
      if (batch.isComplete) return false;
      work[next]?.();
      next += 1;
      return next < work.length;
    });
  }

  /** Waits for the results, and answers before the deadline with those at hand: a slow chain must not fail the others. */
  async #completeInTime(batch: Batch): Promise<BatchGetQuotesResponse> {
    const { signal } = batch.context;
    const timeoutMs = batch.context.remainingMs();
    const responseTimeMs = Math.min(Math.max(timeoutMs / 20, MIN_RESPONSE_TIME_MS), MAX_RESPONSE_TIME_MS);
    const stop = (): void => batch.failMissing(new ServiceError("DEADLINE_EXCEEDED", "no quote within the deadline"));
    const timer = setTimeout(stop, Math.max(timeoutMs / 2, timeoutMs - responseTimeMs));
    signal.addEventListener("abort", stop);
    try {
      await batch.waitUntilComplete();
      return batch.respond(this.#deps.onResults);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }
}

/** A batch in progress: its results come in any order, each once. */
class Batch {
  readonly #results: QuoteResult[];
  readonly #counts = new Map<string, number>();
  #unset: number;
  #freshness: QuoteFreshness | undefined = undefined;
  /** The transfers above a burn limit, by the index of their results. */
  #exceededBurnLimits: string[] | undefined = undefined;
  #onComplete: (() => void) | undefined = undefined;

  constructor(
    requests: readonly GetQuoteRequest[],
    readonly context: CallContext,
  ) {
    this.#results = requests.map(createPendingResult);
    this.#unset = requests.length;
  }

  /** The number of its quotes. */
  get size(): number {
    return this.#results.length;
  }

  /** Whether all results are set. */
  get isComplete(): boolean {
    return this.#unset === 0;
  }

  /** Sets a result unless it is set already. */
  succeed(index: number, request: QuoteRequest, { quote, freshness }: TimestampedQuote): void {
    if (!this.#set(index, "", { case: "quote", value: toQuoteResponse(request, quote) })) return;
    if (quote.exceededBurnLimit !== undefined) {
      this.#exceededBurnLimits ??= [];
      this.#exceededBurnLimits[index] = describeExceededBurnLimit(request, quote, quote.exceededBurnLimit);
    }
    this.#freshness = this.#freshness === undefined ? freshness : combineFreshness(this.#freshness, freshness);
  }

  /** Sets an error as the result, unless there is one already. */
  fail(index: number, error: unknown): void {
    const described = this.context.describeFailure(error);
    const value = { $typeName: QuoteErrorSchema.typeName, ...described };
    this.#set(index, described.reason, { case: "error", value });
  }

  failMissing(error: ServiceError): void {
    for (const [index, { result }] of this.#results.entries()) if (result.case === undefined) this.fail(index, error);
  }

  waitUntilComplete(): Promise<void> {
    return new Promise((resolve) => {
      this.#onComplete = resolve;
      if (this.isComplete) resolve();
    });
  }

  respond(onResults: BatchGetQuotesDeps["onResults"]): BatchGetQuotesResponse {
    const quotes = this.#counts.get("") ?? 0;
    this.context.addLogFields({ quotes: this.size, failed: this.size - quotes });
    // Errors are not kept, and quotes as long as all of them may be.
    const freshness = quotes === this.size ? this.#freshness : undefined;
    this.context.setCachePolicy(freshness === undefined ? "private" : toQuoteCachePolicy(freshness));
    if (this.#exceededBurnLimits !== undefined) {
      this.context.addWarning(formatBurnLimitWarning(Object.values(this.#exceededBurnLimits)));
    }
    onResults?.(this.#counts);
    return { $typeName: BatchGetQuotesResponseSchema.typeName, results: this.#results };
  }

  #set(index: number, reason: string, result: QuoteResult["result"]): boolean {
    const target = this.#results[index];
    if (target === undefined || target.result.case !== undefined) return false;
    target.result = result;
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    this.#unset -= 1;
    if (this.#unset === 0) this.#onComplete?.();
    return true;
  }
}

function compute(batch: Batch, { index, parsed }: IndexedRequest, quote: PreparedQuote): void {
  const succeed = (result: TimestampedQuote): void => batch.succeed(index, parsed.request, result);
  try {
    const result = quote();
    if (isPromise(result)) result.then(succeed).catch((error: unknown) => batch.fail(index, error));
    else succeed(result);
  } catch (error) {
    batch.fail(index, error);
  }
}

/** Returns what `map` returns for each request; where it throws, the request fails. */
function mapOrFail<T extends { readonly index: number }, R>(
  batch: Batch,
  requests: readonly T[],
  map: (request: T) => R,
): readonly R[] {
  const mapped: R[] = [];
  for (const request of requests) {
    try {
      mapped.push(map(request));
    } catch (error) {
      batch.fail(request.index, error);
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

function createPendingResult({ network, fromChain, toChain, token, amount }: GetQuoteRequest): QuoteResult {
  // A long invalid text in a small request would make a response of megabytes, because each result repeats it.
  const shorten = (text: string): string => text.slice(0, MAX_REPEATED_CHARS);
  return {
    $typeName: QuoteResultSchema.typeName,
    fromChain: findChainSlug(network, fromChain) ?? shorten(fromChain),
    toChain: findChainSlug(network, toChain) ?? shorten(toChain),
    token: shorten(token),
    amount: shorten(amount),
    result: { case: undefined },
  };
}

/** Returns the age of the older of two quotes, and the time that is left to both. */
function combineFreshness(first: QuoteFreshness, second: QuoteFreshness): QuoteFreshness {
  const ageMs = Math.max(first.ageMs, second.ageMs);
  const leftMs = Math.min(first.maxAgeMs - first.ageMs, second.maxAgeMs - second.ageMs);
  return { ageMs, maxAgeMs: ageMs + leftMs, refreshMs: Math.min(first.refreshMs, second.refreshMs) };
}
